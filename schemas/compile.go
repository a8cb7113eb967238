package schemas

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"tutti/internal/core"
)

// Limits of the text of a dynamic schema. The compiler's work grows with the square of maxSubschemas.
const (
	maxSchemaBytes = 1 << 20
	maxSubschemas  = 10_000
	// maxKnownRegexes bounds the values of format regex that are remembered: to check one is to compile it.
	maxKnownRegexes = 1 << 20
)

// documentURL is the base of a schema without $id. It is never requested.
const documentURL = "https://tutti.invalid/schema"

// metaHost is where the meta-schemas of the drafts have their ids.
const metaHost = "json-schema.org/"

// errNotLoaded refuses to fetch a schema: its author could make the server call any address or read any file.
var errNotLoaded = errors.New("schemas are not fetched")

// rules are a compiled schema.
type rules struct {
	schema *jsonschema.Schema
	// known are all schemas that schema leads to, by their locations.
	known map[string]*jsonschema.Schema
	// weight is that of the regular expressions.
	weight int
	// stop ends the validations in flight.
	stop *atomic.Bool
}

func newRules(schema *jsonschema.Schema, stop *atomic.Bool) *rules {
	r := &rules{schema: schema, known: map[string]*jsonschema.Schema{}, stop: stop}
	r.collect(schema)
	return r
}

func (r *rules) collect(s *jsonschema.Schema) {
	if r.known[s.Location] != nil {
		return
	}
	r.known[s.Location] = s
	for _, e := range edgesOf(s) {
		r.collect(e.schema)
	}
}

// check returns the violations of a value. Errors: errTooMuchWork for a value whose names are too long, errStopped when the
// validations of the schema were stopped.
func (r *rules) check(v *value) (*faults, error) {
	plain, err := v.plain()
	if err != nil {
		return nil, err
	}
	err = r.schema.Validate(plain)
	switch failure, invalid := errors.AsType[*jsonschema.ValidationError](err); {
	case err == nil:
		return &faults{}, nil
	case invalid:
		return r.violations(failure, v), nil
	case errors.Is(err, stopped):
		return nil, errStopped
	default:
		return nil, err
	}
}

func newCompiler(x extensions) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft7
	c.AssertFormat = true
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errNotLoaded }
	known := newCache[string, bool](maxKnownRegexes)
	c.Formats["regex"] = func(v any) bool {
		text, ok := v.(string)
		if !ok {
			return true
		}
		if x.stop.Load() {
			panic(stopped)
		}
		valid, ok := known.get(text)
		if !ok {
			_, err := compileRegex(text)
			valid = err == nil
			known.put(0, text, valid, int64(len(text)+256))
		}
		return valid
	}
	c.RegisterExtension(regexKeyword, nil, x)
	return c
}

// compile returns the rules of a schema. Its violations have pointers into the schema; an error is not the schema's fault.
func compile(text string) (*rules, *faults, error) {
	tree, err := parse(text)
	if err != nil {
		return nil, oneFault("", "schema", "is no JSON schema: "+err.Error()), nil
	}
	if f := limits(&tree, text); f != nil {
		return nil, f, nil
	}
	prepared, used, f, err := wellFormed(&tree, text)
	if err != nil || len(f.list) > 0 {
		return nil, f, err
	}
	x := extensions{expressions: used, stop: &atomic.Bool{}}
	c := newCompiler(x)
	schema, err := compileText(c, prepared)
	if err != nil {
		return nil, explain(err, &tree), nil
	}
	if f := expansionFault(schema); f != nil {
		return nil, f, nil
	}
	r := newRules(schema, x.stop)
	r.weight = used.weight
	for _, s := range r.known {
		takeOver(s)
	}
	return r, nil, nil
}

// compileText compiles a schema. What the library does not expect of one makes it panic, which is an error like others.
func compileText(c *jsonschema.Compiler, text string) (_ *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	// No schema can refer to this URL: limits refuses an $id without a path. The compiler would follow a reference to the URL
	// of a resource that has another $id until the stack ends.
	at := "https://tutti.invalid/" + rand.Text()
	if err := c.AddResource(at, strings.NewReader(text)); err != nil {
		return nil, err
	}
	return c.Compile(at)
}

func oneFault(pointer, keyword, message string) *faults {
	return &faults{list: []core.Violation{{Pointer: pointer, Message: message, Keyword: keyword}}}
}

// limits refuses a schema that is too large to compile or whose meaning depends on the schemas that refer to it.
func limits(tree *value, text string) *faults {
	if len(text) > maxSchemaBytes {
		return oneFault("", "schema", "is larger than "+counted(maxSchemaBytes>>20, "MiB", "MiB"))
	}
	for _, name := range []string{"$id", "id"} {
		if id := tree.member(name); id != nil && strings.HasPrefix(id.text, "?") {
			return oneFault("/"+name, name, "has no path")
		}
	}
	var s census
	s.count(tree, true)
	switch {
	case s.subschemas > maxSubschemas:
		return oneFault("", "schema", "has more than "+counted(maxSubschemas, "object or boolean", "objects and booleans"))
	case s.dynamic && s.embedded:
		return oneFault("", "schema", "has $dynamicRef or $recursiveRef together with a nested $id, which is not supported; use $ref")
	case s.anchored && s.meta:
		return oneFault("", "schema", "has $dynamicAnchor or $recursiveAnchor together with a reference to a meta-schema, which is not supported")
	default:
		return nil
	}
}

type census struct {
	subschemas                        int
	dynamic, embedded, anchored, meta bool
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
			s.meta = s.meta || m.name == "$ref" && strings.Contains(m.value.text, metaHost)
		}
		s.anchored = s.anchored || m.name == "$dynamicAnchor" || m.name == "$recursiveAnchor"
		s.count(&m.value, false)
	}
}

// wellFormed checks a schema by the meta-schema of its draft, and returns it as the compiler gets it with its regular
// expressions.
func wellFormed(tree *value, text string) (string, *expressions, *faults, error) {
	draft, version := jsonschema.Draft7, 7
	if named := tree.member("$schema"); named != nil {
		if draft, version = draftOf(named); draft == nil {
			return "", nil, oneFault("/$schema", "$schema",
				"is not one of the drafts that are known: draft-04, draft-06, draft-07, 2019-09, 2020-12"), nil
		}
	}
	p := &preparation{
		text: text, version: version, found: &faults{}, anchors: map[string]string{},
		expressions: &expressions{known: map[string]expression{}},
	}
	prepared := string(p.schema(nil, tree, "", documentURL))
	if p.expressions.tooHeavy() {
		return "", nil, oneFault("", "pattern", "has regular expressions that take too much memory together"), nil
	}
	if p.tooLarge {
		return "", nil, p.found, nil
	}
	// The draft's own schema is precompiled, and knows Go's regular expressions alone: p says what is wrong with expressions.
	meta, err := jsonschema.NewCompiler().Compile(draft.URL())
	if err != nil {
		return "", nil, nil, fmt.Errorf("compiling a meta-schema: %w", err)
	}
	found, err := newRules(meta, nil).check(tree)
	if errors.Is(err, errTooMuchWork) {
		return "", nil, oneFault("", "schema", err.Error()), nil
	}
	if err != nil {
		return "", nil, nil, err
	}
	found.join(p.found)
	return prepared, p.expressions, found, nil
}

// draftOf returns the draft that $schema names and its number, nil when it is none of the known ones.
func draftOf(named *value) (*jsonschema.Draft, int) {
	if named.kind != kindString {
		return nil, 0
	}
	wanted := strings.TrimSuffix(named.text, "#")
	_, wanted, _ = strings.Cut(wanted, "://")
	for version, d := range map[int]*jsonschema.Draft{
		4: jsonschema.Draft4, 6: jsonschema.Draft6, 7: jsonschema.Draft7, 2019: jsonschema.Draft2019, 2020: jsonschema.Draft2020,
	} {
		if _, known, _ := strings.Cut(d.URL(), "://"); known == wanted {
			return d, version
		}
	}
	return nil, 0
}

// pointerOf returns the JSON pointer in the fragment of a location.
func pointerOf(location string) string {
	_, fragment, _ := strings.Cut(location, "#")
	if pointer, err := url.PathUnescape(fragment); err == nil {
		return pointer
	}
	return fragment
}
