package validation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/schemas/jsontree"
	"tutti/schemas/validation"
	"tutti/schemas/violation"
)

// drafts are all that a schema may be of.
func drafts() []string {
	return []string{
		"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-07/schema#",
		"https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema",
	}
}

// compile compiles the schema of a draft for objects with properties.
func compile(t *testing.T, draft, properties string) *validation.Schema {
	t.Helper()
	s, found, err := validation.Compile(`{"$schema":"` + draft + `","properties":{` + properties + `}}`)
	if err != nil || found != nil {
		t.Fatalf("%v: %s", err, lines(found))
	}
	return s
}

// check returns the violations of a value, "" if it is valid.
func check(t *testing.T, s *validation.Schema, value string) string {
	t.Helper()
	tree, err := jsontree.Parse(value)
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.Validate(&tree)
	if err != nil {
		t.Fatal(err)
	}
	return lines(found)
}

// lines writes violations one a line.
func lines(found *violation.List) string {
	var all []string
	if found != nil {
		for _, v := range found.Violations {
			all = append(all, v.Pointer+" | "+v.Keyword+" | "+v.Message)
		}
	}
	return strings.Join(all, "\n")
}

// TestEmptyEnum: an empty enum registers in every draft, and no value is valid.
func TestEmptyEnum(t *testing.T) {
	for _, draft := range drafts() {
		t.Run(draft, func(t *testing.T) {
			s := compile(t, draft, `"v":{"enum":[]},"w":{"items":{"anyOf":[{"enum":[]},{"minimum":5}]}}`)
			if got := check(t, s, `{"w":[5]}`); got != "" {
				t.Error(got)
			}
			for _, value := range []string{`"x"`, `null`, `{}`, `[]`, `0`, `false`} {
				if diff := cmp.Diff("/v | enum | has no valid value: the enum of the schema is empty", check(t, s, `{"v":`+value+`}`)); diff != "" {
					t.Error(value, diff)
				}
			}
			if got := check(t, s, `{"w":[1]}`); got != "/w/0 | minimum | must be at least 5" {
				t.Error(got)
			}
		})
	}
	t.Run("equal values", func(t *testing.T) {
		for _, draft := range drafts()[1:] {
			s := compile(t, draft, `"v":{"enum":["x","y","x"]}`)
			if got := check(t, s, `{"v":"z"}`); got != `/v | enum | must be one of "x", "y"` && got != `/v | enum | must be one of "x", "y", "x"` {
				t.Error(draft, got)
			}
		}
	})
}

// TestFormatURI: the format is asserted in every draft, and is that of RFC 3986.
func TestFormatURI(t *testing.T) {
	var cases []struct {
		Value string
		Valid bool
	}
	text, err := os.ReadFile("testdata/schema-format-uri.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, draft := range drafts() {
		t.Run(draft, func(t *testing.T) {
			s := compile(t, draft, `"v":{"format":"uri"}`)
			for _, c := range cases {
				value, _ := json.Marshal(c.Value)
				if got := check(t, s, `{"v":`+string(value)+`}`); (got == "") != c.Valid {
					t.Errorf("%s: %s", c.Value, got)
				}
			}
		})
	}
	s := compile(t, drafts()[2], `"uri":{"format":"uri"},"ref":{"format":"uri-reference"},"iri":{"format":"iri"},"iriref":{"format":"iri-reference"}`)
	for _, c := range []struct{ value, valid string }{
		{"http://a/é", "iri iriref"},
		{"http://é.example/?é", "iri iriref"},
		{"http://a/\U000E0001", ""},
		{"http://a/?\uE000", "iri iriref"},
		{"http://a/\uE000", ""},
		{"é", "iriref"},
		{"a", "ref iriref"},
		{"", "ref iriref"},
		{"//example.org/a", "ref iriref"},
		{"a b", ""},
		{"a/b:c", "ref iriref"},
		{":a", ""},
		{"1a:b", ""},
		{"http://a/%zz", ""},
		{"http://a/%2", ""},
		{"http://[v1.a:b]/", "uri ref iri iriref"},
		{"http://[fe80::1%25eth0]/", ""},
		{"http://[::ffff:1.2.3.4]", "uri ref iri iriref"},
		{"http://[1.2.3.4]", ""},
		{"http://user:p@host:80", "uri ref iri iriref"},
		{"file:///a", "uri ref iri iriref"},
		{"http://a/b\n", ""},
	} {
		for _, format := range []string{"uri", "ref", "iri", "iriref"} {
			value, _ := json.Marshal(c.value)
			got := check(t, s, `{"`+format+`":`+string(value)+`}`) == ""
			if want := strings.Contains(" "+c.valid+" ", " "+format+" "); got != want {
				t.Errorf("%q as %s: valid %t, want %t", c.value, format, got, want)
			}
		}
	}
}

// TestViolationsOnce: a violation below a keyword that applies a schema to the same value is reported once, where it is, also for a property
// whose name is empty.
func TestViolationsOnce(t *testing.T) {
	const typed = `{"properties":{"a":{"type":"string"}}}`
	for _, c := range []struct{ name, schema, value, want string }{
		{"then", `{"if":{"required":["a"]},"then":` + typed + `,"unevaluatedProperties":false}`, `{"a":1}`, "/d/a | type | must be a string, not a number"},
		{"else", `{"if":{"required":["b"]},"else":` + typed + `,"unevaluatedProperties":false}`, `{"a":1}`, "/d/a | type | must be a string, not a number"},
		{"allOf", `{"allOf":[` + typed + `],"unevaluatedProperties":false}`, `{"a":1,"q":1}`, "/d/a | type | must be a string, not a number\n/d/q | unevaluatedProperties | is not a property that the schema allows"},
		{"items", `{"if":true,"then":{"items":{"type":"string"}},"unevaluatedItems":false}`, `["x",1]`, "/d/1 | type | must be a string, not a number"},
		{"prefix", `{"if":true,"then":{"prefixItems":[{"type":"string"}]},"unevaluatedItems":false}`, `[1,1]`, "/d/0 | type | must be a string, not a number\n/d/1 | unevaluatedItems | is an item more than the schema allows"},
		{"another alternative", `{"oneOf":[{"properties":{"a":true},"required":["a","c"]},{"required":["b"]}],"unevaluatedProperties":false}`, `{"a":1,"b":1}`, "/d/a | unevaluatedProperties | is not a property that the schema allows\n/d/b | unevaluatedProperties | is not a property that the schema allows"},
		{"an empty name", `{"unevaluatedProperties":{"required":["a"]}}`, `{"":{},"a":{"a":1}}`, `/d/ | required | the property "a" is missing`},
		{"an empty name that is evaluated", `{"allOf":[{"properties":{"":true}}],"unevaluatedProperties":{"required":["a"]}}`, `{"":{},"a":{"a":1}}`, ""},
		{"an empty name below another", `{"unevaluatedProperties":{"unevaluatedProperties":{"type":"string"}}}`, `{"":{"":1,"b":1}}`, "/d// | type | must be a string, not a number\n/d//b | type | must be a string, not a number"},
		{"no empty name", `{"propertyNames":{"minLength":1}}`, `{"":1}`, "/d/ | propertyNames | its name must have at least 1 character, not 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, draft := range drafts()[3:] {
				if c.name == "prefix" && draft == drafts()[3] {
					continue // prefixItems is of 2020-12
				}
				s := compile(t, draft, `"d":`+c.schema)
				if diff := cmp.Diff(c.want, check(t, s, `{"d":`+c.value+`}`)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestExpressionsOfECMA262: expressions mean what ECMA-262 says wherever a schema has one, or are refused by name.
func TestExpressionsOfECMA262(t *testing.T) {
	for _, c := range []struct{ pattern, value string }{
		{`^\\s$`, "\u00a0"}, {`^\\s$`, "\ufeff"}, {`^[\\s]$`, "\v"}, {`^[^.]$`, "\u2028"}, {`^\\p{Script=Greek}+$`, "αβγ"}, {`^(?!.)\\n`, "\n"},
	} {
		for _, schema := range []string{`{"pattern":"` + c.pattern + `"}`, `{"patternProperties":{"` + c.pattern + `":true},"additionalProperties":false}`, `{"propertyNames":{"pattern":"` + c.pattern + `"}}`} {
			value, _ := json.Marshal(c.value)
			if !strings.HasPrefix(schema, `{"pattern"`) {
				value = []byte(`{` + string(value) + `:1}`)
			}
			s := compile(t, drafts()[2], `"v":`+schema)
			if got := check(t, s, `{"v":`+string(value)+`}`); got != "" {
				t.Errorf("%s %q: %s", schema, c.value, got)
			}
		}
	}
	for _, c := range []struct{ pattern, value string }{{`^.$`, "\r"}, {`^.$`, "\u2029"}, {`^a$`, "a\n"}, {`^\\w$`, "é"}, {`(?=.*\\bb)`, "éb1"}} {
		s := compile(t, drafts()[2], `"v":{"pattern":"`+c.pattern+`"}`)
		value, _ := json.Marshal(c.value)
		if got := check(t, s, `{"v":`+string(value)+`}`); (got == "") != (c.value == "éb1") {
			t.Errorf("%s %q: %s", c.pattern, c.value, got)
		}
	}
	for _, c := range []struct{ pattern, want string }{
		{`a\\z`, `it has \z, which ECMA-262 does not know; the end of a text is $`},
		{`^[[:alpha:]]+$`, `it has a class of POSIX, such as [:alpha:], which ECMA-262 does not know; name the characters, or use \p{L}`},
	} {
		text := `{"properties":{"v":{"pattern":"` + c.pattern + `"}}}`
		_, found, err := validation.Compile(text)
		if diff := cmp.Diff("/properties/v/pattern | format | is not a valid regular expression: "+c.want, lines(found)); err != nil || diff != "" {
			t.Error(err, diff)
		}
		// A version that was registered before stays, with the meaning of before.
		stored, found, err := validation.CompileStored(text)
		if err != nil || found != nil {
			t.Fatal(err, lines(found))
		}
		for value, valid := range map[string]bool{"a": true, "1": false} {
			if got := check(t, stored, `{"v":"`+value+`"}`); (got == "") != valid {
				t.Errorf("%s of a stored version: %q: %s", c.pattern, value, got)
			}
		}
	}
}

// TestExpressionsAreBoundedBeforeTheyAreCompiled: what is refused has not taken its memory first.
func TestExpressionsAreBoundedBeforeTheyAreCompiled(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, found, err := validation.Compile(`{"properties":{"d":{"pattern":"` + strings.Repeat("a{999}", 2700) + `"}}}`)
	runtime.ReadMemStats(&after)
	if got := lines(found); err != nil || !strings.HasPrefix(got, "/properties/d/pattern | format | is a regular expression that is too large") {
		t.Error(err, got)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 64 {
		t.Errorf("it took %d MiB to refuse it", took)
	}
}

// TestMovedExpressions: the rules beside an expression that the library cannot compile hold as if it could.
func TestMovedExpressions(t *testing.T) {
	const all = `{"properties":{"a":{"type":"string"}},"patternProperties":{"^(?!x)b":{"type":"null"},"^c":{"minimum":1}},"additionalProperties":`
	for _, c := range []struct{ name, schema, value, want string }{
		{"a key", all + `false}`, `{"a":1,"b1":1,"c":0,"":0,"a/~%":0}`, "/d/a | type | must be a string, not a number\n" +
			"/d/b1 | type | must be null, not a number\n/d/c | minimum | must be at least 1\n" +
			"/d/ | additionalProperties | is not a property that the schema allows\n/d/a~1~0% | additionalProperties | is not a property that the schema allows"},
		{"the other properties", all + `{"type":"boolean"}}`, `{"a":"","b1":null,"c":1,"e":1}`, "/d/e | type | must be a boolean, not a number"},
		{"any other properties", all + `true}`, `{"a":"","b1":null,"c":1,"e":1}`, ""},
		{"a name for one is not a name for all", `{"patternProperties":{"^(?!x)":{"required":["y"]}}}`, `{"x":{},"z":{}}`, `/d/z | required | the property "y" is missing`},
		{"with another expression beside it", `{"pattern":"^(?=a)","minLength":3}`, `"b"`, "/d | minLength | must have at least 3 characters, not 1\n/d | pattern | must match the pattern ^(?=a)"},
		{"as the name of properties", `{"propertyNames":{"pattern":"^(?!x)"}}`, `{"x":1}`, "/d/x | propertyNames | its name must match the pattern ^(?!x)"},
		{"in an alternative", `{"anyOf":[{"pattern":"^(?!x)"},{"type":"null"}]}`, `"y"`, ""},
		{"in values", `{"enum":[{"pattern":"^(?!x)"}]}`, `{"pattern":"^(?!x)"}`, ""},
		{"beside what is not evaluated", `{"allOf":[{"patternProperties":{"^(?!x)a":{}}}],"unevaluatedProperties":false}`, `{"a":1,"x":1}`, "/d/x | unevaluatedProperties | is not a property that the schema allows"},
		{"of a property of this name", `{"properties":{"pattern":{"type":"string"}}}`, `{"pattern":1}`, "/d/pattern | type | must be a string, not a number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := compile(t, drafts()[4], `"d":`+c.schema)
			if diff := cmp.Diff(c.want, check(t, s, `{"d":`+c.value+`}`)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestExpansion: a schema that the library would take hours for is refused, and a recursive one that it takes little for is not.
func TestExpansion(t *testing.T) {
	const twice = " | $ref | recurses to the same part of a value in two ways, so that the number of checks would double at each level"
	const n = "/definitions/n" + twice
	const large = " | schema | leads to more than 100000 schemas, where a $ref counts each time it is reached"
	doubling := func(keyword, end string) string {
		var all strings.Builder
		for i := range 40 {
			fmt.Fprintf(&all, `"d%d":{"%s":[{"$ref":"#/definitions/d%d"},{"$ref":"#/definitions/d%d"}]},`, i, keyword, i+1, i+1)
		}
		return `"n":{"$ref":"#/definitions/d0"},` + all.String() + `"d40":` + end
	}
	chain := func(length int) string {
		var all strings.Builder
		for i := range length {
			fmt.Fprintf(&all, `"d%d":{"$ref":"#/definitions/d%d"},`, i, i+1)
		}
		return `"n":{"items":{"$ref":"#/definitions/d0"}},` + all.String() + fmt.Sprintf(`"d%d":{}`, length)
	}
	const r = `{"$ref":"#/definitions/n"}`
	for _, c := range []struct{ name, definitions, want string }{
		{"allOf that doubles", doubling("allOf", "{}"), large},
		{"anyOf that doubles", doubling("anyOf", "false"), large},
		{"items that double", strings.ReplaceAll(doubling("allOf", "{}"), `"allOf":[`, `"items":[`), large},
		{"recursion that doubles", `"n":{"properties":{"d":{"allOf":[` + r + `,` + r + `]}}}`, n},
		{"recursion of alternatives", `"n":{"oneOf":[{"properties":{"k":{"const":1},"d":{"items":` + r + `}}},{"properties":{"k":{"const":2},"d":{"items":` + r + `}}}]}`, n},
		{"recursion that doubles elsewhere", `"n":{"properties":{"d":{"allOf":[{"$ref":"#/definitions/m"},{"$ref":"#/definitions/m"}]}}},"m":{"properties":{"d":` + r + `}}`, n},
		{"one level and two", `"n":{"properties":{"d":{"allOf":[` + r + `,{"properties":{"d":` + r + `}}]}}}`, n},
		{"a name and its pattern", `"n":{"properties":{"d":` + r + `},"patternProperties":{"^d$":` + r + `}}`, n},
		{"a name and a pattern of the other engine", `"n":{"properties":{"d":` + r + `},"patternProperties":{"^(?!x)":` + r + `}}`, n},
		{"a name and all others of another schema", `"n":{"properties":{"d":` + r + `},"allOf":[{"additionalProperties":` + r + `}]}`, n},
		{"items and contains", `"n":{"items":` + r + `,"contains":` + r + `}`, n},
		{"an item and all others of another schema", `"n":{"items":[{},` + r + `],"allOf":[{"items":[{}],"additionalItems":` + r + `}]}`, n},
		{"a condition and what follows", `"n":{"properties":{"d":{"if":` + r + `,"then":` + r + `}}}`, n},
		{"a long chain", chain(100), "/definitions/n/items | $ref | begins a chain of more than 100 schemas for the same value"},

		{"a chain", chain(98), ""},
		{"one property", `"n":{"properties":{"d":` + r + `}}`, ""},
		{"two properties", `"n":{"properties":{"left":` + r + `,"right":` + r + `}}`, ""},
		{"a name and all others", `"n":{"properties":{"d":` + r + `},"patternProperties":{"^x":` + r + `},"additionalProperties":` + r + `}`, ""},
		{"two patterns", `"n":{"patternProperties":{"^x":` + r + `,"^(?!x)":` + r + `}}`, ""},
		{"an item and all others", `"n":{"items":[` + r + `,` + r + `],"additionalItems":` + r + `}`, ""},
		{"by type", `"n":{"anyOf":[{"properties":{"d":` + r + `}},{"items":` + r + `}]}`, ""},
		{"itself or a list of it", `"n":{"type":"object","properties":{"d":{"anyOf":[` + r + `,{"type":"array","items":` + r + `}]}}}`, ""},
		{"the names of properties", `"n":{"propertyNames":` + r + `,"properties":{"d":` + r + `}}`, ""},
		{"through another", `"n":{"properties":{"d":{"$ref":"#/definitions/m"}}},"m":{"properties":{"d":` + r + `}}`, ""},
		{"a meta-schema", `"n":{"$ref":"http://json-schema.org/draft-07/schema#"}`, ""},
		{"a meta-schema of 2019-09", `"n":{"$ref":"https://json-schema.org/draft/2019-09/schema"}`, ""},
		{"a meta-schema of 2020-12", `"n":{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, found, err := validation.Compile(`{"properties":{"d":` + r + `},"definitions":{` + c.definitions + `}}`)
			if diff := cmp.Diff(c.want, lines(found)); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}
