package sqon_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/filter/sqon"
)

// catalogue is a small set of fields.
type catalogue map[string]sqon.Field

func (c catalogue) Field(name string) (sqon.Field, bool) {
	f, ok := c[name]
	return f, ok
}

func (c catalogue) Names() iter.Seq[string] { return slices.Values(slices.Sorted(maps.Keys(c))) }

// nameless hides the names.
type nameless struct{ sqon.Fields }

var (
	_ sqon.Fields = catalogue(nil)
	_ sqon.Names  = catalogue(nil)
)

func small() catalogue {
	files, index := []string{"files"}, []string{"files", "files.index"}
	return catalogue{
		"sex":              {Type: "keyword"},
		"age":              {Type: "long"},
		"weight":           {Type: "double"},
		"when":             {Type: "date"},
		"done":             {Type: "boolean"},
		"note":             {Type: "text"},
		"at":               {Type: "ip"},
		"lost":             {Type: "alias"},
		"donor":            {Type: "object"},
		"files":            {Type: "nested", Nested: files},
		"files.type":       {Type: "keyword", Nested: files},
		"files.size":       {Type: "long", Nested: files},
		"files.index":      {Type: "nested", Nested: index},
		"files.index.type": {Type: "keyword", Nested: index},
		"files.index.size": {Type: "long", Nested: index},
		"kin":              {Type: "nested", Nested: []string{"kin"}},
		"kin.sex":          {Type: "keyword", Nested: []string{"kin"}},
	}
}

func clauseOf(op, field, value string) string {
	return `{"op":"` + op + `","content":{"fieldName":"` + field + `","value":` + value + `}}`
}

func TestCheckAccepts(t *testing.T) {
	for name, text := range map[string]string{
		"everything":               `{}`,
		"plain values":             clauseOf("in", "sex", `["F",1,true,"__missing__","F*","set_id:x"]`),
		"all of a number":          clauseOf("all", "age", `[1]`),
		"some-not-in of a text":    clauseOf("some-not-in", "note", `"x"`),
		"numbers and their texts":  clauseOf("in", "age", `[1,-2.5,"3","4e2"]`),
		"numbers as Java has them": clauseOf("in", "age", `["007","+5","-0.10",".5","5.","+.5e-07","1E+2"]`),
		"numbers out of range":     clauseOf("in", "age", `[1e300,99999999999999999999,0.5]`),
		"a range of such a number": clauseOf("gt", "weight", `"+007.5"`),
		"no plain numbers":         clauseOf("not-in", "age", `["__missing__","set_id:x"]`),
		"no plain booleans":        clauseOf("all", "done", `["__missing__","set_id:x"]`),
		"addresses":                clauseOf("in", "at", `["10.0.0.1","::1","2001:DB8::1","::ffff:10.0.0.1","__missing__","set_id:x"]`),
		"a pattern of addresses":   `{"op":"filter","content":{"fieldNames":["at"],"value":"10.*"}}`,
		"a pattern of booleans":    `{"op":"filter","content":{"fieldNames":["done"],"value":"t*"}}`,
		"all kinds of dates":       clauseOf("in", "when", `["2024-03-05T10","2024-03-05T","1709634030123","-1.5",1.5,"2024-W10-2","2024-065"]`),
		"a range":                  clauseOf("<=", "weight", `"7.5"`),
		"between dates":            clauseOf("between", "when", `["2024","2024-03-05T10:20:30Z"]`),
		"a date in milliseconds":   clauseOf(">=", "when", `1709634030123`),
		"booleans and their texts": clauseOf("in", "done", `[true,"false"]`),
		"an escaped text":          clauseOf("in", "sex", `"\\*"`),
		"no elements":              clauseOf("in", "files", `"__missing__"`),
		"wildcard":                 `{"op":"filter","content":{"fieldNames":["sex","note","done"],"value":"x"}}`,
		"a pivot":                  `{"op":"and","pivot":"files","content":[` + clauseOf("in", "files.type", `"x"`) + `]}`,
		"a pivot of a clause":      `{"op":"in","pivot":"files","content":{"fieldName":"files.index.type","value":"x"}}`,
		"a field outside a pivot":  `{"op":"and","pivot":"files","content":[` + clauseOf("in", "sex", `"x"`) + `]}`,
		"a pivot outside a pivot":  `{"op":"and","pivot":"files","content":[{"op":"or","pivot":"kin","content":[]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := parsed(t, text)
			if err := f.Check(small()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSuggestionIsWhole checks that a suggestion is complete when it differs from a truncated name only near its end.
func TestSuggestionIsWhole(t *testing.T) {
	name := strings.Repeat("x", 50)
	f := parsed(t, clauseOf("in", name+"s", `1`))
	want := `unknown field "` + strings.Repeat("x", 40) + `…", did you mean "` + name + `"?`
	if err := f.Check(catalogue{name: {Type: "keyword"}}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestCheckRejects(t *testing.T) {
	const numbers, exact = "in, not-in, gt, gte, lt, lte, between", "in, not-in, some-not-in, all, filter"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"unknown field":        {clauseOf("in", "sx", `1`), []string{`/content/fieldName|fieldName|unknown field "sx", did you mean "sex"?`}},
		"unknown far field":    {clauseOf("in", "diagnosis", `1`), []string{`/content/fieldName|fieldName|unknown field "diagnosis"`}},
		"field with a case":    {clauseOf("in", "FILES.Type", `1`), []string{`/content/fieldName|fieldName|unknown field "FILES.Type", did you mean "files.type"?`}},
		"unknown in wildcard":  {`{"op":"filter","content":{"fieldNames":["sex","x"],"value":"x"}}`, []string{`/content/fieldNames/1|fieldName|unknown field "x"`}},
		"range of a keyword":   {clauseOf(">", "sex", `1`), []string{`/op|op|"gt" does not apply to the field "sex" of type keyword, which takes ` + exact}},
		"wildcard of a number": {`{"op":"filter","content":{"fieldNames":["age","when","sex"],"value":"x"}}`, []string{`/op|op|"wildcard" does not apply to the field "age" of type long, which takes ` + numbers}},
		"between of a text":    {clauseOf("between", "note", `[1,2]`), []string{`/op|op|"between" does not apply to the field "note" of type text, which takes in, not-in, filter`}},
		"no numbers":           {clauseOf("in", "age", `["1","abc",true,"","0x1","1e999","inf"," 1","1?"]`), []string{`/content/value/1|value|"abc" is not a number`, `/content/value/2|value|"true" is not a number`, `/content/value/3|value|"" is not a number`, `/content/value/4|value|"0x1" is not a number`, `/content/value/5|value|"1e999" is not a number`, `/content/value/6|value|"inf" is not a number`, `/content/value/7|value|" 1" is not a number`, `/content/value/8|value|"1?" is not a number`}},
		"one that is none":     {clauseOf("all", "weight", `["x"]`), []string{`/content/value|value|"x" is not a number`}},
		"pattern in a range":   {clauseOf("gt", "age", `"1*"`), []string{`/content/value|value|"1*" is not a number`}},
		"missing in a range":   {clauseOf("between", "when", `["__missing__","2024"]`), []string{`/content/value/0|value|"__missing__" is neither an ISO 8601 date nor a number of milliseconds`}},
		"no date":              {clauseOf("in", "when", `["2024-13",true,1.5e0]`), []string{`/content/value/0|value|"2024-13" is neither an ISO 8601 date nor a number of milliseconds`, `/content/value/1|value|"true" is neither an ISO 8601 date nor a number of milliseconds`, `/content/value/2|value|"1.5e0" is neither an ISO 8601 date nor a number of milliseconds`}},
		"no address": {clauseOf("in", "at", `["10.0.0.0/8","10.0.0","010.0.0.1","fe80::1%eth0","",1,true]`), []string{
			`/content/value/0|value|"10.0.0.0/8" is not an IP address`, `/content/value/1|value|"10.0.0" is not an IP address`,
			`/content/value/2|value|"010.0.0.1" is not an IP address`, `/content/value/3|value|"fe80::1%eth0" is not an IP address`,
			`/content/value/4|value|"" is not an IP address`, `/content/value/5|value|"1" is not an IP address`, `/content/value/6|value|"true" is not an IP address`,
		}},
		"no numerals":              {clauseOf("in", "weight", `["+","-.","1e","1e+","--1","+-1","1.2.3","1d","1_0","NaN"]`), noNumbers("+", "-.", "1e", "1e+", "--1", "+-1", "1.2.3", "1d", "1_0", "NaN")},
		"a pattern in in":          {clauseOf("in", "age", `["1","1*"]`), []string{`/content/value/1|value|"1*" is a pattern, which only text fields support`}},
		"a pattern in not-in":      {clauseOf("not-in", "when", `["2024*"]`), []string{`/content/value|value|"2024*" is a pattern, which only text fields support`}},
		"a pattern in some-not-in": {clauseOf("some-not-in", "done", `["t*","true"]`), []string{`/content/value/0|value|"t*" is a pattern, which only text fields support`}},
		"a pattern in all":         {clauseOf("all", "at", `"10.*"`), []string{`/content/value|value|"10.*" is a pattern, which only text fields support`}},
		"an escaped pattern":       {clauseOf("in", "age", `"1\\*"`), []string{`/content/value|value|"1*" is not a number`}},
		"an alias to nowhere":      {clauseOf("in", "lost", `"x"`), []string{`/content/fieldName|fieldName|the field "lost" is an alias without a target field`}},
		"wildcard on an alias":     {`{"op":"filter","content":{"fieldNames":["sex","lost"],"value":"x"}}`, []string{`/content/fieldNames/1|fieldName|the field "lost" is an alias without a target field`}},
		"an op of a later name":    {`{"op":"filter","content":{"fieldNames":["sex","age"],"value":"x"}}`, []string{`/op|op|"wildcard" does not apply to the field "age" of type long, which takes ` + numbers}},
		"only the first is hinted": {
			`{"op":"and","content":[` + clauseOf("in", "sx", `1`) + `,` + clauseOf("in", "agee", `1`) + `,{"op":"and","pivot":"file","content":[]}]}`,
			[]string{
				`/content/0/content/fieldName|fieldName|unknown field "sx", did you mean "sex"?`, `/content/1/content/fieldName|fieldName|unknown field "agee"`,
				`/content/2/pivot|pivot|unknown pivot "file"`,
			},
		},
		"no boolean":      {clauseOf("not-in", "done", `["yes",2,"TRUE"]`), []string{`/content/value/0|value|"yes" is neither true nor false`, `/content/value/1|value|"2" is neither true nor false`, `/content/value/2|value|"TRUE" is neither true nor false`}},
		"pivot unknown":   {`{"op":"and","pivot":"file","content":[]}`, []string{`/pivot|pivot|unknown pivot "file", did you mean "files"?`}},
		"pivot an object": {`{"op":"and","pivot":"donor","content":[]}`, []string{`/pivot|pivot|the pivot "donor" is not a nested path, it has the type object`}},
		"pivot a field":   {`{"op":"and","content":[{"op":"in","pivot":"files.type","content":{"fieldName":"files.type","value":1}}]}`, []string{`/content/0/pivot|pivot|the pivot "files.type" is not a nested path, it has the type keyword`}},
		"faults at several places": {
			`{"op":"or","content":[` + clauseOf("in", "x.y", `1`) + `,null,` + clauseOf("in", "done", `7`) + `]}`,
			[]string{`/content/0/content/fieldName|fieldName|unknown field "x.y"`, `/content/2/content/value|value|"7" is neither true nor false`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := parsed(t, tt.text)
			if diff := cmp.Diff(tt.want, lines(rejected(t, f.Check(small())))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// noNumbers returns the violations of several values.
func noNumbers(values ...string) []string {
	for i, v := range values {
		values[i] = fmt.Sprintf("/content/value/%d|value|%q is not a number", i, v)
	}
	return values
}

// counted counts how often names are requested, and how many are returned.
type counted struct {
	catalogue
	names       []string
	asked, told int
}

func (c *counted) Names() iter.Seq[string] {
	c.asked++
	return func(yield func(string) bool) {
		for _, name := range c.names {
			if c.told++; !yield(name) {
				return
			}
		}
	}
}

// TestCheckOfManyUnknownNames checks that only one unknown name is compared with all names, within a limit.
func TestCheckOfManyUnknownNames(t *testing.T) {
	fields := &counted{catalogue: small()}
	for i := range 10_000 {
		fields.names = append(fields.names, fmt.Sprintf("%030d%030d", i*7919, i*104729))
	}
	var clauses []string
	for i := range 20 {
		clauses = append(clauses, clauseOf("in", fmt.Sprintf("%060x", (i+1)*0x9e3779b97f4a), `1`))
	}
	err := parsed(t, `{"op":"and","content":[`+strings.Join(clauses, ",")+`]}`).Check(fields)
	if got := rejected(t, err); len(got) != 20 {
		t.Errorf("%d faults", len(got))
	}
	// four million steps suffice to read 70,000 names of 60 bytes.
	if fields.asked != 1 || fields.told > 70_000 {
		t.Errorf("names were requested %d times, %d were returned", fields.asked, fields.told)
	}
}

func TestCheckWithoutNames(t *testing.T) {
	got := lines(rejected(t, parsed(t, clauseOf("in", "sx", `1`)).Check(nameless{small()})))
	if diff := cmp.Diff([]string{`/content/fieldName|fieldName|unknown field "sx"`}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCheckTellsTwentyFaults(t *testing.T) {
	values := clauseOf("in", "age", `["x"`+strings.Repeat(`,"x"`, 99)+`]`)
	names := `{"op":"and","content":[` + clauseOf("in", "x", `1`) + strings.Repeat(","+clauseOf("in", "x", `1`), 99) + `]}`
	for _, text := range []string{values, names} {
		if got := rejected(t, parsed(t, text).Check(small())); len(got) != sqon.MaxViolations {
			t.Errorf("%d faults", len(got))
		}
	}
}

func TestOperators(t *testing.T) {
	exact := []string{"in", "not-in", "some-not-in", "all", "filter"}
	ordered := []string{"in", "not-in", "gt", "gte", "lt", "lte", "between"}
	for fieldType, want := range map[string][]string{
		"keyword": exact, "boolean": exact, "ip": exact, "wildcard": exact, "constant_keyword": exact, "flattened": exact,
		"byte": ordered, "short": ordered, "integer": ordered, "long": ordered, "unsigned_long": ordered, "half_float": ordered,
		"float": ordered, "double": ordered, "scaled_float": ordered, "date": ordered, "date_nanos": ordered,
		"text": {"in", "not-in", "filter"}, "nested": {"in", "not-in", "filter"}, "": {"in", "not-in", "filter"},
	} {
		t.Run(fieldType, func(t *testing.T) {
			got := sqon.Operators(fieldType)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			got[0] = "changed"
			if sqon.Operators(fieldType)[0] != "in" {
				t.Error("the slice is shared")
			}
			fields := catalogue{"a": {Type: fieldType}}
			for _, op := range want {
				text := map[string]string{
					"filter":  `{"op":"filter","content":{"fieldNames":["a"],"value":"x"}}`,
					"between": clauseOf("between", "a", `[1,2]`),
				}[op]
				if text == "" {
					value, special := map[string]string{"boolean": `true`, "ip": `"10.0.0.1"`}[fieldType]
					if !special {
						value = `1`
					}
					text = clauseOf(op, "a", value)
				}
				if err := parsed(t, text).Check(fields); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
