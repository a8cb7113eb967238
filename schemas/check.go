package schemas

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tutti/internal/core"
)

// Bounds of the work of one check. A step is a rule asked about a value, or about 32 bytes looked at.
const (
	maxSteps = 10_000_000
	// timePerStep is what a step takes: a second is all that a check may take.
	timePerStep  = 100 * time.Nanosecond
	bytesPerStep = 32
	// instructionsPerStep are how many instructions of a regular expression a step does, each for one byte.
	instructionsPerStep = 12
	// stepsPerLook is how often a check looks whether its caller still waits.
	stepsPerLook = 1 << 14
)

// errTooMuchWork ends a check whose schema asks too much about the value.
var errTooMuchWork = errors.New("validating it takes too much work: its schema refers to itself too often or " +
	"has too costly expressions")

// check asks rules about one value. It is used once.
type check struct {
	ctx    context.Context //nolint:containedctx // a check lives as long as the call that makes it
	steps  int
	looked int
	// err ends the check: nothing that it found counts then.
	err   error
	path  []token
	found *faults
	// expressions are the regular expressions that were tried, with what is wrong with them: schemas repeat theirs.
	expressions map[string]error
	// quiet is above zero while only the answer matters, not what is at fault.
	quiet int
}

// token is one step of the path to the value that is asked about.
type token struct {
	name  string
	index int // of an item, where name is empty and isItem is true
	item  bool
}

// run gives the faults of v. An error says that the check was not ended.
func run(ctx context.Context, r *rule, v *value) (*faults, error) {
	c := &check{ctx: ctx, found: &faults{}}
	c.ask(r, v, nil)
	if c.err != nil {
		return nil, c.err
	}
	return c.found, nil
}

// spend counts work and tells whether to go on.
func (c *check) spend(steps int) bool {
	if c.err != nil {
		return false
	}
	c.steps += steps
	if c.steps > maxSteps {
		c.err = errTooMuchWork
		return false
	}
	if c.steps-c.looked >= stepsPerLook {
		c.looked = c.steps
		c.err = c.ctx.Err()
	}
	return c.err == nil
}

// fault notes what is wrong with the value that is asked about; it is always false.
func (c *check) fault(keyword, message string) bool {
	if c.quiet == 0 && c.err == nil {
		c.found.add(core.Violation{Pointer: c.pointer(), Message: message, Keyword: keyword})
	}
	return false
}

func (c *check) pointer() string {
	var b []byte
	for _, t := range c.path {
		if t.item {
			b = strconv.AppendInt(append(b, '/'), int64(t.index), 10)
		} else {
			b = pointerToken(b, t.name)
		}
	}
	return string(b)
}

// silently asks without noting faults.
func (c *check) silently(r *rule, v *value, ev *evaluated) bool {
	c.quiet++
	ok := c.ask(r, v, ev)
	c.quiet--
	return ok
}

// below asks about a part of the value that is asked about.
func (c *check) below(t token, r *rule, v *value) bool {
	c.path = append(c.path, t)
	ok := c.ask(r, v, nil)
	c.path = c.path[:len(c.path)-1]
	return ok
}

// enough tells whether more answers can change nothing.
func (c *check) enough(ok bool) bool {
	return c.err != nil || !ok && (c.quiet > 0 || c.found.more)
}

// ask tells whether v is valid by r, and notes in ev which of its parts r looked at; a nil ev wants no notes.
func (c *check) ask(r *rule, v *value, ev *evaluated) bool {
	if !c.spend(1) {
		return false
	}
	if r.always != nil {
		return *r.always || c.fault("false", "is not allowed")
	}
	if !r.types.allows(v) {
		return c.fault("type", "must be "+r.types.names()+", not "+v.kind.typeName())
	}
	if r.unevaluatedProperties != nil || r.unevaluatedItems != nil {
		// Such a rule does not see what the rules beside it looked at, but they see what it did.
		own := &evaluated{}
		defer ev.merge(own)
		ev = own
	}
	ok := c.values(r, v)
	if !c.enough(ok) {
		ok = c.parts(r, v, ev) && ok
	}
	if !c.enough(ok) {
		ok = c.combined(r, v, ev) && ok
	}
	if !c.enough(ok) {
		ok = c.unevaluated(r, v, ev) && ok
	}
	return ok && c.err == nil
}

// values asks what needs the value alone.
func (c *check) values(r *rule, v *value) bool {
	ok := true
	if r.constant != nil && (!c.spendOn(v) || !r.constant.has(v)) {
		ok = c.fault("const", "must be "+listed(r.constant.shown))
	}
	if r.enum != nil && (!c.spendOn(v) || !r.enum.has(v)) {
		ok = c.fault("enum", "must be one of "+listedOf(r.enum))
	}
	if r.format != nil && v.kind == kindString {
		ok = c.format(r.format, v.text) && ok
	}
	return ok
}

func (c *check) format(f *jsonschema.Format, text string) bool {
	if !c.spend(len(text) / bytesPerStep) {
		return false
	}
	err, known := c.expressions[text]
	if !known || f.Name != "regex" {
		began := time.Now()
		err = f.Validate(text)
		// A regular expression is compiled, and thrown away.
		if f.Name == "regex" {
			if !c.spendTime(time.Since(began)) {
				return false
			}
			if c.expressions == nil {
				c.expressions = map[string]error{}
			}
			c.expressions[text] = err
		}
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, errTooLarge):
		return c.fault("format", err.Error())
	default:
		return c.fault("format", "is not a valid "+formatName(f.Name))
	}
}

// spendOn counts the work of comparing a whole value.
func (c *check) spendOn(v *value) bool {
	if v.parts == nil {
		return c.spend(len(v.text) / bytesPerStep)
	}
	ok := c.spend(1)
	for i := range v.items() {
		ok = ok && c.spend(1) && c.spendOn(&v.items()[i])
	}
	for i := range v.members() {
		ok = ok && c.spend(1) && c.spendOn(&v.members()[i].value)
	}
	return ok
}

func listedOf(c *choice) string {
	out := listed(c.shown[:min(len(c.shown), maxListed)])
	if more := c.size() - maxListed; more > 0 {
		out += " and " + strconv.Itoa(more) + " more"
	}
	return out
}

func formatName(name string) string {
	if name == "regex" {
		return "regular expression"
	}
	return name
}

func (c *check) parts(r *rule, v *value, ev *evaluated) bool {
	switch {
	case v.kind == kindObject && r.object != nil:
		return c.object(r.object, v, ev)
	case v.kind == kindArray && r.array != nil:
		return c.array(r.array, v, ev)
	case v.kind == kindString && r.text != nil:
		return c.text(r.text, v.text)
	case v.kind == kindNumber && r.numeric != nil:
		return c.number(r.numeric, v.text)
	default:
		return true
	}
}

// spendTime counts work that was done by what it took.
func (c *check) spendTime(took time.Duration) bool { return c.spend(int(took / timePerStep)) }

// matches asks an expression about a text. A match cannot be stopped, so one that might take more work than is left is
// not begun; of the others counts what they took, which is mostly far less than the most that they might have.
func (c *check) matches(regex jsonschema.Regexp, text string) bool {
	if !c.spend(1 + len(text)/bytesPerStep) {
		return false
	}
	most, tooLong, timed := 0, false, time.Duration(math.MaxInt64)
	switch r := regex.(type) {
	case linear:
		most = len(text) * r.instructions / instructionsPerStep
		timed = time.Duration(most) * timePerStep
	case backtracking:
		most, tooLong = int(matchTimeout/timePerStep), len(text) > maxBacktracked
	}
	if tooLong || c.steps+most > maxSteps {
		c.err = errTooMuchWork
		return false
	}
	began := time.Now()
	ok := regex.MatchString(text)
	return c.spendTime(min(timed, time.Since(began))) && ok
}
