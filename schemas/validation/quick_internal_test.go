package validation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"pgregory.net/rapid"

	"tutti/schemas/jsontree"
)

// drawValue draws a value of a few numbers, texts, and names, so that it satisfies some schemas and not others.
func drawValue(t *rapid.T, depth int) string {
	kinds := []string{"null", "true", "false", "0", "1", "1.0", "2.5", "3", "-1", "1e2", "100000000000000000000", `""`, `"a"`, `"bb"`, `"ä😀"`, `"2024-01-02"`, `"x"`}
	if depth > 0 {
		kinds = append(kinds, "[", "[", "[", "{", "{", "{", "{")
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "value"); kind {
	case "[":
		var items []string
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			items = append(items, drawValue(t, depth-1))
		}
		return "[" + strings.Join(items, ",") + "]"
	case "{":
		var members []string
		for _, name := range drawNames(t, 4) {
			members = append(members, fmt.Sprintf("%q:%s", name, drawValue(t, depth-1)))
		}
		return "{" + strings.Join(members, ",") + "}"
	default:
		return kind
	}
}

func drawNames(t *rapid.T, most int) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "ab", "", "c/~%"}), 0, most, rapid.ID[string]).Draw(t, "names")
}

// keywords returns the keywords of a drawn schema, with what draws their values.
func keywords() map[string]func(t *rapid.T, depth int) string {
	number := func(t *rapid.T, _ int) string {
		return rapid.SampledFrom([]string{"0", "1", "2.5", "2.50", "3", "1e2"}).Draw(t, "number")
	}
	count := func(t *rapid.T, _ int) string { return fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "count")) }
	list := func(t *rapid.T, depth int) string {
		var all []string
		for range rapid.IntRange(1, 3).Draw(t, "schemas") {
			all = append(all, drawSchema(t, depth-1))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	one := func(t *rapid.T, depth int) string { return drawSchema(t, depth-1) }
	named := func(names func(*rapid.T) []string) func(*rapid.T, int) string {
		return func(t *rapid.T, depth int) string {
			var all []string
			for _, name := range names(t) {
				all = append(all, fmt.Sprintf("%q:%s", name, drawSchema(t, depth-1)))
			}
			return "{" + strings.Join(all, ",") + "}"
		}
	}
	plain := func(t *rapid.T) []string { return drawNames(t, 3) }
	return map[string]func(t *rapid.T, depth int) string{
		"type": func(t *rapid.T, _ int) string {
			return rapid.SampledFrom([]string{
				`"object"`, `"array"`, `"string"`, `"number"`, `"integer"`, `"null"`, `["integer","string"]`, `["number","integer"]`, `["object","array","boolean"]`,
			}).Draw(t, "type")
		},
		"enum": func(t *rapid.T, _ int) string {
			return "[" + drawValue(t, 1) + `,"only once",` + drawValue(t, 1)[:0] + "7]"
		},
		"const":   func(t *rapid.T, _ int) string { return drawValue(t, 1) },
		"minimum": number, "maximum": number, "exclusiveMinimum": number, "exclusiveMaximum": number,
		"multipleOf": func(t *rapid.T, _ int) string {
			return rapid.SampledFrom([]string{"0.5", "1", "3"}).Draw(t, "multiple")
		},
		"minLength": count, "maxLength": count, "minItems": count, "maxItems": count, "minProperties": count, "maxProperties": count,
		"pattern": func(t *rapid.T, _ int) string {
			return rapid.SampledFrom([]string{`"^a"`, `"b"`, `"^(?!x)"`}).Draw(t, "pattern")
		},
		"format": func(t *rapid.T, _ int) string {
			return rapid.SampledFrom([]string{`"date"`, `"uri"`, `"regex"`, `"other"`}).Draw(t, "format")
		},
		"uniqueItems": func(*rapid.T, int) string { return "true" },
		"required": func(t *rapid.T, _ int) string {
			return fmt.Sprintf("[%q]", rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "name"))
		},
		"allOf": list, "anyOf": list, "oneOf": list, "not": one, "if": one, "then": one, "else": one,
		"items": func(t *rapid.T, depth int) string {
			if rapid.Bool().Draw(t, "tuple") {
				return list(t, depth)
			}
			return one(t, depth)
		},
		"additionalItems": one, "contains": one, "additionalProperties": one, "propertyNames": one,
		"properties": named(plain),
		"patternProperties": named(func(t *rapid.T) []string {
			return []string{rapid.SampledFrom([]string{"^a", "b$", "."}).Draw(t, "expression")}
		}),
		"dependencies": named(plain),
		"$ref": func(t *rapid.T, _ int) string {
			return rapid.SampledFrom([]string{`"#"`, `"#/definitions/d"`}).Draw(t, "ref")
		},
	}
}

// drawSchema draws a schema with few keywords, so that values satisfy it.
func drawSchema(t *rapid.T, depth int) string {
	all := keywords()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	if depth <= 0 {
		names = []string{"type", "enum", "minimum", "minLength", "maxItems", "required", "format", "$ref"}
	}
	if rapid.IntRange(0, 9).Draw(t, "boolean") == 0 {
		return rapid.SampledFrom([]string{"true", "false"}).Draw(t, "schema")
	}
	drawn := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID[string]).Draw(t, "keywords")
	for name, others := range map[string][]string{"if": {"then", "else"}, "additionalProperties": {"properties"}, "additionalItems": {"items"}} {
		for _, other := range others { // without which it means little
			if slices.Contains(drawn, name) && !slices.Contains(drawn, other) {
				drawn = append(drawn, other)
			}
		}
	}
	slices.Sort(drawn)
	var members []string
	for _, name := range drawn {
		members = append(members, fmt.Sprintf("%q:%s", name, all[name](t, depth)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestQuick: where quick decides it says what the library says, for drawn schemas of two drafts and values.
func TestQuick(t *testing.T) {
	counts := map[verdict]int{}
	check := func(t *rapid.T) {
		text := drawSchema(t, 3)
		if strings.HasPrefix(text, "{") {
			draft := rapid.SampledFrom([]string{"http://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2019-09/schema"}).Draw(t, "draft")
			text = fmt.Sprintf(`{"$schema":%q,"definitions":{"d":%s}`, draft, drawSchema(t, 1)) + strings.Replace(","+text[1:], ",}", "}", 1)
		}
		r, _, err := Compile(text)
		if err != nil {
			t.Fatal(text, err)
		}
		if r == nil {
			return // it refers to itself
		}
		for range 10 {
			value := drawValue(t, 3)
			v, err := jsontree.Parse(value)
			if err != nil {
				t.Fatal(value, err)
			}
			is := r.quick.decide(&v, r.stop, 0)
			counts[is]++
			if err := r.schema.Validate(v.Plain()); is != undecided && (err == nil) != (is == valid) {
				t.Fatalf("%s by %s: quick says valid: %v, the library %v", value, text, is == valid, err)
			}
		}
	}
	for range 20 {
		rapid.Check(t, check)
	}
	if counts[valid] < 5000 || counts[invalid] < 2000 {
		t.Errorf("only %d values are valid, and %d are not", counts[valid], counts[invalid])
	}
	t.Log(counts)
}

// TestQuickKnowsKeywords: quick handles each member of the library's schema, or leaves the schemas that have it to the library.
func TestQuickKnowsKeywords(t *testing.T) {
	handled := []string{
		"Location", "Draft", "Format", "Always", "Ref", "RecursiveAnchor", "DynamicAnchor", "Types", "Constant", "Enum", "Not", "AllOf", "AnyOf",
		"OneOf", "If", "Then", "Else", "MinProperties", "MaxProperties", "Required", "MinItems", "MaxItems", "UniqueItems", "Items", "PrefixItems",
		"ContainsEval", "MinContains", "MaxContains", "MinLength", "MaxLength", "Minimum", "ExclusiveMinimum", "Maximum", "ExclusiveMaximum", "MultipleOf",
		"Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated", "Extensions",
	}
	kind := reflect.TypeFor[jsonschema.Schema]()
	for i := range kind.NumField() {
		field := kind.Field(i)
		if !field.IsExported() || slices.Contains(handled, field.Name) {
			continue
		}
		s := &jsonschema.Schema{}
		value := reflect.ValueOf(s).Elem().Field(i)
		switch field.Type.Kind() {
		case reflect.Pointer:
			value.Set(reflect.New(field.Type.Elem()))
		case reflect.Map:
			value.Set(reflect.MakeMap(field.Type))
			value.SetMapIndex(reflect.New(field.Type.Key()).Elem(), reflect.New(field.Type.Elem()).Elem())
		case reflect.String:
			value.SetString("x")
		case reflect.Bool:
			value.SetBool(true)
		case reflect.Interface:
			value.Set(reflect.ValueOf(&jsonschema.Schema{}))
		default:
			t.Errorf("%s is a %s", field.Name, field.Type)
		}
		if !hasRare(s) {
			t.Errorf("the keyword of %s is ignored", field.Name)
		}
	}
}
