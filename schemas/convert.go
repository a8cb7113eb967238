package schemas

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// metaHost is where the meta-schemas of the drafts have their ids.
const metaHost = "json-schema.org/"

// converter turns what the library compiled into rules.
type converter struct {
	compiler *jsonschema.Compiler
	done     map[*jsonschema.Schema]*rule
}

// rule converts s and all that it leads to.
func (c *converter) rule(s *jsonschema.Schema) (*rule, error) {
	if s == nil {
		return nil, nil
	}
	if r, ok := c.done[s]; ok {
		return r, nil
	}
	r := &rule{location: s.Location, always: s.Bool}
	c.done[s] = r
	if s.Bool != nil {
		return r, nil
	}
	if s.Ref != nil && s.DraftVersion < 2019 {
		// Up to draft-07 nothing beside a $ref counts.
		target, err := c.rule(s.Ref)
		r.refs = []*rule{target}
		return r, err
	}
	return r, c.fill(r, s)
}

func (c *converter) fill(r *rule, s *jsonschema.Schema) error {
	if s.Types != nil {
		r.types = typeSetOf(s.Types.ToStrings())
	}
	if s.Const != nil {
		r.constant = newChoice([]any{*s.Const})
	}
	if s.Enum != nil {
		r.enum = newChoice(s.Enum.Values)
	}
	r.format = formatOf(s)
	if err := c.references(r, s); err != nil {
		return err
	}
	if s.MinLength != nil || s.MaxLength != nil || s.Pattern != nil {
		r.text = &textRule{min: s.MinLength, max: s.MaxLength, pattern: s.Pattern}
	}
	n := numericRule{
		min: newBound(s.Minimum), max: newBound(s.Maximum), above: newBound(s.ExclusiveMinimum),
		below: newBound(s.ExclusiveMaximum), multiple: newBound(s.MultipleOf),
	}
	if n != (numericRule{}) {
		r.numeric = &n
	}
	w := c.work()
	r.allOf, r.anyOf, r.oneOf = w.all(s.AllOf), w.all(s.AnyOf), w.all(s.OneOf)
	r.not, r.condition, r.then, r.otherwise = w.one(s.Not), w.one(s.If), w.one(s.Then), w.one(s.Else)
	r.unevaluatedProperties, r.unevaluatedItems = w.one(s.UnevaluatedProperties), w.one(s.UnevaluatedItems)
	r.object, r.array = w.object(s), w.array(s)
	return w.err
}

// formatOf gives the format with tutti's regular expressions in it: the meta-schemas were compiled with Go's alone.
func formatOf(s *jsonschema.Schema) *jsonschema.Format {
	if s.Format == nil || s.Format.Name != "regex" {
		return s.Format
	}
	return &jsonschema.Format{Name: "regex", Validate: func(v any) error {
		text, ok := v.(string)
		if !ok {
			return nil
		}
		_, err := compileRegex(text)
		return err
	}}
}

// references converts $ref, $recursiveRef and $dynamicRef. In a document of one resource the last two mean what $ref
// does; in a meta-schema they mean its whole.
func (c *converter) references(r *rule, s *jsonschema.Schema) error {
	targets := []*jsonschema.Schema{s.Ref, s.RecursiveRef}
	if s.DynamicRef != nil {
		targets = append(targets, s.DynamicRef.Ref)
	}
	for i, target := range targets {
		if target == nil {
			continue
		}
		if whole := metaSchemaOf(s.Location); i > 0 && whole != "" {
			var err error
			if target, err = c.compiler.Compile(whole); err != nil {
				return fmt.Errorf("compiling a meta-schema: %w", err)
			}
		}
		converted, err := c.rule(target)
		if err != nil {
			return err
		}
		r.refs = append(r.refs, converted)
	}
	return nil
}

// metaSchemaOf gives the URL of the meta-schema that a location is in, "" when it is in none.
func metaSchemaOf(location string) string {
	_, rest, ok := strings.Cut(location, "://"+metaHost)
	if !ok {
		return ""
	}
	for _, d := range []*jsonschema.Draft{jsonschema.Draft2019, jsonschema.Draft2020} {
		url := d.String()
		_, path, _ := strings.Cut(url, "://"+metaHost)
		if strings.HasPrefix(rest, strings.TrimSuffix(path, "schema")) {
			return url
		}
	}
	return ""
}

// conversion keeps the first error of several conversions.
type conversion struct {
	*converter
	err error
}

func (c *converter) work() *conversion { return &conversion{converter: c} }

func (w *conversion) one(s *jsonschema.Schema) *rule {
	if w.err != nil {
		return nil
	}
	r, err := w.rule(s)
	w.err = err
	return r
}

func (w *conversion) all(schemas []*jsonschema.Schema) []*rule {
	var rules []*rule
	for _, s := range schemas {
		rules = append(rules, w.one(s))
	}
	return rules
}

// either converts what is a schema or a boolean.
func (w *conversion) either(v any, location string) *rule {
	switch v := v.(type) {
	case bool:
		return &rule{always: &v, location: location}
	case *jsonschema.Schema:
		return w.one(v)
	default:
		return nil
	}
}

func (w *conversion) object(s *jsonschema.Schema) *objectRule {
	o := &objectRule{min: s.MinProperties, max: s.MaxProperties, required: s.Required}
	if len(s.Properties) > 0 {
		o.properties = make(map[string]*rule, len(s.Properties))
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			o.properties[name] = w.one(s.Properties[name])
		}
	}
	for regex, schema := range s.PatternProperties {
		o.patterns = append(o.patterns, patternRule{regex, w.one(schema)})
	}
	slices.SortFunc(o.patterns, func(a, b patternRule) int { return strings.Compare(a.regex.String(), b.regex.String()) })
	o.additional = w.either(s.AdditionalProperties, s.Location)
	o.names = w.one(s.PropertyNames)
	o.requirementKeyword = "dependentRequired"
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		switch d := s.Dependencies[name].(type) {
		case []string:
			o.requirementKeyword = "dependencies"
			o.requirements = append(o.requirements, requirement{name, d})
		case *jsonschema.Schema:
			o.dependents = append(o.dependents, dependent{name, w.one(d)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentRequired)) {
		o.requirements = append(o.requirements, requirement{name, s.DependentRequired[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		o.dependents = append(o.dependents, dependent{name, w.one(s.DependentSchemas[name])})
	}
	if o.empty() {
		return nil
	}
	return o
}

func (o *objectRule) empty() bool {
	return o.min == nil && o.max == nil && o.required == nil && o.properties == nil && o.patterns == nil &&
		o.additional == nil && o.names == nil && o.requirements == nil && o.dependents == nil
}

func (w *conversion) array(s *jsonschema.Schema) *arrayRule {
	a := &arrayRule{
		min: s.MinItems, max: s.MaxItems, unique: s.UniqueItems, restKeyword: "items",
		contains: w.one(s.Contains), minContains: 1, maxContains: s.MaxContains,
		containsEvaluates: s.DraftVersion >= 2020,
	}
	if s.MinContains != nil {
		a.minContains = *s.MinContains
	}
	if s.DraftVersion >= 2020 {
		a.prefix, a.rest = w.all(s.PrefixItems), w.one(s.Items2020)
	} else {
		switch items := s.Items.(type) {
		case *jsonschema.Schema:
			a.rest = w.one(items)
		case []*jsonschema.Schema:
			a.prefix = w.all(items)
			a.rest, a.restKeyword = w.either(s.AdditionalItems, s.Location), "additionalItems"
		}
	}
	if a.min == nil && a.max == nil && !a.unique && a.prefix == nil && a.rest == nil && a.contains == nil {
		return nil
	}
	return a
}
