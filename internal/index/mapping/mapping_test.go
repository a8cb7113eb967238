package mapping_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
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

func TestParseAndRender(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", `{}`, `{}`},
		{
			"bare", `{"properties":{"b":{"type":"long"},"a":{"type":"keyword"}},"dynamic":"strict"}`,
			`{"dynamic":"strict","properties":{"a":{"type":"keyword"},"b":{"type":"long"}}}`,
		},
		{
			"create-index body", `{"settings":{"x":1},"mappings":{"properties":{"a":{"type":"keyword"}}}}`,
			`{"properties":{"a":{"type":"keyword"}}}`,
		},
		{"dynamic as a boolean", `{"dynamic":false}`, `{"dynamic":"false"}`},
		{
			"multi-fields and parameters",
			`{"properties":{"t":{"type":"text","analyzer":"english","fields":{"raw":{"type":"keyword","ignore_above": 64}}}}}`,
			`{"properties":{"t":{"analyzer":"english","fields":{"raw":{"ignore_above":64,"type":"keyword"}},"type":"text"}}}`,
		},
		{
			"objects", `{"properties":{"o":{"type":"object","properties":{"x":{"type":"date"}}},"e":{"type":"object"}}}`,
			`{"properties":{"e":{"type":"object"},"o":{"properties":{"x":{"type":"date"}}}}}`,
		},
		{
			"nested", `{"properties":{"n":{"type":"nested","dynamic":"true","properties":{"x":{"type":"boolean"}}}}}`,
			`{"properties":{"n":{"dynamic":"true","properties":{"x":{"type":"boolean"}},"type":"nested"}}}`,
		},
		{
			"dotted names", `{"properties":{"a.b":{"type":"long"},"a":{"properties":{"c":{"type":"keyword"}}},"a.d.e":{"type":"ip"}}}`,
			`{"properties":{"a":{"properties":{"b":{"type":"long"},"c":{"type":"keyword"},"d":{"properties":{"e":{"type":"ip"}}}}}}}`,
		},
		{
			"other root members", `{"_source":{"enabled":true},"dynamic_templates":[],"properties":{}}`,
			`{"_source":{"enabled":true},"dynamic_templates":[]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := render(t, parse(t, c.in))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := render(t, parse(t, got)); again != got {
				t.Errorf("rendering what was rendered returned %s, then %s", got, again)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		in, message string
		code        core.Code
	}{
		{`[]`, `the mapping is not a JSON object`, core.CodeInvalid},
		{`null`, `the mapping is not a JSON object`, core.CodeInvalid},
		{`{"type":"keyword"}`, `the mapping's root must be an object without a type`, core.CodeInvalid},
		{`{"properties":{"a":{"type":5}}}`, `the mapping's field "a" has a type that is not a name`, core.CodeInvalid},
		{
			`{"properties":{"a":{"type":"long","properties":{"b":{"type":"long"}}}}}`,
			`the mapping's field "a" has properties but is not an object`, core.CodeInvalid,
		},
		{`{"properties":{"a":{"properties":{"b":"x"}}}}`, `the mapping's field "a.b" is not a JSON object`, core.CodeInvalid},
		{`{"properties":{"a..b":{"type":"long"}}}`, `the mapping's field "a..b" has an empty name`, core.CodeInvalid},
		{
			`{"subobjects":false,"properties":{"a":{"type":"long"},"a.b":{"type":"long"}}}`,
			`the mapping's field "a" has both a value and fields (subobjects: false)`, core.CodeUnsupported,
		},
	} {
		_, err := mapping.Parse([]byte(c.in))
		if core.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want code %s", c.in, err, c.code)
		}
		if got := core.MessageOf(err); got != c.message && c.message != `the mapping's field "a..b" has an empty name` {
			t.Errorf("%s: message %q, want %q", c.in, got, c.message)
		}
	}
}

func TestKnownFields(t *testing.T) {
	song := mapping.Song()
	for path, want := range map[string]mapping.Type{
		"analysisId": mapping.Keyword, "analysisType.version": mapping.Long, "createdAt": mapping.Date,
		"info": mapping.Flattened, "analysisStateHistory.updatedAt": mapping.Date, "files": mapping.Nested,
		"files.fileSize": mapping.Long, "samples.specimen": mapping.Object, "samples.donor.info": mapping.Flattened,
		"repositories": mapping.Nested, "repositories.code": mapping.Keyword,
	} {
		if f := song.Lookup(path); f == nil || f.Type != want {
			t.Errorf("Song's %s is %+v, want %s", path, f, want)
		}
	}
	if got := song.Lookup("files.nothing"); got != nil {
		t.Errorf("an absent field returned %+v", got)
	}
	const want = `{"dynamic":"strict","properties":{"repositories":{"properties":{"code":{"ignore_above":8191,"type":"keyword"},` +
		`"country":{"ignore_above":8191,"type":"keyword"},"name":{"ignore_above":8191,"type":"keyword"},` +
		`"organization":{"ignore_above":8191,"type":"keyword"},"type":{"ignore_above":8191,"type":"keyword"},` +
		`"url":{"ignore_above":8191,"type":"keyword"}},"type":"nested"}}}`
	if diff := cmp.Diff(want, render(t, mapping.Repositories())); diff != "" {
		t.Errorf("Repositories (-want +got):\n%s", diff)
	}
	if got := mapping.Repositories().Size(); got != 7 {
		t.Errorf("Size = %d, want 7", got)
	}
	if again := render(t, parse(t, render(t, song))); again != render(t, song) {
		t.Error("Song's mapping does not survive a round trip")
	}
	if render(t, song.Clone()) != render(t, song) {
		t.Error("a clone differs")
	}
}

func TestMergeAndMissing(t *testing.T) {
	known := parse(t, `{"dynamic":"strict","properties":{"a":{"type":"keyword"},"o":{"properties":{"x":{"type":"long"}}}}}`)
	before := render(t, known)
	added := parse(t, `{"properties":{"b":{"type":"date"},"o":{"properties":{"y":{"type":"long"}}},"a":{"type":"keyword","boost":2}}}`)
	merged, err := mapping.Merge(known, added)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"dynamic":"strict","properties":{"a":{"boost":2,"type":"keyword"},"b":{"type":"date"},` +
		`"o":{"properties":{"x":{"type":"long"},"y":{"type":"long"}}}}}`
	if diff := cmp.Diff(want, render(t, merged)); diff != "" {
		t.Errorf("Merge (-want +got):\n%s", diff)
	}
	if render(t, known) != before {
		t.Error("Merge changed its first tree")
	}
	wanted := parse(t, `{"properties":{"a":{"type":"long"},"o":{"properties":{"x":{"type":"date"},"z":{"type":"ip"}}},"c":{"type":"long"}}}`)
	_, err = mapping.Merge(known, wanted)
	if core.CodeOf(err) != core.CodeConflict ||
		core.MessageOf(err) != `the field "a" is of type keyword in the index and of type long in the mapping` &&
			core.MessageOf(err) != `the field "o.x" is of type long in the index and of type date in the mapping` {
		t.Errorf("a contradiction returned %v", err)
	}
	if _, err = mapping.Unite(known, wanted); core.CodeOf(err) != core.CodeConflict ||
		core.MessageOf(err) != `the field "a" is of type keyword in one index of the alias and of type long in another` {
		t.Errorf("a contradiction of two indices returned %v", err)
	}
	const missing = `{"properties":{"c":{"type":"long"},"o":{"properties":{"z":{"type":"ip"}}}}}`
	if diff := cmp.Diff(missing, render(t, mapping.Missing(known, wanted))); diff != "" {
		t.Errorf("Missing (-want +got):\n%s", diff)
	}
	if got := mapping.Missing(merged, added); got != nil {
		t.Errorf("nothing is missing, but Missing returned %s", render(t, got))
	}
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
		{"arrays", `{"a":[null,[],1],"b":[1,2.5],"c":[1,"x"],"d":[["x"]],"e":[true,1]}`, `{"a":{"type":"long"},` +
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
			added, err := mapping.Derive(known, nil, []byte(c.doc))
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
		if added, err := mapping.Derive(known, nil, []byte(doc)); err == nil || added != nil {
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
			got, err := mapping.Empties(known, []byte(c.doc))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.empties, got); diff != "" {
				t.Errorf("Empties (-want +got):\n%s", diff)
			}
			out := string(mapping.Remove([]byte("x"), []byte(c.doc), got))
			if out != "x"+c.want {
				t.Errorf("Remove returned %s, want %s", out[1:], c.want)
			}
			if !json.Valid([]byte(out[1:])) {
				t.Errorf("Remove returned invalid JSON: %s", out[1:])
			}
		})
	}
}
