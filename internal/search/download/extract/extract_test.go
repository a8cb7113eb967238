package extract_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/base/jsontext"
	"tutti/internal/index/mapping"
	"tutti/internal/search/download/extract"
)

// table returns the rows of a document: the values of each column, in brackets if an array was flattened.
func table(doc string, paths, rows []string) []string {
	var all []string
	r := extract.NewReader(extract.NewPlan(paths, rows))
	for range 2 { // a reader has nothing left of the document before
		all = nil
		_ = r.Rows([]byte(doc), func(row *extract.Row) error {
			var cells []string
			for c := range paths {
				var values []string
				for _, v := range row.Values[c] {
					values = append(values, string(v.Of(row.Doc)))
				}
				cell := strings.Join(values, ",")
				if row.Lists[c] {
					cell = "[" + cell + "]"
				}
				cells = append(cells, cell)
			}
			all = append(all, strings.Join(cells, " | "))
			return nil
		})
	}
	return all
}

func TestRows(t *testing.T) {
	const doc = `{"a":1,"b":{"c":"x","d":[{"e":1},{"e":[2,3]},{"f":0}]},"n":[{"m":[{"v":1,"w":[]},{"v":2}],"k":"p"},{"k":"q"},{"m":{"v":3},"k":null}],"z":null}`
	for _, c := range []struct {
		name, doc   string
		paths, rows []string
		want        []string
	}{
		{"values", doc, []string{"a", "b.c", "b.d.e", "z", "none", "b.none"}, nil, []string{`1 | "x" | [1,2,3] |  |  | `}},
		{"containers", doc, []string{"b", "b.d.e", "n.m"}, nil, []string{
			`{"c":"x","d":[{"e":1},{"e":[2,3]},{"f":0}]} | [1,2,3] | [{"v":1,"w":[]},{"v":2},{"v":3}]`,
		}},
		{"the document", ` {"a":1} `, []string{"", "a"}, nil, []string{`{"a":1} | 1`}},
		{"elements", doc, []string{"a", "n.k", "n.m.v"}, []string{"n"}, []string{`1 | "p" | [1,2]`, `1 | "q" | `, `1 |  | 3`}},
		{"elements within elements", doc, []string{"a", "n.k", "n.m.v", "n.m.w"}, []string{"n", "n.m"}, []string{`1 | "p" | 1 | []`, `1 | "p" | 2 | `, `1 |  | 3 | `}},
		{"the elements themselves", doc, []string{"n", "n.k"}, []string{"n"}, []string{
			`{"m":[{"v":1,"w":[]},{"v":2}],"k":"p"} | "p"`, `{"k":"q"} | "q"`, `{"m":{"v":3},"k":null} | `,
		}},
		{"no elements", `{"a":1,"n":[]}`, []string{"a"}, []string{"n"}, nil},
		{"elements that are none", `{"n":[1,null,"x",{"k":1}]}`, []string{"n.k"}, []string{"n"}, []string{"1"}},
		{"names with dots", `{"b.c":1,"b":{"c":2,"d.e":3},"b.d.e":4,"b.":5,".b":6,"b.d":7}`, []string{"b.c", "b.d.e"}, nil, []string{"1,2 | 3,4"}},
		{"names with escapes", `{"\u0061":1,"b":{"\u0063":2}}`, []string{"a", "b.c"}, nil, []string{"1 | 2"}},
		{"a name that begins another", `{"ab":1,"a":2,"abc":3}`, []string{"a", "abc", "ab"}, nil, []string{"2 | 3 | 1"}},
		{"one path twice", `{"a":1}`, []string{"a", "a"}, nil, []string{"1 | 1"}},
		{"a name twice", `{"a":1,"a":2}`, []string{"a"}, nil, []string{"1,2"}},
		{"arrays of arrays", `{"a":[[1,[2]],[],[[[3]]]]}`, []string{"a"}, nil, []string{"[1,2,3]"}},
		{"texts that look like JSON", `{"x":"{\"a\":1,[\\","a":"]}\\\""}`, []string{"a"}, nil, []string{`"]}\\\""`}},
		{"white space", " {\r\n\t\"a\" : [ 1 , 2 ] , \"b\":{ \"c\" :\"y\" } } ", []string{"a", "b.c"}, nil, []string{`[1,2] | "y"`}},
		{"a value in the place of an object", `{"b":5}`, []string{"b.c"}, nil, []string{""}},
		{"no object", `7`, []string{"a"}, nil, []string{""}},
		{"nothing", ``, []string{"a"}, nil, []string{""}},
		{"an empty object", `{}`, []string{"a", ""}, nil, []string{" | {}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, table(c.doc, c.paths, c.rows)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("many names", func(t *testing.T) {
		var doc, paths, want []string
		for i := range 50 {
			doc = append(doc, fmt.Sprintf(`"f%d":%d`, i, i))
			paths = append(paths, fmt.Sprint("f", 49-i))
			want = append(want, fmt.Sprint(49-i))
		}
		got := table("{"+strings.Join(doc, ",")+"}", paths, nil)
		if diff := cmp.Diff([]string{strings.Join(want, " | ")}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an error ends it", func(t *testing.T) {
		enough, calls := errors.New("enough"), 0
		err := extract.NewReader(extract.NewPlan(nil, []string{"n"})).Rows([]byte(`{"n":[{},{}]}`), func(*extract.Row) error {
			calls++
			return enough
		})
		if !errors.Is(err, enough) || calls != 1 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}

func TestSourcePath(t *testing.T) {
	tree, err := mapping.Parse([]byte(`{"properties":{"t":{"type":"text","fields":{"raw":{"type":"keyword"}}},"o":{"properties":{"k":{"type":"keyword"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"t": "t", "t.raw": "t", "o.k": "o.k", "o": "o", "none": "", "o.none": ""} {
		if got, held := extract.SourcePath(tree, path); held != (want != "") || held && got != want {
			t.Errorf("%s: got %q, %t", path, got, held)
		}
	}
}

func ExampleReader() {
	plan := extract.NewPlan([]string{"id", "files.name"}, []string{"files"})
	doc := []byte(`{"id":"A1","files":[{"name":"a.bam"},{"name":"b.bam"}]}`)
	_ = extract.NewReader(plan).Rows(doc, func(row *extract.Row) error {
		fmt.Printf("%s %s\n", row.Values[0][0].Of(row.Doc), row.Values[1][0].Of(row.Doc))
		return nil
	})
	// Output:
	// "A1" "a.bam"
	// "A1" "b.bam"
}

// FuzzRows: values are within the document, and the same as those of encoding/json for valid JSON.
func FuzzRows(f *testing.F) {
	for _, doc := range []string{
		`{"a":1,"b":{"c":"x"},"n":[{"k":1,"m":[{"v":2}]}]}`, `{"a":[[1],{"b":2}],"b":[{"c":[1,null]}]}`, `{"a":"\u00e9\"`, `{"a`, `{"a":}`, `[[[`,
		`{"b.c":1}`, `{"a":tru`, `{"n":[{"k":"\\"}`, `{"a":1}{`,
	} {
		f.Add([]byte(doc))
	}
	plans := []*extract.Plan{
		extract.NewPlan([]string{"a", "b.c", ""}, nil), extract.NewPlan([]string{"a", "n.k", "n.m.v", "n"}, []string{"n", "n.m"}),
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		for i, plan := range plans {
			_ = extract.NewReader(plan).Rows(doc, func(row *extract.Row) error {
				for _, values := range row.Values {
					for _, v := range values {
						if v.Start >= v.End || v.End > len(doc) {
							t.Fatalf("%v of %q", v, doc)
						}
						if json.Valid(doc) && !json.Valid(v.Of(doc)) {
							t.Fatalf("%q of %q", v.Of(doc), doc)
						}
					}
				}
				if i == 0 {
					compare(t, doc, row)
				}
				return nil
			})
		}
	})
}

// compare holds the values of "a" against what encoding/json decodes, where there is nothing that it sees otherwise.
func compare(t *testing.T, doc []byte, row *extract.Row) {
	t.Helper()
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil || strings.Count(string(doc), `"a`)+strings.Count(string(doc), `"A`)+strings.Count(string(doc), `\`) > 1 {
		return
	}
	var want string
	if json.Unmarshal(members["a"], &want) != nil || string(members["a"]) == "null" || strings.ToValidUTF8(string(doc), "") != string(doc) {
		return
	}
	if len(row.Values[0]) != 1 || string(jsontext.AppendText(nil, row.Values[0][0].Of(doc))) != want {
		t.Fatalf("got %v of %q, want %q", row.Values[0], doc, want)
	}
}
