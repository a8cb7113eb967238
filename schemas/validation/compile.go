package validation

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"tutti/internal/base/cache"
	"tutti/schemas/jsontree"
	"tutti/schemas/pattern"
	"tutti/schemas/violation"
)

// Limits of the text of a dynamic schema. The compiler's work grows with the square of maxSubschemas.
const (
	maxSchemaBytes = 1 << 20
	maxSubschemas  = 10_000
	// maxKnownRegexes and maxKnownRegex bound the number and the length of the values of format regex whose validity is cached, because
	// checking one means compiling it.
	maxKnownRegexes = 256
	maxKnownRegex   = 4 << 10
	// schemaBytes is approximately the memory of one compiled subschema.
	schemaBytes = 2 << 10
)

// documentURL is the base of a schema without $id. It is never requested.
const documentURL = "https://tutti.invalid/schema"

// metaHost is the host in the ids of the drafts' meta-schemas, with the slash after it.
const metaHost = "json-schema.org/"

// errNotLoaded is returned instead of fetching a schema: its author could make the server call any address or read any file.
var errNotLoaded = errors.New("schemas are not fetched")

// ErrStopped ends a validation after Stop.
var ErrStopped = errors.New("the validation was stopped")

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	schema *jsonschema.Schema
	// quick is nil for a meta-schema.
	quick *quick
	// known are all schemas that can be reached from schema, by their locations.
	known map[string]*jsonschema.Schema
	// weight is the weight of the regular expressions (pattern.Expression.Weight).
	weight int
	// stop ends the validations in flight.
	stop *atomic.Bool
}

func newRules(schema *jsonschema.Schema, stop *atomic.Bool) *Schema {
	r := &Schema{schema: schema, known: map[string]*jsonschema.Schema{}, stop: stop}
	r.collect(schema)
	return r
}

// Bytes returns approximately how much memory the schema takes.
func (r *Schema) Bytes() int64 {
	return schemaBytes*int64(len(r.known)) + pattern.InstructionBytes*int64(r.weight)
}

// Stop ends all validations, those in flight too.
func (r *Schema) Stop() { r.stop.Store(true) }

func (r *Schema) collect(s *jsonschema.Schema) {
	if r.known[s.Location] != nil {
		return
	}
	r.known[s.Location] = s
	for _, e := range edgesOf(s) {
		r.collect(e.schema)
	}
}

// Validate returns the violations of a value: none only if the library says that it is valid, except for a schema that is validated with
// its meta-schema, whose expressions are checked elsewhere. Errors: jsontree.ErrTooMuchWork for a value whose names are too long, ErrStopped if the
// validations of the schema were stopped.
func (r *Schema) Validate(v *jsontree.Value) (*violation.List, error) {
	if err := v.CheckNames(); err != nil {
		return nil, err
	}
	if r.quick != nil && r.quick.decide(v, r.stop, 0) == valid && !r.stop.Load() {
		return &violation.List{}, nil
	}
	growStack()
	err := r.schema.Validate(v.Plain())
	switch failure, invalid := errors.AsType[*jsonschema.ValidationError](err); {
	case err == nil:
		return &violation.List{}, nil
	case invalid:
		found := r.violations(failure, v)
		if len(found.Violations) == 0 && r.stop != nil {
			return violation.NewList("", "schema", "is not valid"), nil
		}
		return found, nil
	case errors.Is(err, stopped):
		return nil, ErrStopped
	default:
		return nil, err
	}
}

// growStack makes the stack as large as most validations by the library need: growing it step by step, with the calls of the
// validation on it, takes a fifth of their time.
//
//go:noinline
func growStack() byte {
	var space [48 << 10]byte
	return space[len(os.Args)]
}

func newCompiler(x extensions) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft7
	c.AssertFormat = true
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errNotLoaded }
	maps.Copy(c.Formats, uriFormats())
	known := cache.NewLRU[string, bool](maxKnownRegexes)
	c.Formats["regex"] = func(v any) bool {
		text, ok := v.(string)
		if !ok {
			return true
		}
		if x.stop.Load() {
			panic(stopped)
		}
		valid, ok := known.Get(text)
		if !ok {
			_, err := pattern.Compile(text)
			valid = err == nil
			if len(text) <= maxKnownRegex {
				known.Put(text, valid, 1)
			}
		}
		return valid
	}
	c.RegisterExtension(ownKeyword, nil, x)
	return c
}

// Compile compiles a schema. For an invalid schema it returns violations with pointers into it; an error has another cause.
func Compile(text string) (*Schema, *violation.List, error) {
	return compile(text, &pattern.Set{})
}

// CompileStored compiles a schema that was registered before expressions were refused: one that is refused now means what Go says.
func CompileStored(text string) (*Schema, *violation.List, error) {
	return compile(text, &pattern.Set{Stored: true})
}

func compile(text string, used *pattern.Set) (*Schema, *violation.List, error) {
	tree, err := jsontree.Parse(text)
	if err != nil {
		return nil, violation.NewList("", "schema", "is no JSON schema: "+err.Error()), nil
	}
	if f := limits(&tree, text); f != nil {
		return nil, f, nil
	}
	prepared, f, err := wellFormed(&tree, text, used)
	if err != nil || len(f.Violations) > 0 {
		return nil, f, err
	}
	x := extensions{expressions: used, stop: &atomic.Bool{}}
	c := newCompiler(x)
	schema, err := compileText(c, prepared)
	if err != nil {
		return nil, explain(err, &tree), nil
	}
	if f := expansionViolations(schema); f != nil {
		return nil, f, nil
	}
	r := newRules(schema, x.stop)
	r.weight = used.Weight()
	for _, s := range r.known {
		takeOver(s)
	}
	r.quick = newQuick(schema, c.Formats)
	return r, nil, nil
}

// compileText compiles a schema. It converts a panic of the library, which some unexpected schemas cause, into an error.
func compileText(c *jsonschema.Compiler, text string) (_ *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	// No schema can refer to this URL, because limits rejects an $id without a path. The compiler recurses without end for a reference
	// to the URL of a resource that has another $id.
	at := "https://tutti.invalid/" + rand.Text()
	if err := c.AddResource(at, strings.NewReader(text)); err != nil {
		return nil, err
	}
	return c.Compile(at)
}

// limits returns the violation of a schema that is too large to compile, or whose meaning depends on the schemas that refer to it.
func limits(tree *jsontree.Value, text string) *violation.List {
	if len(text) > maxSchemaBytes {
		return violation.NewList("", "schema", "is larger than "+violation.Counted(maxSchemaBytes>>20, "MiB", "MiB"))
	}
	for _, name := range []string{"$id", "id"} {
		if id := tree.Member(name); id != nil && strings.HasPrefix(id.Text, "?") {
			return violation.NewList("/"+name, name, "has no path")
		}
	}
	var s census
	s.count(tree, true)
	switch {
	case s.subschemas > maxSubschemas:
		return violation.NewList("", "schema", "has more than "+violation.Counted(maxSubschemas, "object or boolean", "objects and booleans"))
	case s.dynamic && s.embedded:
		return violation.NewList("", "schema", "has $dynamicRef or $recursiveRef together with a nested $id, which is not supported; use $ref")
	case s.anchored && s.meta:
		return violation.NewList("", "schema", "has $dynamicAnchor or $recursiveAnchor together with a reference to a meta-schema, which is not supported")
	default:
		return nil
	}
}

type census struct {
	subschemas                        int
	dynamic, embedded, anchored, meta bool
}

func (s *census) count(v *jsontree.Value, root bool) {
	if v.Kind == jsontree.KindObject || v.Kind == jsontree.KindBool {
		s.subschemas++
	}
	for i := range v.Items() {
		s.count(&v.Items()[i], false)
	}
	for i := range v.Members() {
		m := &v.Members()[i]
		if m.Value.Kind == jsontree.KindString {
			s.dynamic = s.dynamic || m.Name == "$dynamicRef" || m.Name == "$recursiveRef"
			s.embedded = s.embedded || !root && (m.Name == "$id" || m.Name == "id")
			s.meta = s.meta || m.Name == "$ref" && strings.Contains(m.Value.Text, metaHost)
		}
		s.anchored = s.anchored || m.Name == "$dynamicAnchor" || m.Name == "$recursiveAnchor"
		s.count(&m.Value, false)
	}
}

// MetaViolations validates a schema, which is a part of text, with the meta-schema of its draft. It returns none for a schema that is
// too large to compile, which Compile reports.
func MetaViolations(tree *jsontree.Value, text string) (*violation.List, error) {
	if limits(tree, text[tree.From:tree.To]) != nil {
		return &violation.List{}, nil
	}
	_, found, err := wellFormed(tree, text, &pattern.Set{})
	return found, err
}

// wellFormed checks a schema with the meta-schema of its draft, and returns the text for the compiler. It adds the regular expressions of
// the schema to used.
func wellFormed(tree *jsontree.Value, text string, used *pattern.Set) (string, *violation.List, error) {
	draft, version := jsonschema.Draft7, 7
	if named := tree.Member("$schema"); named != nil {
		if draft, version = draftOf(named); draft == nil {
			return "", violation.NewList("/$schema", "$schema",
				"is not one of the drafts that are known: draft-04, draft-06, draft-07, 2019-09, 2020-12"), nil
		}
	}
	p := &preparation{text: text, version: version, found: &violation.List{}, anchors: map[string]string{}, expressions: used, enums: map[string]bool{}}
	prepared := string(p.schema(nil, tree, "", documentURL))
	if used.TooHeavy() {
		return "", violation.NewList("", "pattern", "has regular expressions that take too much memory together"), nil
	}
	if p.tooLarge {
		return "", p.found, nil
	}
	// The draft's own schema is precompiled and uses Go's regular expressions only: p reports the violations of expressions.
	meta, err := jsonschema.NewCompiler().Compile(draft.URL())
	if err != nil {
		return "", nil, fmt.Errorf("compiling a meta-schema: %w", err)
	}
	all, err := newRules(meta, nil).Validate(tree)
	if errors.Is(err, jsontree.ErrTooMuchWork) {
		return "", violation.NewList("", "schema", err.Error()), nil
	}
	if err != nil {
		return "", nil, err
	}
	// The library's meta-schemas of draft-06 and draft-07 are stricter than the drafts, and CONTRACT section 7 than draft-04.
	found := &violation.List{Truncated: all.Truncated}
	for _, v := range all.Violations {
		if !p.enums[v.Pointer] || v.Keyword != "minItems" && v.Keyword != "uniqueItems" {
			found.Add(v)
		}
	}
	found.Join(p.found)
	return prepared, found, nil
}

// draftOf returns the draft that $schema names and its number, nil for an unknown draft.
func draftOf(named *jsontree.Value) (*jsonschema.Draft, int) {
	if named.Kind != jsontree.KindString {
		return nil, 0
	}
	wanted := strings.TrimSuffix(named.Text, "#")
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

// SiblingsCount reports whether keywords beside a $ref have an effect in the draft of a schema.
func SiblingsCount(dynamic *jsontree.Value) bool {
	named := dynamic.Member("$schema")
	if named == nil {
		return false
	}
	_, version := draftOf(named)
	return version >= 2019
}

// pointerOf returns the JSON pointer in the fragment of a location.
func pointerOf(location string) string {
	_, fragment, _ := strings.Cut(location, "#")
	if pointer, err := url.PathUnescape(fragment); err == nil {
		return pointer
	}
	return fragment
}
