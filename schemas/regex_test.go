package schemas_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/schemas"
)

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
