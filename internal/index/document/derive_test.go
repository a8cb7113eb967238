package document_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

func parse(t testing.TB, text string) *mapping.Field {
	t.Helper()
	f, err := mapping.Parse([]byte(text))
	if err != nil {
		t.Fatalf("parsing %s: %v", text, err)
	}
	return f
}

func render(t testing.TB, f *mapping.Field) string {
	t.Helper()
	raw, err := f.Render()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestDerive(t *testing.T) {
	known := parse(t, `{"dynamic":"strict","properties":{"k":{"type":"keyword"},"n":{"type":"nested","properties":{"l":{"type":"long"}}},
		"loose":{"dynamic":"false","properties":{"tight":{"dynamic":"strict"}}},"f":{"type":"flattened"},"off":{"enabled":false}}}`)
	keyword := `{"ignore_above":8191,"type":"keyword"}`
	for _, c := range []struct{ name, doc, want string }{
		{"nothing new", `{"k":"x","n":[{"l":1}]}`, ``},
		{"scalars", `{"s":"x","i":1,"d":1.5,"b":false,"t":"2020-12-02"}`, `{"b":{"type":"boolean"},"d":{"type":"double"},` +
			`"i":{"type":"long"},"s":` + keyword + `,"t":{"type":"date"}}`},
		{
			"dates that are none", `{"a":"2020","b":"2020-13-01","c":"2020-12-02 10:00","d":"2020-12-02T","w":"2020-W10-2","x":"2020-12-02T24:00"}`,
			`{"a":` + keyword + `,"b":` + keyword + `,"c":` + keyword + `,"d":{"type":"date"},"w":` + keyword + `,"x":` + keyword + `}`,
		},
		{"an integer too big", `{"a":9223372036854775808,"b":-9223372036854775808}`, `{"a":{"type":"double"},"b":{"type":"long"}}`},
		{"arrays", `{"a":[null,[],1,null],"b":[1,2.5],"c":[1,"x"],"d":[["x"]],"e":[true,1]}`, `{"a":{"type":"long"},` +
			`"b":{"type":"double"},"c":` + keyword + `,"d":` + keyword + `,"e":` + keyword + `}`},
		{"nothing to know", `{"a":null,"b":[],"c":{},"d":[{}],"e":{"x":[null]}}`, ``},
		{"objects", `{"o":{"x":1,"y":null},"e":[{"x":1},{"y":"z"}]}`, `{"e":{"properties":{"x":{"type":"long"},"y":` + keyword +
			`},"type":"nested"},"o":{"properties":{"x":{"type":"long"}}}}`},
		{
			"below a nested field", `{"n":[{"l":1},{"m":{"z":1}}]}`,
			`{"n":{"properties":{"m":{"properties":{"z":{"type":"long"}}}},"type":"nested"}}`,
		},
		{"info", `{"info":{"x":1},"o":{"info":[{"y":1}]},"p":{"info":"text"}}`, `{"info":{"ignore_above":8191,"type":"flattened"},` +
			`"o":{"properties":{"info":{"ignore_above":8191,"type":"flattened"}}},"p":{"properties":{"info":` + keyword + `}}}`},
		{"empty info", `{"a.info":{},"n":[{"info":{}}]}`, `{"a":{"properties":{"info":{"ignore_above":8191,"type":"flattened"}}},` +
			`"n":{"properties":{"info":{"ignore_above":8191,"type":"flattened"}},"type":"nested"}}`},
		{"dotted names", `{"a.b":1,"a":{"c":"x"},"n.q":1}`, `{"a":{"properties":{"b":{"type":"long"},"c":` + keyword + `}},` +
			`"n":{"properties":{"q":{"type":"long"}},"type":"nested"}}`},
		{"escaped names", `{"\u0061\"":1}`, `{"a\"":{"type":"long"}}`},
		{
			"what the mapping does not want", `{"loose":{"x":1,"tight":{"y":1}},"f":{"z":1},"off":{"w":1}}`,
			`{"loose":{"properties":{"tight":{"properties":{"y":{"type":"long"}}}}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			added, err := document.Derive(known, nil, []byte(c.doc))
			if err != nil {
				t.Fatal(err)
			}
			want := `{}`
			if c.want != "" {
				want = `{"properties":` + c.want + `}`
			}
			if diff := cmp.Diff(want, render(t, added)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if added.Empty() != (c.want == "") {
				t.Errorf("Empty() = %v", added.Empty())
			}
		})
	}
	for _, doc := range []string{
		`{"new":1,"n":"x"}`, `{"new":[1,{"x":1}]}`, `{"new":{"a":1},"new.a.b":2}`, `{"new":{"":1}}`, `{"new":1e999}`, `{"new":1`,
		`{"` + strings.Repeat("x.", 5000) + `x":1}`, strings.Repeat(`{"x":`, 900) + `1` + strings.Repeat(`}`, 900),
	} {
		if added, err := document.Derive(known, nil, []byte(doc)); err == nil || added != nil {
			t.Errorf("%s: derived %s and %v, want an error", doc, render(t, added), err)
		}
	}
}

func TestEmptiesAndRemove(t *testing.T) {
	known := parse(t, `{"dynamic":"strict","properties":{"k":{"type":"keyword"},"n":{"type":"nested","properties":{"l":{"type":"long"}}}}}`)
	for _, c := range []struct {
		name, doc string
		empties   []string
		want      string
	}{
		{"none", `{"k":null,"n":[],"a":1}`, nil, `{"k":null,"n":[],"a":1}`},
		{"first", `{ "a" : null , "k" : "x" }`, []string{"a"}, `{ "k" : "x" }`},
		{"middle", `{"k":"x", "a" : [ ] ,"n":[]}`, []string{"a"}, `{"k":"x" ,"n":[]}`},
		{"last", `{"k":"x","a":{} }`, []string{"a"}, `{"k":"x" }`},
		{"all", `{"a":null,"b":[[]],"c":{"d":{}}}`, []string{"a", "b", "c"}, `{}`},
		{"several around one", `{"a":{},"b":{},"k":"x","c":{},"d":{}}`, []string{"a", "b", "c", "d"}, `{"k":"x"}`},
		{"in elements", `{"n":[{"l":1,"m":null},{"m":[]},{"l":2}]}`, []string{"n.m"}, `{"n":[{"l":1},{},{"l":2}]}`},
		{"only where no element has a value", `{"n":[{"m":null},{"m":1}]}`, nil, `{"n":[{"m":null},{"m":1}]}`},
		{"below a new object", `{"o":{"a":1,"b":null}}`, []string{"o.b"}, `{"o":{"a":1}}`},
		{"dotted and escaped", `{"n.x":null,"k":1.0,"\u0061":[]}`, []string{"a", "n.x"}, `{"k":1.0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := document.Empties(known, []byte(c.doc))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.empties, got); diff != "" {
				t.Errorf("Empties (-want +got):\n%s", diff)
			}
			out := string(document.Remove([]byte("x"), []byte(c.doc), got))
			if out != "x"+c.want {
				t.Errorf("Remove returned %s, want %s", out[1:], c.want)
			}
			if !json.Valid([]byte(out[1:])) {
				t.Errorf("Remove returned invalid JSON: %s", out[1:])
			}
		})
	}
}
