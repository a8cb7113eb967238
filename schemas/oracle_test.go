package schemas_test

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"tutti/schemas"
)

// TestAgainstTheLibrary asks random schemas about random values and compares with the library's own validator.
func TestAgainstTheLibrary(t *testing.T) {
	for _, draft := range []struct {
		name, url string
		modern    bool
		d         *jsonschema.Draft
	}{
		{"draft-04", "http://json-schema.org/draft-04/schema#", false, jsonschema.Draft4},
		{"draft-07", "http://json-schema.org/draft-07/schema#", false, jsonschema.Draft7},
		{"2019-09", "https://json-schema.org/draft/2019-09/schema", true, jsonschema.Draft2019},
		{"2020-12", "https://json-schema.org/draft/2020-12/schema", true, jsonschema.Draft2020},
	} {
		t.Run(draft.name, func(t *testing.T) {
			valid, invalid := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				g := generator{draft: draft.name, modern: draft.modern}
				schema := `{"$schema":"` + draft.url + `","definitions":{"a":` + g.schema(t, 2) + `,"b":` + g.schema(t, 1) + `},"allOf":[` + g.schema(t, 3) + `]}`
				text := g.value(t, 3)
				got, failure, faults, err := schemas.Check(t.Context(), schema, text)
				if err != nil {
					t.Fatal(err)
				}
				if failure != "" {
					if strings.Contains(failure, "refers to itself") {
						return
					}
					t.Fatalf("%s does not compile: %s", schema, failure)
				}
				want := libraryCheck(t, schema, text)
				if got != want {
					t.Fatalf("%s\nabout %s: valid %t, the library says %t\n%s", schema, text, got, want, strings.Join(faults, "\n"))
				}
				if want {
					valid++
				} else {
					invalid++
				}
			})
			if valid == 0 || invalid == 0 {
				t.Errorf("%d valid, %d invalid: the generator is one-sided", valid, invalid)
			}
		})
	}
}

func libraryCheck(t *rapid.T, schema, text string) bool {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://test.invalid/s", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("https://test.invalid/s")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(v) == nil
}

// generator writes random schemas and values over few names and constants, so that they meet.
type generator struct {
	draft  string
	modern bool
}

func (g generator) value(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]string{"null", "true", "false", "0", "1", "1.0", "-2.5", "3e0", "12345678901234567890", `""`, `"a"`, `"ab"`, `"2026-01-02"`}).Draw(t, "scalar")
	}
	if rapid.Bool().Draw(t, "array") {
		items := rapid.IntRange(0, 4).Draw(t, "items")
		var all []string
		for range items {
			all = append(all, g.value(t, depth-1))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	var all []string
	for _, name := range []string{"a", "b", "cc"} {
		if rapid.Bool().Draw(t, "has") {
			all = append(all, `"`+name+`":`+g.value(t, depth-1))
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

func (g generator) schemas(t *rapid.T, depth int) string {
	var all []string
	for range rapid.IntRange(1, 3).Draw(t, "schemas") {
		all = append(all, g.schema(t, depth))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func (g generator) schema(t *rapid.T, depth int) string {
	if depth == 0 {
		if g.draft != "draft-04" && rapid.IntRange(0, 4).Draw(t, "boolean") == 0 {
			return rapid.SampledFrom([]string{"true", "false"}).Draw(t, "boolean")
		}
		return "{" + g.leaf(t) + "}"
	}
	if rapid.IntRange(0, 6).Draw(t, "ref") == 0 {
		return `{"$ref":"#/definitions/` + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "target") + `"}`
	}
	words := map[string]string{}
	var order []string
	for range rapid.IntRange(1, 3).Draw(t, "keywords") {
		word := g.keyword(t, depth-1)
		name, _, _ := strings.Cut(word, ":")
		if _, ok := words[name]; !ok {
			order = append(order, name)
			words[name] = word
		}
	}
	var all []string
	for _, name := range order {
		all = append(all, words[name])
	}
	return "{" + strings.Join(all, ",") + "}"
}

func (g generator) leaf(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		`"type":"object"`, `"type":"array"`, `"type":"string"`, `"type":"integer"`, `"type":["number","null"]`, `"type":["object","array"]`,
		`"minimum":1`, `"maximum":1`, `"multipleOf":0.5`, `"minLength":1`, `"maxLength":1`, `"pattern":"^a"`, `"format":"date"`,
		`"enum":[1,"a",null,[]]`, `"minItems":2`, `"maxItems":2`, `"uniqueItems":true`, `"minProperties":1`, `"maxProperties":1`, `"required":["a","b"]`,
	}).Draw(t, "leaf")
}

func (g generator) keyword(t *rapid.T, depth int) string {
	words := []string{"leaf", "properties", "patternProperties", "additionalProperties", "items", "itemsList", "allOf", "anyOf", "oneOf", "not", "dependencies"}
	if g.draft != "draft-04" {
		words = append(words, "const", "contains", "propertyNames", "if", "exclusive")
	}
	if g.modern {
		words = append(words, "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "minContains")
	}
	s := func() string { return g.schema(t, depth) }
	switch word := rapid.SampledFrom(words).Draw(t, "keyword"); word {
	case "leaf":
		return g.leaf(t)
	case "properties":
		return `"properties":{"a":` + s() + `,"cc":` + s() + `}`
	case "patternProperties":
		return `"patternProperties":{"^[ab]$":` + s() + `}`
	case "itemsList":
		if g.draft == "2020-12" {
			return `"prefixItems":` + g.schemas(t, depth)
		}
		return `"items":` + g.schemas(t, depth) + `,"additionalItems":` + s()
	case "allOf", "anyOf", "oneOf":
		return `"` + word + `":` + g.schemas(t, depth)
	case "dependencies":
		return `"dependencies":{"a":["b"],"b":` + s() + `}`
	case "const":
		return `"const":` + g.value(t, 1)
	case "if":
		return `"if":` + s() + `,"then":` + s() + `,"else":` + s()
	case "exclusive":
		return `"exclusiveMinimum":0,"exclusiveMaximum":3`
	case "dependentRequired":
		return `"dependentRequired":{"a":["b"]}`
	case "dependentSchemas":
		return `"dependentSchemas":{"a":` + s() + `}`
	case "minContains":
		return `"contains":` + s() + `,"minContains":` + rapid.SampledFrom([]string{"0", "1", "2"}).Draw(t, "min") + `,"maxContains":2`
	default:
		return `"` + word + `":` + s()
	}
}
