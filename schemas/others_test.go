package schemas_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas"
)

// drafts are all that a schema may be of.
func drafts() []string {
	return []string{
		"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-07/schema#",
		"https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema",
	}
}

// inDraft is a registration of the type a, whose schema has properties beside experiment.
func inDraft(draft, properties string) string {
	return `{"name":"a","schema":{"$schema":"` + draft + `",` + dynamic(properties, "")[1:] + `}`
}

func readCases(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// TestEmptyEnum: an empty enum registers in every draft, and no value is valid.
func TestEmptyEnum(t *testing.T) {
	for _, draft := range drafts() {
		t.Run(draft, func(t *testing.T) {
			s, _ := newService(t, schemas.Config{})
			register(t, s, inDraft(draft, `,"v":{"enum":[]},"w":{"items":{"anyOf":[{"enum":[]},{"minimum":5}]}}`))
			if _, err := s.Validate(t.Context(), "S1", analysis("a", `,"w":[5]`)); err != nil {
				t.Error(err)
			}
			for _, value := range []string{`"x"`, `null`, `{}`, `[]`, `0`, `false`} {
				_, err := s.Validate(t.Context(), "S1", analysis("a", `,"v":`+value))
				if diff := cmp.Diff("/v | enum | has no valid value: the enum of the schema is empty", lines(err)); diff != "" {
					t.Error(value, diff)
				}
			}
			if _, err := s.Validate(t.Context(), "S1", analysis("a", `,"w":[1]`)); lines(err) != "/w/0 | minimum | must be at least 5" {
				t.Error(lines(err))
			}
		})
	}
	t.Run("equal values", func(t *testing.T) {
		for _, draft := range drafts()[1:] {
			s, _ := newService(t, schemas.Config{})
			register(t, s, inDraft(draft, `,"v":{"enum":["x","y","x"]}`))
			if _, err := s.Validate(t.Context(), "S1", analysis("a", `,"v":"z"`)); lines(err) != `/v | enum | must be one of "x", "y"` && lines(err) != `/v | enum | must be one of "x", "y", "x"` {
				t.Error(draft, lines(err))
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
	readCases(t, "schema-format-uri.json", &cases)
	for _, draft := range drafts() {
		t.Run(draft, func(t *testing.T) {
			s, _ := newService(t, schemas.Config{})
			register(t, s, inDraft(draft, `,"v":{"format":"uri"}`))
			for _, c := range cases {
				value, _ := json.Marshal(c.Value)
				if _, err := s.Validate(t.Context(), "S1", analysis("a", `,"v":`+string(value))); (err == nil) != c.Valid {
					t.Errorf("%s: %v", c.Value, err)
				}
			}
		})
	}
	s, _ := newService(t, schemas.Config{})
	register(t, s, inDraft(drafts()[2], `,"uri":{"format":"uri"},"ref":{"format":"uri-reference"},"iri":{"format":"iri"},"iriref":{"format":"iri-reference"}`))
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
			_, err := s.Validate(t.Context(), "S1", analysis("a", `,"`+format+`":`+string(value)))
			if want := strings.Contains(" "+c.valid+" ", " "+format+" "); (err == nil) != want {
				t.Errorf("%q as %s: valid %t, want %t", c.value, format, err == nil, want)
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
				s, _ := newService(t, schemas.Config{})
				register(t, s, inDraft(draft, `,"d":`+c.schema))
				_, err := s.Validate(t.Context(), "S1", analysis("a", `,"d":`+c.value))
				if diff := cmp.Diff(c.want, lines(err)); diff != "" || (err == nil) != (c.want == "") {
					t.Error(err, diff)
				}
			}
		})
	}
	t.Run("experiment", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{})
		register(t, s, `{"name":"a","schema":{"$schema":"`+drafts()[4]+`","type":"object","required":["experiment"],"properties":{"experiment":{"unevaluatedProperties":{"required":["a"]}}}}}`)
		_, err := s.Validate(t.Context(), "S1", strings.Replace(analysis("a", ""), `"experiment":{}`, `"experiment":{"":{},"a":{"a":1}}`, 1))
		if diff := cmp.Diff(`/experiment/ | required | the property "a" is missing`, lines(err)); diff != "" {
			t.Error(diff)
		}
	})
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
			s, _ := newService(t, schemas.Config{})
			register(t, s, inDraft(drafts()[2], `,"v":`+schema))
			if _, err := s.Validate(t.Context(), "S1", analysis("a", `,"v":`+string(value))); err != nil {
				t.Errorf("%s %q: %v", schema, c.value, err)
			}
		}
	}
	for _, c := range []struct{ pattern, value string }{{`^.$`, "\r"}, {`^.$`, "\u2029"}, {`^a$`, "a\n"}, {`^\\w$`, "é"}, {`(?=.*\\bb)`, "éb1"}} {
		s, _ := newService(t, schemas.Config{})
		register(t, s, inDraft(drafts()[2], `,"v":{"pattern":"`+c.pattern+`"}`))
		value, _ := json.Marshal(c.value)
		if _, err := s.Validate(t.Context(), "S1", analysis("a", `,"v":`+string(value))); c.value != "éb1" && err == nil || c.value == "éb1" && err != nil {
			t.Errorf("%s %q: %v", c.pattern, c.value, err)
		}
	}
	for _, c := range []struct{ pattern, want string }{
		{`a\\z`, `it has \z, which ECMA-262 does not know; the end of a text is $`},
		{`^[[:alpha:]]+$`, `it has a class of POSIX, such as [:alpha:], which ECMA-262 does not know; name the characters, or use \p{L}`},
	} {
		s, store := newService(t, schemas.Config{})
		_, err := s.Register(t.Context(), []byte(inDraft(drafts()[2], `,"v":{"pattern":"`+c.pattern+`"}`)))
		if diff := cmp.Diff("/schema/properties/v/pattern | format | is not a valid regular expression: "+c.want, lines(err)); diff != "" {
			t.Error(diff)
		}
		// A version that was registered before stays, with the meaning of before.
		store.types = append(store.types, datamodel.AnalysisType{Name: "a", Version: 1, Schema: json.RawMessage(dynamic(`,"v":{"pattern":"`+c.pattern+`"}`, ""))})
		for value, valid := range map[string]bool{"a": true, "1": false} {
			if _, err := s.Validate(t.Context(), "S1", analysis("a", `,"v":"`+value+`"`)); (err == nil) != valid {
				t.Errorf("%s of a stored version: %q: %v", c.pattern, value, err)
			}
		}
	}
}

// TestPublishHint: a publication has no body, so that its hint must not speak of one.
func TestPublishHint(t *testing.T) {
	s, _ := newService(t, schemas.Config{})
	register(t, s, `{"name":"a","schema":`+simple+`}`)
	register(t, s, `{"name":"a","schema":`+simple+`}`)
	err := s.CheckVersion(t.Context(), datamodel.AnalysisTypeRef{Name: "a", Version: 1})
	e, _ := errors.AsType[*core.Error](err)
	if want := "replace or patch the analysis so that it matches version 2, then publish it; schemas.enforceLatest: false accepts older versions"; e == nil || e.Hint != want {
		t.Errorf("%v", err)
	}
}
