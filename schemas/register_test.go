package schemas_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas"
	"tutti/schemas/jsontree"
	"tutti/schemas/validation"
)

const renderedBase = `"studyId":{"type":"string"},"analysisType":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"version":{"type":["integer","null"],"minimum":1}}},"files":{"type":"array","minItems":1,"items":{"type":"object","required":["dataType","fileName","fileSize","fileType","fileAccess","fileMd5sum"],"properties":{"dataType":{"type":"string"},"fileName":{"type":"string","pattern":"^[A-Za-z0-9_.\\-\\[\\]()]+$"},"fileSize":{"type":"integer","minimum":0,"maximum":9223372036854775807},"fileType":{"type":"string"},"fileAccess":{"type":"string","enum":["open","controlled"]},"fileMd5sum":{"type":"string","pattern":"^[a-fA-F0-9]{32}$"},"info":{"type":"object"}}}}`

func TestRegister(t *testing.T) {
	t.Run("gives the rendered schema and the effective options", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{})
		got := register(t, s, `{"name":"variant","schema":`+simple+`,"options":{"fileTypes":["BAM"]}}`)
		want := `{"name":"variant","version":1,"createdAt":"2026-01-02T03:04:05.678Z",` +
			`"options":{"fileTypes":["BAM"],"externalValidations":[]},` +
			`"schema":{"type":"object","required":["studyId","analysisType","files","experiment"],` +
			`"properties":{` + renderedBase + `,"experiment":{"type":"object"}}}}`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("counts versions by name", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{})
		for i, c := range []struct {
			name string
			want float64
		}{{"a", 1}, {"a", 2}, {"b", 1}, {"a", 3}} {
			var got map[string]any
			if err := json.Unmarshal([]byte(register(t, s, `{"name":"`+c.name+`","schema":`+simple+`}`)), &got); err != nil {
				t.Fatal(err)
			}
			if got["version"] != c.want {
				t.Errorf("registration %d of %s: version %v, want %v", i, c.name, got["version"], c.want)
			}
		}
	})
	t.Run("earlier versions never change", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{})
		first := register(t, s, `{"name":"a","schema":`+simple+`}`)
		register(t, s, `{"name":"a","schema":`+simple+`,"options":{"fileTypes":["X"]}}`)
		got, err := s.TypeWhole(t.Context(), "a", 1, false)
		if err != nil || string(got) != first {
			t.Errorf("version 1 is %s, %v; was %s", got, err, first)
		}
	})
	t.Run("keeps numbers, order and definitions as they were written", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{})
		dynamic := `{"definitions":{"z":{"maximum":12345678901234567890.10,"type":"number"},"a":true},"type":"object",` +
			`"additionalProperties":false,"properties":{"experiment":{"type":"object","properties":{"n":{"$ref":"#/definitions/z"}}}},"required":["experiment"]}`
		register(t, s, `{"name":"a","schema":`+strings.ReplaceAll(dynamic, ",", " ,\n ")+`}`)
		got, err := s.TypeWhole(t.Context(), "a", 1, true)
		if err != nil || !strings.HasSuffix(string(got), `"schema":`+dynamic+`}`) {
			t.Errorf("unrendered %s, %v", got, err)
		}
	})
	t.Run("ignores members that are none of its own", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{})
		register(t, s, `{"name":"a","version":7,"createdAt":"x","schema":`+simple+`}`)
	})
}

// TestRegisterLenient: what Overture's documentation and Java clients send: an experiment without a type or with several, null options.
func TestRegisterLenient(t *testing.T) {
	for _, experiment := range []string{`{}`, `{"required":["donorId"]}`, `{"type":["object","null"]}`} {
		s, _ := newService(t, schemas.Config{})
		register(t, s, `{"name":"a","options":{},"version":"1","schema":{"type":"object","required":["experiment"],"properties":{"experiment":`+experiment+`}}}`)
		analysis := `{"studyId":"S","analysisType":{"name":"a"},"files":[` + file("a.bam", "BAM") + `]`
		if _, err := s.Validate(t.Context(), "S", analysis+`,"experiment":{"donorId":"id01"}}`); err != nil {
			t.Errorf("%s: %v", experiment, err)
		}
		if _, err := s.Validate(t.Context(), "S", analysis+`}`); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("%s: without experiment: %v", experiment, err)
		}
	}
	s, _ := newService(t, schemas.Config{})
	register(t, s, `{"name":"a","schema":`+simple+`,"options":{"fileTypes":["BAM"]}}`)
	for _, options := range []string{`null`, `{"fileTypes":null,"externalValidations":null}`} {
		if got := register(t, s, `{"name":"a","schema":`+simple+`,"options":`+options+`}`); !strings.Contains(got, `"fileTypes":["BAM"]`) {
			t.Errorf("%s: %s", options, got)
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	const tooLarge = "is a regular expression that is too large"
	// A schema that could be loaded: what refuses it is that it is not to be loaded.
	stored := filepath.Join(t.TempDir(), "stored.json")
	if err := os.WriteFile(stored, []byte(`{"type":"object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var distinct strings.Builder // 30 expressions, each just under the limit
	for i := range 30 {
		fmt.Fprintf(&distinct, `,"p%d":{"pattern":"%s%d"}`, i, strings.Repeat("a{999}", 19), i)
	}
	deep := strings.Repeat(`[`, 10_000) + strings.Repeat(`]`, 10_000)
	withSchema := func(schema string) string { return `{"name":"a","schema":` + schema + `}` }
	withProperties := func(more string) string {
		return withSchema(`{"type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"}` + more + `}}`)
	}
	withOptions := func(options string) string { return `{"name":"a","schema":` + simple + `,"options":` + options + `}` }
	for _, c := range []struct{ name, body, errorID, want string }{
		{"no JSON", `nope`, "malformed.parameter", " | json | is not JSON: no JSON value begins at line 1, column 1"},
		{"empty", ``, "malformed.parameter", " | json | is not JSON: the text ends where a value is expected at line 1, column 1"},
		{"trailing text", `{} x`, "malformed.parameter", " | json | is not JSON: text follows the JSON value at line 1, column 4"},
		{"not UTF-8", "{\"name\":\"\xff\"}", "malformed.parameter", " | json | is not JSON: it is not UTF-8"},
		{"a name twice", `{"name":"a","name":"b"}`, "malformed.parameter", ` | json | is not JSON: the member "name" occurs twice in one object at line 1, column 13`},
		{"too deep", withSchema(deep), "malformed.parameter", " | json | is not JSON: it is nested more than 256 levels deep"},
		{"a number beyond float64", withOptions(`1e999`), "malformed.parameter", " | json | is not JSON: a number is too large, too small or too long at line 1, column 122"},
		{"an array", `[]`, "malformed.parameter", " | type | must be an object, not an array"},
		{"nothing in it", `{}`, "malformed.parameter", " | required | the property \"name\" is missing\n | required | the property \"schema\" is missing"},
		{"no schema", `{"name":"a"}`, "schema.violation", ` | required | the property "schema" is missing`},
		{"a name that is a number", `{"name":1,"schema":` + simple + `}`, "malformed.parameter", `/name | type | must be a string, not a number`},
		{"a name with a space", `{"name":"a b","schema":` + simple + `}`, "malformed.parameter", `/name | pattern | must match the pattern ^[a-zA-Z0-9._-]+$`},
		{"a name with a line feed", `{"name":"a\n","schema":` + simple + `}`, "malformed.parameter", `/name | pattern | must match the pattern ^[a-zA-Z0-9._-]+$`},
		{"the reserved name", `{"name":"registration","schema":` + simple + `}`, "illegal.analysis.type.name", `/name | not | must not be "registration", ".", ".."`},
		{"a schema that is an array", withSchema(`[]`), "schema.violation", `/schema | type | must be an object, not an array`},
		{"a schema that is a boolean", withSchema(`true`), "schema.violation", `/schema | type | must be an object, not a boolean`},
		{"a schema of another type", withSchema(`{"type":"array","required":["experiment"],"properties":{"experiment":{}}}`), "schema.violation", `/schema/type | const | must be "object"`},
		{"no experiment", withSchema(`{"type":"object","required":["x"],"properties":{"x":{}}}`), "schema.violation", "/schema/required | contains | must have an item that is \"experiment\"\n/schema/properties | required | the property \"experiment\" is missing"},
		{"a schema that is null", withSchema(`null`), "schema.violation", `/schema | type | must be an object, not null`},
		{"an experiment that is a text", withSchema(`{"type":"object","required":["experiment"],"properties":{"experiment":"x"}}`), "schema.violation", `/schema/properties/experiment | type | must be an object or a boolean, not a string`},
		{"a base property redefined", withProperties(`,"files":{"type":"array"},"studyId":{},"analysisId":{},"analysisState":{},"analysisTypeId":{}`), "schema.violation", "/schema/properties/files | properties | belongs to every analysis and may not be redefined\n/schema/properties/studyId | properties | belongs to every analysis and may not be redefined\n/schema/properties/analysisId | properties | belongs to every analysis and may not be redefined\n/schema/properties/analysisState | properties | belongs to every analysis and may not be redefined\n/schema/properties/analysisTypeId | properties | belongs to every analysis and may not be redefined"},
		{"a keyword of a wrong type", withProperties(`,"a":{"minLength":"x"}`), "malformed.json.schema", `/schema/properties/a/minLength | type | must be an integer, not a string`},
		{"an unknown type", withProperties(`,"a":{"type":"text"}`), "malformed.json.schema", `/schema/properties/a/type | enum | must be one of "array", "boolean", "integer", "null", "number", "object", "string"`},
		{"an unknown draft", withSchema(`{"$schema":"http://example.org/mine","type":"object","required":["experiment"],"properties":{"experiment":{}}}`), "malformed.json.schema", `/schema/$schema | $schema | is not one of the drafts that are known: draft-04, draft-06, draft-07, 2019-09, 2020-12`},
		{"a bad expression", withProperties(`,"a":{"pattern":"(["}`), "malformed.json.schema", `/schema/properties/a/pattern | format | is not a valid regular expression: it has a [ without a ]`},
		{"a bad expression as a key", withProperties(`,"a":{"patternProperties":{"([":{}}}`), "malformed.json.schema", `/schema/properties/a/patternProperties/([ | propertyNames | its name is not a valid regular expression: it has a [ without a ]`},
		{"a remote reference", withProperties(`,"a":{"$ref":"http://127.0.0.1:1/x.json"}`), "malformed.json.schema", `/schema/properties/a/$ref | $ref | refers to "http://127.0.0.1:1/x.json", which is not in this schema; other documents are never fetched`},
		{"a file as a reference", withProperties(`,"a":{"$ref":"file:///etc/passwd"}`), "malformed.json.schema", `/schema/properties/a/$ref | $ref | refers to "file:///etc/passwd", which is not in this schema; other documents are never fetched`},
		{"a file that is there as a reference", withProperties(`,"a":{"$ref":"file://` + stored + `"}`), "malformed.json.schema", `/schema/properties/a/$ref | $ref | refers to ` + shownFile(stored) + `, which is not in this schema; other documents are never fetched`},
		{"a long expression", withProperties(`,"a":{"pattern":"` + strings.Repeat("a", 16<<10+1) + `"}`), "malformed.json.schema", "/schema/properties/a/pattern | format | " + tooLarge},
		{"a long expression of the other engine", withProperties(`,"a":{"pattern":"(?!x)` + strings.Repeat("a", 16<<10) + `"}`), "malformed.json.schema", "/schema/properties/a/pattern | format | " + tooLarge},
		{"an expression of many repetitions", withProperties(`,"a":{"pattern":"` + strings.Repeat("a{999}", 2700) + `"}`), "malformed.json.schema", "/schema/properties/a/pattern | format | " + tooLarge},
		{"an expression of nested repetitions", withProperties(`,"a":{"pattern":"` + strings.Repeat("((a|b){9,9}x{2}){100,}", 20) + `"}`), "malformed.json.schema", "/schema/properties/a/pattern | format | " + tooLarge},
		{"a large class many times", withProperties(`,"a":{"pattern":"` + strings.Repeat(`\\p{L}`, 3000) + `"}`), "malformed.json.schema", "/schema/properties/a/pattern | format | " + tooLarge},
		{"a large expression as a key", withProperties(`,"a":{"patternProperties":{"` + strings.Repeat("a{999}", 2700) + `":{}}}`), "malformed.json.schema", "/schema/properties/a/patternProperties/" + strings.Repeat("a{999}", 2700) + " | propertyNames | its name " + tooLarge},
		{"many expressions of many repetitions", withProperties(distinct.String()), "malformed.json.schema", "/schema | pattern | has regular expressions that take too much memory together"},
		{"a large expression as a key of draft-04", withSchema(`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"a":{"patternProperties":{"` + strings.Repeat("a{999}", 2700) + `":{}}}}}`), "malformed.json.schema", "/schema/properties/a/patternProperties | pattern | " + tooLarge + `: "` + strings.Repeat("a{999}", 14)[:80] + `…"`},
		{"a relative reference", withProperties(`,"a":{"$ref":"other.json#/x"}`), "malformed.json.schema", `/schema/properties/a/$ref | $ref | refers to "other.json#/x", which is not in this schema; other documents are never fetched`},
		{"a dangling reference", withProperties(`,"a":{"$ref":"#/definitions/none"}`), "malformed.json.schema", `/schema/properties/a/$ref | $ref | refers to "#/definitions/none", which does not exist`},
		{"a dangling anchor", withProperties(`,"a":{"$ref":"#none"}`), "malformed.json.schema", `/schema/properties/a/$ref | $ref | refers to "#none", which does not exist`},
		{"a reference to no schema", withProperties(`,"a":{"$ref":"#/required"}`), "malformed.json.schema", `/schema/required | schema | is used as a schema, but is not a valid one`},
		{"a reference to itself", withProperties(`,"a":{"$ref":"#/properties/a"}`), "malformed.json.schema", `/schema/properties/a | $ref | refers to itself for the same value, so that a check would never end`},
		{"a circle through allOf", withSchema(`{"type":"object","required":["experiment"],"properties":{"experiment":{}},"allOf":[{"$ref":"#"}]}`), "malformed.json.schema", `/schema | $ref | refers to itself for the same value, so that a check would never end`},
		{"a reference that outdoes the rest", withSchema(`{"$ref":"#/definitions/a","definitions":{"a":{}},"type":"object","required":["experiment"],"properties":{"experiment":{}}}`), "malformed.json.schema", `/schema/$ref | $ref | would make this draft ignore all keywords beside it; put it into an allOf`},
		{"an anchor twice", withSchema(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"a":{"$anchor":"x"},"b":{"$anchor":"x"},"c":{"$ref":"#x"}}}`), "malformed.json.schema", `/schema/properties/b | $anchor | has the anchor "x" that another part of the schema has too`},
		{"an anchor of an older draft twice", withProperties(`,"a":{"$id":"#x"},"b":{"$id":"#x"}`), "malformed.json.schema", `/schema/properties/b | $anchor | has the anchor "x" that another part of the schema has too`},
		{"an id twice", withProperties(`,"a":{"$id":"x.json"},"b":{"$id":"x.json"}`), "malformed.json.schema", `/schema/properties/b | $id | has the id "x.json" that another part of the schema has too`},
		{"an id without a path", withSchema(`{"$id":"?a","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"a":{"$id":"?","b":{"$ref":"#"}}}}`), "malformed.json.schema", `/schema/$id | $id | has no path`},
		{"a dynamic anchor beside a meta-schema", withSchema(`{"$schema":"https://json-schema.org/draft/2020-12/schema","$dynamicAnchor":"meta","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"a":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`), "malformed.json.schema", `/schema | schema | has $dynamicAnchor or $recursiveAnchor together with a reference to a meta-schema, which is not supported`},
		{"too many schemas", withProperties(`,"a":{"anyOf":[` + strings.Repeat(`{},`, 10_000) + `{}]}`), "malformed.json.schema", `/schema | schema | has more than 10000 objects and booleans`},
		{"too large a schema", withProperties(`,"a":{"description":"` + strings.Repeat("x", 10<<20) + `"}`), "malformed.json.schema", `/schema | schema | is larger than 1 MiB`},
		{"an option of a wrong type", withOptions(`{"fileTypes":"BAM"}`), "malformed.parameter", `/options/fileTypes | type | must be an array or null, not a string`},
		{"a misspelt option", withOptions(`{"filetypes":[]}`), "malformed.parameter", `/options/filetypes | additionalProperties | is not a property that the schema allows`},
		{"options that are a list", withOptions(`[]`), "malformed.parameter", `/options | type | must be an object or null, not an array`},
		{"no jsonPath", withOptions(`{"externalValidations":[{"url":"http://a/{value}"}]}`), "malformed.parameter", `/options/externalValidations/0 | required | the property "jsonPath" is missing`},
		{"another token", withOptions(`{"externalValidations":[{"url":"http://a/{donor}","jsonPath":"a"}]}`), "malformed.parameter", `/options/externalValidations/0/url | externalValidations | has the token "{donor}"; only {study} and {value} are replaced`},
		{"a relative URL", withOptions(`{"externalValidations":[{"url":"/a/{value}","jsonPath":"a"}]}`), "malformed.parameter", `/options/externalValidations/0/url | externalValidations | is not an absolute http or https URL`},
		{"a bad path", withOptions(`{"externalValidations":[{"url":"http://a/{value}","jsonPath":"a..b"}]}`), "malformed.parameter", `/options/externalValidations/0/jsonPath | externalValidations | has an empty step`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, store := newService(t, schemas.Config{})
			_, err := s.Register(t.Context(), []byte(c.body))
			wantError(t, err, core.CodeInvalid, c.errorID, "the registration is not valid: ")
			if diff := cmp.Diff(c.want, lines(err)); diff != "" {
				t.Error(diff)
			}
			if len(store.types) != 0 {
				t.Error("it was stored")
			}
		})
	}
	t.Run("names every fault", func(t *testing.T) {
		s, _ := newService(t, schemas.Config{})
		_, err := s.Register(t.Context(), []byte(withProperties(`,"a":{"$ref":"#/x"},"b":{"$ref":"#/y"}`)))
		if got := len(violations(err)); got != 2 {
			t.Errorf("%d violations, want 2: %s", got, lines(err))
		}
	})
}

func TestRegisterAccepts(t *testing.T) {
	for _, c := range []struct{ name, schema string }{
		{"a look-ahead", `{"type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"a":{"pattern":"^(?!x).*$"}}}`},
		{"a look-ahead in a list of items", `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"a":{"items":[{"pattern":"^(?!x).*$"}]}}}`},
		{"a look-ahead in a dependency", `{"type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"a":{"dependencies":{"b":{"patternProperties":{"^(?!x)":{}}}}}}}`},
		{"a recursive schema", `{"type":"object","required":["experiment"],"properties":{"experiment":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"object","properties":{"child":{"$ref":"#/definitions/n"}}}}}`},
		{"an experiment by allOf", `{"type":"object","required":["experiment"],"properties":{"experiment":{"allOf":[{"maxProperties":9},{"$ref":"#/definitions/n"}]}},"definitions":{"n":{"type":["object"]}}}`},
		{"an experiment by alternatives", `{"type":"object","required":["experiment"],"properties":{"experiment":{"anyOf":[{"type":"object"},{"$ref":"#/definitions/n"}]}},"definitions":{"n":{"oneOf":[{"type":"object"}]}}}`},
		{"a reference to a meta-schema", `{"type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"s":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`},
		{"a reference to its own id", `{"$id":"http://example.org/a.json","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"s":{"$ref":"http://example.org/a.json#/properties/experiment"}}}`},
		{"draft-04", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object","properties":{"n":{"minimum":0,"exclusiveMinimum":true}}}}}`},
		{"draft-06", `{"$schema":"http://json-schema.org/draft-06/schema#","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"}}}`},
		{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object","unevaluatedProperties":false}}}`},
		{"2020-12", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object","$ref":"#/$defs/e"}},"$defs":{"e":{"prefixItems":[true]}}}`},
		{"any other keyword at the top", `{"title":"t","x-mine":1,"minProperties":1,"type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newService(t, schemas.Config{})
			register(t, s, `{"name":"a","schema":`+c.schema+`}`)
			if _, err := s.Validate(t.Context(), "S1", analysis("a", "")); err != nil {
				t.Errorf("Validate: %v", err)
			}
		})
	}
}

// shownFile is how a message shows the URL of a file: shortened.
func shownFile(path string) string {
	shown := []rune("file://" + path)
	if len(shown) > 80 {
		shown = append(shown[:80], '…')
	}
	return strconv.Quote(string(shown))
}

// TestRegisterOddIDs tries identifiers that a compiler may stumble over: each is taken or refused, nothing else.
func TestRegisterOddIDs(t *testing.T) {
	for _, id := range []string{
		"", "#", "#a", "a", "/", "?", ".", "..", "//", "http://", "urn:x", "urn:x:y#z", "%41", "file:///etc/passwd", "mailto:a@b",
		"http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema",
		"https://tutti.invalid/schema", "https://tutti.invalid/schema#/properties", "http://[::1", "http://a:b/", `\u0000`,
	} {
		for _, body := range []string{
			`{"$id":"ID","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"}}}`,
			`{"type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"a":{"$id":"ID"},"b":{"$id":"ID"},"c":{"$ref":"ID"}}}`,
			`{"$id":"http://x/y","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"a":{"$id":"ID","$ref":"#/b","b":{}}}}`,
			`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"ID","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"a":{"$id":"ID","$schema":"ID","$anchor":"x"},"b":{"$dynamicRef":"ID"}}}`,
			`{"$schema":"http://json-schema.org/draft-04/schema#","id":"ID","type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"},"a":{"id":"ID"}}}`,
		} {
			body = strings.ReplaceAll(body, "ID", id)
			t.Run(body, func(t *testing.T) {
				s, _ := newService(t, schemas.Config{})
				_, err := s.Register(t.Context(), []byte(`{"name":"a","schema":`+body+`}`))
				if err == nil {
					if _, err := s.Validate(t.Context(), "S1", analysis("a", `,"a":{}`)); core.CodeOf(err) == core.CodeInternal {
						t.Errorf("taken, but not applied: %v", err)
					}
					return
				}
				wantError(t, err, core.CodeInvalid, "malformed.json.schema", "the registration is not valid: ")
				if len(violations(err)) == 0 {
					t.Error("no violation says why")
				}
			})
		}
	}
}

func TestOptions(t *testing.T) {
	one := `[{"url":"http://a.example/{value}","jsonPath":"experiment.a"}]`
	defaults := datamodel.AnalysisOptions{FileTypes: []string{"DEFAULT"}}
	for _, c := range []struct {
		name    string
		cfg     schemas.Config
		options []string
		want    string
	}{
		{"none given", schemas.Config{}, []string{""}, `{"fileTypes":[],"externalValidations":[]}`},
		{"none given, with defaults", schemas.Config{DefaultOptions: defaults}, []string{""}, `{"fileTypes":["DEFAULT"],"externalValidations":[]}`},
		{"given over defaults", schemas.Config{DefaultOptions: defaults}, []string{`{"fileTypes":["A"]}`}, `{"fileTypes":["A"],"externalValidations":[]}`},
		{"cleared under defaults", schemas.Config{DefaultOptions: defaults}, []string{`{"fileTypes":[]}`, ""}, `{"fileTypes":[],"externalValidations":[]}`},
		{"omitted keeps", schemas.Config{}, []string{`{"fileTypes":["A"],"externalValidations":` + one + `}`, `{}`, ""}, `{"fileTypes":["A"],"externalValidations":` + one + `}`},
		{"empty clears", schemas.Config{}, []string{`{"fileTypes":["A"],"externalValidations":` + one + `}`, `{"externalValidations":[]}`}, `{"fileTypes":["A"],"externalValidations":[]}`},
		{"cleared stays cleared", schemas.Config{}, []string{`{"fileTypes":["A"]}`, `{"fileTypes":[]}`, ""}, `{"fileTypes":[],"externalValidations":[]}`},
		{"replaced", schemas.Config{}, []string{`{"fileTypes":["A"]}`, `{"fileTypes":["B","C"]}`}, `{"fileTypes":["B","C"],"externalValidations":[]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newService(t, c.cfg)
			got := ""
			for _, o := range c.options {
				if o != "" {
					o = `,"options":` + o
				}
				got = register(t, s, `{"name":"a","schema":`+simple+o+`}`)
			}
			if !strings.Contains(got, `"options":`+c.want+`,"schema"`) {
				t.Errorf("options of %s, want %s", got, c.want)
			}
		})
	}
}

func TestMetaSchema(t *testing.T) {
	s, _ := newService(t, schemas.Config{})
	for _, c := range []struct {
		name, body string
		want       bool
	}{
		{"a registration", `{"name":"a","schema":` + simple + `,"options":{"fileTypes":["A"]}}`, true},
		{"no experiment", `{"name":"a","schema":{"type":"object"}}`, false},
		{"the reserved name", `{"name":"registration","schema":` + simple + `}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			meta, found, err := validation.Compile(string(s.MetaSchema()))
			if err != nil || found != nil {
				t.Fatalf("%v, %v", found, err)
			}
			body, err := jsontree.Parse(c.body)
			if err != nil {
				t.Fatal(err)
			}
			if found, err = meta.Validate(&body); err != nil || (len(found.Violations) == 0) != c.want {
				t.Errorf("%v, %v; want valid %t", found, err, c.want)
			}
		})
	}
}

func TestRegisterConcurrently(t *testing.T) {
	s, store := newService(t, schemas.Config{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := s.Register(t.Context(), []byte(`{"name":"a","schema":`+simple+`}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, got := range store.types {
		if got.Version != i+1 {
			t.Errorf("registration %d has version %d", i, got.Version)
		}
	}
}
