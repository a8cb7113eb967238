package schemas

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tutti/internal/core"
)

// Limits of a dynamic schema. The compiler's work grows with the square of maxSubschemas; checking recurses as deep as
// rules about one value refer to each other.
const (
	maxSchemaBytes = 1 << 20
	maxSubschemas  = 10_000
	maxInPlace     = 100
)

// documentURL is the base of a schema that says no $id. Nothing is ever asked there.
const documentURL = "https://tutti.invalid/schema"

// errNotLoaded refuses to fetch a schema: whoever registers one could make the server call anything.
var errNotLoaded = errors.New("schemas are not fetched")

type noLoader struct{}

// Load refuses.
func (noLoader) Load(string) (any, error) { return nil, errNotLoaded }

var _ jsonschema.URLLoader = noLoader{}

func newCompiler(e *expressions) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(e.compile)
	return c
}

// compileURL gives the rule of what a compiler knows under a URL.
func compileURL(c *jsonschema.Compiler, at string) (*rule, error) {
	schema, err := c.Compile(at)
	if err != nil {
		return nil, err
	}
	return (&converter{compiler: c, done: map[*jsonschema.Schema]*rule{}}).rule(schema)
}

// compile gives the rule of a schema that was parsed before. Its faults come with pointers into the schema; an error is
// tutti's own fault.
func compile(ctx context.Context, text string) (*rule, *faults, error) {
	tree, err := parse(text)
	if err != nil {
		return nil, oneFault("", "schema", "is no JSON schema: "+err.Error()), nil
	}
	if f := limits(&tree, text); f != nil {
		return nil, f, nil
	}
	if f, err := wellFormed(ctx, &tree); err != nil || len(f.list) > 0 {
		return nil, f, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	if err != nil {
		return nil, oneFault("", "schema", "is no JSON schema"), nil
	}
	used := newExpressions()
	c := newCompiler(used)
	if err := c.AddResource(documentURL, document); err != nil {
		return nil, nil, err
	}
	r, err := compileURL(c, documentURL)
	if used.tooHeavy() {
		return nil, oneFault("", "pattern", "has regular expressions that take too much memory together"), nil
	}
	if err != nil {
		return nil, explain(err, &tree), nil
	}
	if f := circles(r); f != nil {
		return nil, f, nil
	}
	r.instructions = used.weight
	return r, nil, nil
}

func oneFault(pointer, keyword, message string) *faults {
	return &faults{list: []core.Violation{{Pointer: pointer, Message: message, Keyword: keyword}}}
}

// limits refuses a schema that is too large to compile or whose meaning depends on who refers to what.
func limits(tree *value, text string) *faults {
	if len(text) > maxSchemaBytes {
		return oneFault("", "schema", "is larger than "+counted(maxSchemaBytes>>20, "MiB", "MiB"))
	}
	var s census
	s.count(tree, true)
	switch {
	case s.subschemas > maxSubschemas:
		return oneFault("", "schema", "has more than "+counted(maxSubschemas, "object or boolean", "objects and booleans"))
	case s.dynamic && s.embedded:
		return oneFault("", "schema", "has $dynamicRef or $recursiveRef together with a nested $id, which is not supported; use $ref")
	default:
		return nil
	}
}

type census struct {
	subschemas        int
	dynamic, embedded bool
}

func (s *census) count(v *value, root bool) {
	if v.kind == kindObject || v.kind == kindBool {
		s.subschemas++
	}
	for i := range v.items() {
		s.count(&v.items()[i], false)
	}
	for i := range v.members() {
		m := &v.members()[i]
		if m.value.kind == kindString {
			s.dynamic = s.dynamic || m.name == "$dynamicRef" || m.name == "$recursiveRef"
			s.embedded = s.embedded || !root && (m.name == "$id" || m.name == "id")
		}
		s.count(&m.value, false)
	}
}

// wellFormed checks a schema by the meta-schema of its draft.
func wellFormed(ctx context.Context, tree *value) (*faults, error) {
	draft := jsonschema.Draft7.String()
	if named := tree.member("$schema"); named != nil {
		draft = draftOf(named)
		if draft == "" {
			return oneFault("/$schema", "$schema", "is not one of the drafts that are known: draft-04, draft-06, draft-07, 2019-09, 2020-12"), nil
		}
	}
	meta, err := compileURL(newCompiler(newExpressions()), draft)
	if err != nil {
		return nil, err
	}
	found, err := run(ctx, meta, tree)
	if errors.Is(err, errTooMuchWork) {
		return oneFault("", "schema", err.Error()), nil
	}
	return found, err
}

// draftOf gives the URL of the meta-schema that $schema names, "" when it is none of the known ones.
func draftOf(named *value) string {
	if named.kind != kindString {
		return ""
	}
	wanted := strings.TrimSuffix(named.text, "#")
	_, wanted, _ = strings.Cut(wanted, "://")
	for _, d := range []*jsonschema.Draft{
		jsonschema.Draft4, jsonschema.Draft6, jsonschema.Draft7, jsonschema.Draft2019, jsonschema.Draft2020,
	} {
		if _, url, _ := strings.Cut(d.String(), "://"); url == wanted {
			return d.String()
		}
	}
	return ""
}

// circles refuses rules that refer to themselves without going deeper into the value, and chains that are too long.
func circles(r *rule) *faults {
	w := circleWalk{depth: map[*rule]int{}}
	w.all(r)
	return w.found
}

// circleWalk knows for each rule the length of the longest chain of rules about the same value that begins with it; a
// negative one is being walked.
type circleWalk struct {
	depth map[*rule]int
	found *faults
}

// all walks every rule that r leads to.
func (w *circleWalk) all(r *rule) {
	seen := map[*rule]bool{r: true}
	for queue := []*rule{r}; len(queue) > 0 && w.found == nil; {
		next := queue[0]
		queue = queue[1:]
		w.chain(next)
		for _, part := range append(next.inPlace(), next.deeper()...) {
			if !seen[part] {
				seen[part] = true
				queue = append(queue, part)
			}
		}
	}
}

func (w *circleWalk) chain(r *rule) int {
	switch d := w.depth[r]; {
	case d > 0 || w.found != nil:
		return d
	case d < 0:
		w.found = oneFault(pointerOf(r.location), "$ref", "refers to itself about the same value, so that no check of it would end")
		return 0
	}
	w.depth[r] = -1
	longest := 0
	for _, part := range r.inPlace() {
		longest = max(longest, w.chain(part))
	}
	if longest++; longest > maxInPlace && w.found == nil {
		w.found = oneFault(pointerOf(r.location), "$ref", "begins a chain of more than "+counted(maxInPlace, "schema", "schemas about the same value"))
	}
	w.depth[r] = longest
	return longest
}

// deeper gives the rules that r asks about parts of the value.
func (r *rule) deeper() []*rule {
	all := []*rule{r.unevaluatedProperties, r.unevaluatedItems}
	if o := r.object; o != nil {
		all = append(all, o.additional, o.names)
		for _, p := range o.properties {
			all = append(all, p)
		}
		for _, p := range o.patterns {
			all = append(all, p.rule)
		}
	}
	if a := r.array; a != nil {
		all = append(append(all, a.rest, a.contains), a.prefix...)
	}
	var some []*rule
	for _, part := range all {
		if part != nil {
			some = append(some, part)
		}
	}
	return some
}

// pointerOf gives the JSON pointer in the fragment of a location.
func pointerOf(location string) string {
	_, fragment, _ := strings.Cut(location, "#")
	if pointer, err := url.PathUnescape(fragment); err == nil {
		return pointer
	}
	return fragment
}
