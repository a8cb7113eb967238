package validation

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"tutti/schemas/pattern"
	"tutti/schemas/violation"
)

// ownKeyword is an added keyword in the schema that the library compiles. It holds what the library must not compile: regular
// expressions, and an empty enum. Its members are pattern, patterns (each with its pattern and its schema), additionalProperties, which
// depends on the patterns, and nothing, which no value satisfies.
const ownKeyword = "tutti:own"

// stopped ends a validation whose time is over: the library converts a panic with it into the error of Validate.
const stopped = jsonschema.InfiniteLoopError("stopped")

// extensions compiles ownKeyword, and adds to every schema that applies other schemas a check whether the validation was stopped.
type extensions struct {
	expressions *pattern.Set
	stop        *atomic.Bool
}

var _ jsonschema.ExtCompiler = extensions{}

// Compile returns the extension of a schema, nil when it needs none.
func (x extensions) Compile(ctx jsonschema.CompilerContext, m map[string]any) (jsonschema.ExtSchema, error) {
	own, _ := m[ownKeyword].(map[string]any)
	if own == nil && !slices.ContainsFunc(applicators(), func(name string) bool { return m[name] != nil }) {
		return nil, nil
	}
	e := &extension{stop: x.stop, nothing: own["nothing"] != nil}
	if text, ok := own["pattern"].(string); ok {
		e.pattern = x.expressions.Known(text)
	}
	patterns, _ := own["patterns"].([]any)
	for i, p := range patterns {
		text, _ := p.(map[string]any)["pattern"].(string)
		schema, err := ctx.Compile(ownKeyword+"/patterns/"+strconv.Itoa(i)+"/schema", false)
		if err != nil {
			return nil, err
		}
		e.patterns = append(e.patterns, patternSchema{x.expressions.Known(text), schema})
	}
	if own["additionalProperties"] != nil {
		var err error
		if e.additional, err = ctx.Compile(ownKeyword+"/additionalProperties", false); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// applicators are the keywords that apply a schema to a value many times over.
func applicators() []string {
	return []string{
		"properties", "patternProperties", "additionalProperties", "items", "additionalItems", "prefixItems", "contains",
		"allOf", "anyOf", "oneOf", "not", "if", "$ref", "dependencies", "dependentSchemas", "propertyNames",
		"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef",
	}
}

type patternSchema struct {
	expression *pattern.Expression
	schema     *jsonschema.Schema
}

// extension has the checks of one schema that the library does not make: those of ownKeyword, those that apply one schema to any number of
// parts, which end after as many failures as are reported, and those of a property with an empty name.
type extension struct {
	stop *atomic.Bool
	// nothing is set for an empty enum.
	nothing    bool
	pattern    *pattern.Expression
	patterns   []patternSchema
	additional *jsonschema.Schema
	// named are the properties of the schema, to which additional does not apply; paths are their locations in the schema and in a value.
	named map[string]*jsonschema.Schema
	paths []propertyPath
	// items applies to the items from an index on; it is the schema of a keyword.
	items   *jsonschema.Schema
	from    int
	keyword string
	// names applies to the names of properties, unevaluated to an empty-named property that no other keyword evaluates: the library would
	// locate the failures of both at the object itself.
	names, unevaluated *jsonschema.Schema
}

// propertyPath has the name of a property as the library writes it in locations: below "properties", and in a value.
type propertyPath struct {
	name, location, pointer string
	schema                  *jsonschema.Schema
}

var _ jsonschema.ExtSchema = (*extension)(nil)

// takeOver moves the checks that the library would make without a limit of failures to the extension of a compiled schema.
func takeOver(s *jsonschema.Schema) {
	e, ok := s.Extensions[ownKeyword].(*extension)
	if !ok {
		return // it applies no other schemas, or it is a meta-schema
	}
	if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		e.additional, s.AdditionalProperties = additional, nil
	}
	// The library would escape the name of each property twice for each value.
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		pointer := escapeName(name)
		e.paths = append(e.paths, propertyPath{name, "properties/" + pointer, pointer, s.Properties[name]})
	}
	e.named, s.Properties = s.Properties, nil
	e.names, s.PropertyNames = s.PropertyNames, nil
	e.unevaluated = s.UnevaluatedProperties
	e.keyword = "items"
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		e.items, s.Items = items, nil
	case []*jsonschema.Schema:
		if additional, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
			e.items, e.from, e.keyword = additional, len(items), "additionalItems"
			s.AdditionalItems = nil
		}
	}
	if s.Items2020 != nil {
		e.items, e.from = s.Items2020, len(s.PrefixItems)
		s.Items2020 = nil
	}
}

// Validate checks a value. It panics with stopped once the validations of the schema were stopped.
func (e *extension) Validate(ctx jsonschema.ValidationContext, v any) error {
	f := applied{ctx: ctx, stop: e.stop}
	f.checkStop()
	if e.nothing {
		return ctx.Error("enum", "is empty")
	}
	switch v := v.(type) {
	case string:
		if e.pattern != nil && !e.pattern.Match(v, e.stop) {
			return ctx.Error("pattern", "does not match")
		}
	case []any:
		for i := e.from; e.items != nil && i < len(v); i++ {
			ctx.EvaluatedItem(i)
			f.apply(e.items, e.keyword, v[i], strconv.Itoa(i))
		}
	case map[string]any:
		for _, p := range e.paths {
			if part, ok := v[p.name]; ok {
				ctx.EvaluatedProp(p.name)
				f.apply(p.schema, p.location, part, p.pointer)
			}
		}
		if e.patterns != nil || e.additional != nil || e.names != nil {
			e.members(&f, v)
		}
		if part, ok := v[""]; ok && e.unevaluated != nil && unevaluated(ctx, "") {
			ctx.EvaluatedProp("")
			f.apply(e.unevaluated, "unevaluatedProperties", part, emptyName)
		}
	}
	return f.error()
}

func (e *extension) members(f *applied, object map[string]any) {
	names := slices.Collect(maps.Keys(object))
	if len(names) > violation.MaxViolations {
		slices.Sort(names) // so that the same failures are reported each time
	}
	for _, name := range names {
		if e.names != nil {
			f.apply(e.names, "propertyNames", name, escapeName(name))
		}
		_, known := e.named[name]
		for _, p := range e.patterns {
			if p.expression.Match(name, e.stop) {
				known = true
				f.ctx.EvaluatedProp(name)
				f.apply(p.schema, "patternProperties/-", object[name], escapeName(name))
			}
		}
		if !known && e.additional != nil {
			f.ctx.EvaluatedProp(name)
			f.apply(e.additional, "additionalProperties", object[name], escapeName(name))
		}
	}
}

// unevaluated reports whether no keyword has evaluated a property so far. The library does not export it.
func unevaluated(ctx jsonschema.ValidationContext, name string) bool {
	return reflect.ValueOf(ctx).FieldByName("result").FieldByName("unevalProps").MapIndex(reflect.ValueOf(name)).IsValid()
}

// applied collects the failures of the parts of one value.
type applied struct {
	ctx    jsonschema.ValidationContext
	stop   *atomic.Bool
	errs   []error
	failed int
}

func (f *applied) checkStop() {
	if f.stop.Load() {
		panic(stopped)
	}
}

// apply checks a part, unless there are enough failures.
func (f *applied) apply(s *jsonschema.Schema, path string, part any, pointer string) {
	if f.checkStop(); f.failed > violation.MaxViolations {
		return
	}
	if err := f.ctx.Validate(s, path, part, pointer); err != nil {
		f.errs = append(f.errs, err)
		f.failed += failuresIn(err)
	}
}

func (f *applied) error() error {
	if len(f.errs) == 0 {
		return nil
	}
	return jsonschema.ValidationError{}.Group(f.ctx.Error("", ""), f.errs...)
}

// failuresIn counts the failures in an error of the library.
func failuresIn(err error) int {
	e, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok || len(e.Causes) == 0 {
		return 1
	}
	n := 0
	for _, cause := range e.Causes {
		n += failuresIn(cause)
	}
	return n
}

// emptyName is the empty name in a location: the library would read an empty token as the object itself.
const emptyName = "~2"

// escapeName writes a name as the library writes it in a location, except for an empty name.
func escapeName(name string) string {
	if name == "" {
		return emptyName
	}
	return strings.NewReplacer("~", "~0", "/", "~1", "%", "%25").Replace(name)
}

// extensionOf returns the extension of a compiled schema, an empty one when it has none.
func extensionOf(s *jsonschema.Schema) *extension {
	if e, ok := s.Extensions[ownKeyword].(*extension); ok {
		return e
	}
	return &extension{}
}

// propertiesOf returns the properties of a compiled schema.
func propertiesOf(s *jsonschema.Schema) map[string]*jsonschema.Schema {
	if e := extensionOf(s); e.named != nil {
		return e.named
	}
	return s.Properties
}
