package schemas_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/schemas"
)

// TestExpressionsAreBoundedBeforeTheyAreCompiled: what is refused has not taken its memory first.
func TestExpressionsAreBoundedBeforeTheyAreCompiled(t *testing.T) {
	s, _ := newService(t, schemas.Config{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := s.Register(t.Context(), []byte(`{"name":"a","schema":`+dynamic(`,"d":{"pattern":"`+strings.Repeat("a{999}", 2700)+`"}`, "")+`}`))
	runtime.ReadMemStats(&after)
	wantError(t, err, core.CodeInvalid, "malformed.json.schema", "the registration is not valid: /schema/properties/d/pattern: is a regular expression that is too large")
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 64 {
		t.Errorf("it took %d MiB to refuse it", took)
	}
}

// TestExpressionsCountForTheCache by what they take compiled, each once.
func TestExpressionsCountForTheCache(t *testing.T) {
	large := strings.Repeat("a{999}", 19) // about 19,000 instructions
	for _, c := range []struct {
		name, properties string
		least, most      int64
	}{
		{"small", `,"d":{"pattern":"^a$"}`, 0, 200_000},
		{"large", `,"d":{"pattern":"` + large + `"}`, 1_000_000, 3_000_000},
		{"one that stands forty times", `,"d":{"items":[` + strings.Repeat(`{"pattern":"`+large+`"},`, 40) + `{}]}`, 1_000_000, 3_000_000},
		{"two", `,"d":{"pattern":"` + large + `"},"e":{"pattern":"` + large + `b"}`, 2_000_000, 6_000_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newService(t, schemas.Config{})
			register(t, s, `{"name":"a","schema":`+dynamic(c.properties, "")+`}`)
			if _, err := s.Validate(t.Context(), "S1", analysis("a", "")); err != nil {
				t.Fatal(err)
			}
			// 24 for each byte of the text beside the expressions.
			if got := schemas.RulesCost(s) - 24*int64(strings.Count(c.properties, large)*len(large)); got < c.least || got > c.most {
				t.Errorf("counts for %d, want %d to %d", got, c.least, c.most)
			}
		})
	}
}

// TestMatchesAreBounded: what takes longer than a validation may is ended, and what takes less is matched.
func TestMatchesAreBounded(t *testing.T) {
	const overdue = " | schema | validating it takes too long"
	slow := `{"items":{"pattern":"(.*a){200}b"}}`
	texts := func(text string, n int) string { return `["` + text + `"` + strings.Repeat(`,"`+text+`"`, n-1) + `]` }
	var ids strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&ids, `,"SAMPLE-%020d"`, i)
	}
	var expressions strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&expressions, `,"%s%d"`, strings.Repeat("a{999}", 19), i)
	}
	for _, c := range []struct{ name, schema, value, want string }{
		{"a slow expression and a long text", slow, texts(strings.Repeat("a", 4<<20), 1), overdue},
		{"a slow expression and several texts", slow, texts(strings.Repeat("a", 100_000), 5), overdue},
		{"as a key", `{"patternProperties":{"(.*a){200}b":{}}}`, `{"` + strings.Repeat("a", 1<<20) + `":1}`, overdue},
		{"expressions as values", `{"items":{"format":"regex"}}`, `[` + expressions.String()[1:] + `]`, overdue},
		{"a look-ahead and a long text", `{"pattern":"^(?!x)"}`, `"` + strings.Repeat("a", 256<<10+1) + `"`, "/d | pattern | must match the pattern ^(?!x)"},
		{"a look-ahead and a text", `{"pattern":"^(?!x)"}`, `"` + strings.Repeat("a", 256<<10) + `"`, ""},
		{"one expression as values", `{"items":{"format":"regex"}}`, texts(strings.Repeat("a{999}", 19), 5000), ""},
		{"a simple expression and a long text", `{"pattern":"^[a-z]+$"}`, `"` + strings.Repeat("a", 5<<20) + `"`, ""},
		{"a repeated class and a text", `{"pattern":"^\\p{L}{1,1000}$"}`, `"` + strings.Repeat("é", 1000) + `"`, ""},
		{"a large expression and many texts", `{"items":{"pattern":"^[A-Za-z0-9-]{1,255}$"}}`, `[` + ids.String()[1:] + `]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := time.Hour
			if c.want == overdue {
				limit = 50 * time.Millisecond // each takes seconds
			}
			s, _ := newService(t, schemas.Config{ValidationTime: limit})
			register(t, s, `{"name":"a","schema":`+dynamic(`,"d":`+c.schema, "")+`}`)
			_, err := s.Validate(t.Context(), "S1", analysis("a", `,"d":`+c.value))
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, core.CodeInvalid, "schema.violation", "")
			if got := lines(err); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
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
			s, _ := newService(t, schemas.Config{})
			register(t, s, `{"name":"a","schema":{"$schema":"https://json-schema.org/draft/2020-12/schema",`+dynamic(`,"d":`+c.schema, "")[1:]+`}`)
			_, err := s.Validate(t.Context(), "S1", analysis("a", `,"d":`+c.value))
			if diff := cmp.Diff(c.want, lines(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
