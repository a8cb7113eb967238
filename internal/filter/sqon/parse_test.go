package sqon_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

func TestParseAccepts(t *testing.T) {
	const clause = `{"op":"in","content":{"fieldName":"a","value":["x"]}}`
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":                {``, `{}`},
		"spaces":                 {" \r\n\t", `{}`},
		"null":                   {` null `, `{}`},
		"an empty object":        {`{ }`, `{}`},
		"a clause":               {clause, clause},
		"members in any order":   {`{"content":{"value":["x"],"fieldName":"a"},"op":"in"}`, clause},
		"an escaped member":      {`{"\u006fp":"in","content":{"fieldN\u0061me":"a","value":["x"]}}`, clause},
		"a scalar":               {`{"op":"in","content":{"fieldName":"a","value":"x"}}`, clause},
		"no value":               {`{"op":"all","content":{"fieldName":"a","value":[]}}`, `{"op":"all","content":{"fieldName":"a","value":[]}}`},
		"zero, false and empty":  {`{"op":"in","content":{"fieldName":"a","value":[0,false,""]}}`, `{"op":"in","content":{"fieldName":"a","value":[0,false,""]}}`},
		"numbers as written":     {`{"op":"in","content":{"fieldName":"a","value":[-0.10,1E+5,9007199254740993]}}`, `{"op":"in","content":{"fieldName":"a","value":[-0.10,1E+5,9007199254740993]}}`},
		"escapes":                {`{"op":"in","content":{"fieldName":"a","value":"\"\\\/\b\f\n\r\t\u0000\u00e9\ud83d\ude00<"}}`, `{"op":"in","content":{"fieldName":"a","value":["\"\\/\u0008\u000c\n\r\t\u0000é😀<"]}}`},
		"a range of one":         {`{"op":"gte","content":{"fieldName":"a","value":[5]}}`, `{"op":"gte","content":{"fieldName":"a","value":5}}`},
		"a range of text":        {`{"op":"lt","content":{"fieldName":"a","value":"2024"}}`, `{"op":"lt","content":{"fieldName":"a","value":"2024"}}`},
		"between":                {`{"op":"between","content":{"fieldName":"a","value":[1,"2"]}}`, `{"op":"between","content":{"fieldName":"a","value":[1,"2"]}}`},
		"wildcard":               {`{"op":"wildcard","content":{"fieldNames":["a","b"],"value":"*x"}}`, `{"op":"wildcard","content":{"fieldNames":["a","b"],"value":"*x"}}`},
		"filter and its notes":   {`{"op":"filter","content":{"fieldNames":["a"],"value":["x"],"entity":"files"}}`, `{"op":"wildcard","content":{"fieldNames":["a"],"value":"x"}}`},
		"patterns":               {`{"op":"filter","content":{"fieldNames":["a"],"value":["x","y"]}}`, `{"op":"wildcard","content":{"fieldNames":["a"],"value":["x","y"]}}`},
		"groups":                 {`{"op":"not","content":[` + clause + `,{"op":"or","content":[]}]}`, `{"op":"not","content":[` + clause + `,{"op":"or","content":[]}]}`},
		"members for everything": {`{"op":"or","content":[{},null]}`, `{"op":"or","content":[{"op":"and","content":[]},{"op":"and","content":[]}]}`},
		"a pivot":                {`{"op":"and","content":[],"pivot":"files"}`, `{"op":"and","pivot":"files","content":[]}`},
		"a pivot of a clause":    {`{"pivot":"files","op":"in","content":{"fieldName":"files.a","value":["x"]}}`, `{"op":"in","pivot":"files","content":{"fieldName":"files.a","value":["x"]}}`},
		"no pivot by null":       {`{"op":"and","content":[],"pivot":null}`, `{"op":"and","content":[]}`},
		"no pivot by a dot":      {`{"op":"and","content":[],"pivot":"."}`, `{"op":"and","content":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := parsed(t, tt.text)
			if got := printed(f); got != tt.want {
				t.Fatalf("%s, want %s", got, tt.want)
			}
			again := parsed(t, tt.want)
			if diff := cmp.Diff(bare(f.Root), bare(again.Root)); diff != "" {
				t.Errorf("what was printed is another filter: %s", diff)
			}
		})
	}
}

// bare returns a tree without pointers.
func bare(n *sqon.Node) *sqon.Node {
	if n == nil {
		return nil
	}
	out := *n
	out.Pointer = ""
	if n.Content != nil {
		out.Content = make([]*sqon.Node, len(n.Content))
	}
	for i, member := range n.Content {
		out.Content[i] = bare(member)
	}
	return &out
}

func TestParseAliases(t *testing.T) {
	for alias, want := range map[string]sqon.Operator{
		"=": sqon.In, "==": sqon.In, "===": sqon.In, "!=": sqon.NotIn, "!==": sqon.NotIn,
		">": sqon.Gt, ">=": sqon.Gte, "<": sqon.Lt, "<=": sqon.Lte,
	} {
		t.Run(alias, func(t *testing.T) {
			f := parsed(t, fmt.Sprintf(`{"op":%q,"content":{"fieldName":"a","value":1}}`, alias))
			if f.Root.Op != want {
				t.Errorf("%s, want %s", f.Root.Op, want)
			}
		})
	}
}

func TestParsePointers(t *testing.T) {
	f := parsed(t, `{"op":"and","content":[{"op":"or","content":[null,{"op":"in","content":{"fieldName":"a","value":1}}]}]}`)
	var got []string
	var walk func(n *sqon.Node)
	walk = func(n *sqon.Node) {
		got = append(got, n.Pointer)
		for _, member := range n.Content {
			walk(member)
		}
	}
	walk(f.Root)
	if diff := cmp.Diff([]string{"", "/content/0", "/content/0/content/0", "/content/0/content/1"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestParseRejects has one line "pointer | keyword | message" for each violation.
func TestParseRejects(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"a string":       {`"x"`, []string{`|node|a filter must be an object, not a string`}},
		"a list":         {`[{}]`, []string{`|node|a filter must be an object, not a list`}},
		"a member of 1":  {`{"op":"and","content":[1,true]}`, []string{`/content/0|node|a filter must be an object, not a number`, `/content/1|node|a filter must be an object, not a boolean`}},
		"no op":          {`{"content":[]}`, []string{`|op|op is missing`}},
		"only a pivot":   {`{"pivot":null}`, []string{`|op|op is missing`, `|content|content is missing`}},
		"op of null":     {`{"op":null,"content":[]}`, []string{`/op|op|op must be a string, not null`}},
		"op in capitals": {`{"op":"AND","content":[]}`, []string{`/op|op|unknown op "AND", did you mean "and"?`}},
		"op of SQL":      {`{"op":"LIKE","content":[]}`, []string{`/op|op|unknown op "LIKE", did you mean "wildcard"?`}},
		"op of MongoDB":  {`{"op":"nin","content":[]}`, []string{`/op|op|unknown op "nin", did you mean "not-in"?`}},
		"op misspelt":    {`{"op":"beetween","content":[]}`, []string{`/op|op|unknown op "beetween", did you mean "between"?`}},
		"op far off":     {`{"op":"\u0007` + strings.Repeat("é", 50) + `","content":[]}`, []string{`/op|op|unknown op "\a` + strings.Repeat("é", 39) + `…"`}},
		"no content":     {`{"op":"and"}`, []string{`|content|content is missing`}},
		"content null":   {`{"op":"and","content":null}`, []string{`/content|content|content must be a list or an object, not null`}},
		"group of a clause's content": {
			`{"op":"or","content":{"fieldName":"a","value":1}}`,
			[]string{`/content|content|content of "or" must be a list of filters`},
		},
		"clause of a group's content": {
			`{"op":"=","content":["x"]}`,
			[]string{`/content|content|content of "=" must be an object with fieldName and value`},
		},
		"the same with op behind": {
			`{"content":[{}],"op":"filter"}`,
			[]string{`/content|content|content of "filter" must be an object with fieldNames and value`},
		},
		"unknown member":             {`{"op":"and","content":[],"pviot":"files"}`, []string{`/pviot|member|unknown member "pviot", did you mean "pivot"?`}},
		"unknown member with slash":  {`{"op":"and","content":[],"~a/b":[{"c":[1,null]}]}`, []string{`/~0a~1b|member|unknown member "~a/b"`}},
		"unknown member of a clause": {`{"op":"in","content":{"field":"a","value":1}}`, []string{`/content/field|member|unknown member "field", did you mean "fieldName"?`, `/content|fieldName|fieldName is missing`}},
		"entity of a clause":         {`{"op":"in","content":{"fieldName":"a","value":1,"entity":"x"}}`, []string{`/content/entity|member|unknown member "entity"`}},
		"entity of 1":                {`{"op":"filter","content":{"fieldNames":["a"],"value":"x","entity":1}}`, []string{`/content/entity|member|entity must be a string, not a number`}},
		"op twice":                   {`{"op":"and","op":"or","content":[]}`, []string{`/op|member|duplicate member "op"`}},
		"content twice":              {`{"op":"and","content":[],"content":[7]}`, []string{`/content|member|duplicate member "content"`}},
		"pivot twice":                {`{"op":"and","pivot":null,"content":[],"pivot":null}`, []string{`/pivot|member|duplicate member "pivot"`}},
		"value twice":                {`{"op":"in","content":{"fieldName":"a","value":1,"v\u0061lue":2}}`, []string{`/content/value|member|duplicate member "value"`}},
		"pivot of 1":                 {`{"op":"and","pivot":1,"content":[]}`, []string{`/pivot|pivot|pivot must be a string or null, not a number`}},
		"pivot empty":                {`{"op":"and","pivot":"","content":[]}`, []string{`/pivot|pivot|pivot is empty`}},
		"field name of 1":            {`{"op":"in","content":{"fieldName":1,"value":1}}`, []string{`/content/fieldName|fieldName|a field name must be a string, not a number`}},
		"field name empty":           {`{"op":"in","content":{"fieldName":"","value":1}}`, []string{`/content/fieldName|fieldName|a field name is empty`}},
		"field names for in":         {`{"op":"in","content":{"fieldNames":["a"],"value":1}}`, []string{`/content/fieldNames|fieldName|"in" takes fieldName, not fieldNames`}},
		"field name for filter":      {`{"op":"filter","content":{"fieldName":"a","value":"x"}}`, []string{`/content/fieldName|fieldName|"filter" takes fieldNames, not fieldName`}},
		"both names":                 {`{"op":"in","content":{"fieldName":"a","fieldNames":["a"],"value":1}}`, []string{`/content/fieldNames|fieldName|"in" takes fieldName, not fieldNames`}},
		"field names of a string":    {`{"op":"wildcard","content":{"fieldNames":"a","value":"x"}}`, []string{`/content/fieldNames|fieldName|fieldNames must be a list of strings, not a string`}},
		"no field names":             {`{"op":"wildcard","content":{"fieldNames":[],"value":"x"}}`, []string{`/content/fieldNames|fieldName|fieldNames must have at least one name`}},
		"a field name of null":       {`{"op":"wildcard","content":{"fieldNames":["a",null,""],"value":"x"}}`, []string{`/content/fieldNames/1|fieldName|a field name must be a string, not null`, `/content/fieldNames/2|fieldName|a field name is empty`}},
		"no value":                   {`{"op":"in","content":{"fieldName":"a"}}`, []string{`/content|value|value is missing`}},
		"an empty content":           {`{"op":"in","content":{}}`, []string{`/content|fieldName|fieldName is missing`, `/content|value|value is missing`}},
		"value null":                 {`{"op":"in","content":{"fieldName":"a","value":null}}`, []string{`/content/value|value|a value must be a string, a number or a boolean, not null`}},
		"values of objects":          {`{"op":"in","content":{"fieldName":"a","value":["x",{"y":1},[2]]}}`, []string{`/content/value/1|value|a value must be a string, a number or a boolean, not an object`, `/content/value/2|value|a value must be a string, a number or a boolean, not a list`}},
		"two bounds":                 {`{"op":">","content":{"fieldName":"a","value":[1,2]}}`, []string{`/content/value|value|">" takes exactly one value`}},
		"no bound":                   {`{"op":"gt","content":{"fieldName":"a","value":[]}}`, []string{`/content/value|value|"gt" takes exactly one value`}},
		"a bound of true":            {`{"op":"gt","content":{"fieldName":"a","value":true}}`, []string{`/content/value|value|"gt" takes numbers and dates, not a boolean`}},
		"between of one":             {`{"op":"between","content":{"fieldName":"a","value":[1]}}`, []string{`/content/value|value|"between" takes exactly two values`}},
		"between of a scalar":        {`{"op":"between","content":{"fieldName":"a","value":1}}`, []string{`/content/value|value|"between" takes exactly two values`}},
		"between of booleans":        {`{"op":"between","content":{"fieldName":"a","value":[1,false]}}`, []string{`/content/value/1|value|"between" takes numbers and dates, not a boolean`}},
		"no pattern":                 {`{"op":"wildcard","content":{"fieldNames":["a"],"value":[]}}`, []string{`/content/value|value|"wildcard" takes at least one value`}},
		"patterns of 1 and true":     {`{"op":"filter","content":{"fieldNames":["a"],"value":["x",1,true]}}`, []string{`/content/value/1|value|"filter" takes strings, not a number`, `/content/value/2|value|"filter" takes strings, not a boolean`}},
		"a pattern of 1":             {`{"op":"filter","content":{"fieldNames":["a"],"value":1}}`, []string{`/content/value|value|"filter" takes strings, not a number`}},
		"faults at several places": {
			`{"op":"and","content":[{"op":"inn","content":{"fieldName":"a","value":1}},{},{"op":"not","content":[{"op":"in","content":{"fieldName":"a","value":1},"x":2}]}]}`,
			[]string{`/content/0/op|op|unknown op "inn", did you mean "in"?`, `/content/2/content/0/x|member|unknown member "x"`},
		},
		"cut":                       {`{"op":"and","content":[{"op":"i`, []string{`/content/0|json|invalid JSON: it ends too early`}},
		"cut behind a backslash":    {`{"op":"\`, []string{`|json|invalid JSON: it ends too early`}},
		"cut in an escape":          {`{"op":"\u00`, []string{`|json|invalid JSON at byte 7: an unknown escape`}},
		"cut in spaces":             {`{"op": `, []string{`|json|invalid JSON: it ends too early`}},
		"no JSON":                   {`op=and`, []string{`|json|invalid JSON at byte 0: expected a value`}},
		"a byte order mark":         {"\ufeff{}", []string{`|json|invalid JSON at byte 0: expected a value`}},
		"a zero byte":               {"{}\x00", []string{`|json|invalid JSON at byte 2: data after the filter`}},
		"two filters":               {`{} {}`, []string{`|json|invalid JSON at byte 3: data after the filter`}},
		"a comma behind":            {`{"op":"and","content":[],}`, []string{`|json|invalid JSON at byte 25: nothing after a comma`}},
		"a comma in front":          {`{"op":"and","content":[,{}]}`, []string{`/content/0|json|invalid JSON at byte 23: expected a value`}},
		"no comma":                  {`{"op":"and","content":[{} {}]}`, []string{`|json|invalid JSON at byte 26: expected a comma or ']'`}},
		"no colon":                  {`{"op" "and"}`, []string{`|json|invalid JSON at byte 6: expected a colon`}},
		"a name without quotes":     {`{op:"and"}`, []string{`|json|invalid JSON at byte 1: expected the name of a member`}},
		"a number with a zero":      {`{"op":"in","content":{"fieldName":"a","value":[01]}}`, []string{`|json|invalid JSON at byte 48: expected a comma or ']'`}},
		"a number with a point":     {`{"op":"in","content":{"fieldName":"a","value":1.}}`, []string{`|json|invalid JSON at byte 46: expected a value`}},
		"a number with an e":        {`{"op":"in","content":{"fieldName":"a","value":1e+}}`, []string{`|json|invalid JSON at byte 46: expected a value`}},
		"a word":                    {`{"op":"in","content":{"fieldName":"a","value":tru}}`, []string{`|json|invalid JSON at byte 46: expected a value`}},
		"not a number":              {`{"op":"in","content":{"fieldName":"a","value":NaN}}`, []string{`|json|invalid JSON at byte 46: expected a value`}},
		"a line feed in text":       {"{\"op\":\"a\nb\"}", []string{`|json|invalid JSON at byte 8: a control character in a string`}},
		"the same behind an escape": {"{\"op\":\"\\ta\nb\"}", []string{`|json|invalid JSON at byte 10: a control character in a string`}},
		"an unknown escape":         {`{"op":"\x"}`, []string{`|json|invalid JSON at byte 7: an unknown escape`}},
		"half a pair":               {`{"op":"\ud83d"}`, []string{`|json|invalid JSON at byte 7: an unpaired surrogate`}},
		"the other half":            {`{"op":"\ude00\ud83d"}`, []string{`|json|invalid JSON at byte 7: an unpaired surrogate`}},
		"invalid UTF-8":             {"{\"op\":\"and\",\"content\":[{\"op\":\"in\",\"content\":{\"fieldName\":\"a\",\"value\":\"b\xff\"}}]}", []string{`/content/0|json|invalid JSON at byte 70: a string is not valid UTF-8`}},
		"the same with an escape":   {"{\"op\":\"\\t\xff\"}", []string{`|json|invalid JSON at byte 7: a string is not valid UTF-8`}},
		"faults before bad JSON":    {`{"op":"x","content":[}`, []string{`/op|op|unknown op "x"`, `/content/0|json|invalid JSON at byte 21: expected a value`}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := sqon.Parse([]byte(tt.text))
			if diff := cmp.Diff(tt.want, lines(rejected(t, err))); diff != "" {
				t.Error(diff)
			}
			if f.Root != nil {
				t.Error("a rejected filter has a root")
			}
		})
	}
}

// lines returns violations as "pointer|keyword|message".
func lines(violations []core.Violation) []string {
	var out []string
	for _, v := range violations {
		out = append(out, v.Pointer+"|"+v.Keyword+"|"+v.Message)
	}
	return out
}

func TestParseMessage(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"at the root":  {`[]`, `the filter is not valid: a filter must be an object, not a list`},
		"with a place": {`{"op":1,"content":[]}`, `the filter is not valid at /op: op must be a string, not a number`},
		"with more":    {`{"op":"and","content":[1,2,3]}`, `the filter is not valid at /content/0: a filter must be an object, not a number (and 2 more)`},
		"unprintable":  {`{"\u0000\"":1,"op":"and","content":[]}`, `the filter is not valid at /\x00\": unknown member "\x00\""`},
		"a long place": {`{"` + strings.Repeat("long", 100) + `":1,"op":"and","content":[]}`, `the filter is not valid at …g` + strings.Repeat("long", 29) + `…: unknown member "` + strings.Repeat("long", 10) + `…"`},
		"a deep place": {strings.Repeat(`{"op":"and","content":[`, 40) + `1`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sqon.Parse([]byte(tt.text))
			rejected(t, err)
			got := core.MessageOf(err)
			if tt.want != "" && got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if len(got) > 300 {
				t.Errorf("the message has %d bytes", len(got))
			}
		})
	}
}

func TestParseTellsTwentyFaults(t *testing.T) {
	_, err := sqon.Parse([]byte(`{"op":"and","content":[` + strings.Repeat("1,", 100) + `2`))
	got := rejected(t, err)
	if len(got) != sqon.MaxViolations || got[19].Pointer != "/content/19" {
		t.Errorf("%d faults, the last at %s", len(got), got[len(got)-1].Pointer)
	}
}

// nest nests a filter in so many groups.
func nest(groups int, inner string) string {
	return strings.Repeat(`{"op":"and","content":[`, groups) + inner + strings.Repeat(`]}`, groups)
}

func TestParseDepth(t *testing.T) {
	const clause = `{"op":"in","content":{"fieldName":"a","value":1}}`
	parsed(t, nest(sqon.MaxDepth-1, clause))
	deep := strings.Repeat("/content/0", sqon.MaxDepth)
	for name, text := range map[string]string{
		"one too deep":           nest(sqon.MaxDepth, clause),
		"null too deep":          nest(sqon.MaxDepth, "null"),
		"3,000 deep":             nest(3_000, clause),
		"3,000,000 deep":         nest(3_000_000, clause),
		"300,000 without end":    strings.Repeat(`{"op":"and","content":[`, 300_000),
		"300,000 with op behind": strings.Repeat(`{"content":[`, 300_000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sqon.Parse([]byte(text))
			want := []string{deep + "|depth|the filter is more than 50 levels deep"}
			if diff := cmp.Diff(want, lines(rejected(t, err))); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("3,000,000 deep in an unknown member", func(t *testing.T) {
		for _, open := range []string{"[", `{"a":`} {
			_, err := sqon.Parse([]byte(`{"x":` + strings.Repeat(open, 3_000_000)))
			if diff := cmp.Diff([]string{"|depth|a value is more than 100 levels deep"}, lines(rejected(t, err))); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestParseValues(t *testing.T) {
	list := func(n int) string { return `["v"` + strings.Repeat(`,"v"`, n-1) + `]` }
	clause := func(n int) string { return `{"op":"in","content":{"fieldName":"a","value":` + list(n) + `}}` }
	wildcard := func(n int) string { return `{"op":"filter","content":{"fieldNames":` + list(n) + `,"value":"x"}}` }
	and := func(inner ...string) string { return `{"op":"and","content":[` + strings.Join(inner, ",") + `]}` }
	const scalar = `{"op":"in","content":{"fieldName":"a","value":1}}`
	for _, text := range []string{
		clause(10_000), wildcard(9_999), and(clause(5_000), wildcard(4_999)), and(slices.Repeat([]string{scalar}, 10_000)...),
	} {
		parsed(t, text)
	}
	for name, tt := range map[string]struct{ text, pointer string }{
		"in one clause":      {clause(10_001), "/content/value/10000"},
		"names":              {wildcard(10_000), "/content/value"},
		"names by number":    {wildcard(10_001), "/content/fieldNames/10000"},
		"in several clauses": {and(clause(5_000), clause(5_000), scalar), "/content/2/content/value"},
		"in many clauses":    {and(slices.Repeat([]string{scalar}, 10_001)...), "/content/10000/content/value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sqon.Parse([]byte(tt.text))
			want := []string{tt.pointer + "|values|the filter has more than 10000 values and field names"}
			if diff := cmp.Diff(want, lines(rejected(t, err))); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("groups without values", func(t *testing.T) {
		parsed(t, and(slices.Repeat([]string{"{}"}, 19_999)...))
		_, err := sqon.Parse([]byte(and(slices.Repeat([]string{"{}"}, 20_000)...)))
		want := []string{"/content/19999|nodes|the filter has more than 20000 groups and clauses"}
		if diff := cmp.Diff(want, lines(rejected(t, err))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestParseKeepsNothingOfItsInput(t *testing.T) {
	raw := []byte(`{"op":"in","content":{"fieldName":"name","value":["value"]}}`)
	f, err := sqon.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	clear(raw)
	if got := f.Root.Fields[0] + f.Root.Values[0].Text; got != "namevalue" {
		t.Errorf("%q", got)
	}
}

// TestParseLenient checks that an Or without members matches everything for clients, and nothing when it grants access.
func TestParseLenient(t *testing.T) {
	for text, want := range map[string]string{
		`{"op":"or","content":[]}`: `{}`,
		`{"content":[],"op":"or"}`: `{}`,
		`{"op":"and","content":[{"op":"or","content":[]},{"op":"in","content":{"fieldName":"a","value":["b"]}}]}`: `{"op":"in","content":{"fieldName":"a","value":["b"]}}`,
		`{"op":"not","content":[{"op":"or","content":[]}]}`:                                                       `{"op":"not","content":[{"op":"and","content":[]}]}`,
		`{"op":"or","content":[{"op":"in","content":{"fieldName":"a","value":["b"]}}]}`:                           `{"op":"in","content":{"fieldName":"a","value":["b"]}}`,
		`{"op":"not","content":[]}`: `{}`,
	} {
		lenient, err := sqon.ParseLenient([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(lenient.Normalize().AppendJSON(nil)); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	strict, err := sqon.Parse([]byte(`{"op":"or","content":[]}`))
	if err != nil || strict.Root.Op != sqon.Or {
		t.Errorf("got %v, %v", strict.Root, err)
	}
	if _, err := sqon.ParseLenient([]byte(`{"op":"or"}`)); err == nil {
		t.Error("an or without content is taken")
	}
}
