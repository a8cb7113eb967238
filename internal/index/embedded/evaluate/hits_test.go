package evaluate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
)

func sortDocuments(t *testing.T) []document {
	return documentsOf(
		t,
		`{"color":"b","tags":["x","a"],"sizes":[1,2,6],"weights":[0.1,0.2],"day":"2024-01-01","ok":true,"files":[{"bytes":[7,1],"kind":"z"},{"bytes":4}]}`,
		`{"color":"B","tags":["m"],"sizes":[4,1],"weights":[0.1],"instant":"1970-01-01T00:00:00.000000007Z","ok":false,"files":[{"bytes":3,"kind":"a"}]}`,
		`{"color":"b","tags":[],"sizes":[-1,-2],"weights":7,"huge":18446744073709551615,"files":[]}`,
		`{"sizes":[3,3],"day":"2023-12-31","huge":1,"ok":[true,false]}`,
	)
}

func TestOrder(t *testing.T) {
	by := func(path string) index.Sort { return index.Sort{Field: field(path)} }
	down := func(path string) index.Sort { return index.Sort{Field: field(path), Descending: true} }
	mode := func(path, mode string) index.Sort { return index.Sort{Field: field(path), Mode: mode} }
	first := func(s index.Sort) index.Sort {
		s.MissingFirst = true
		return s
	}
	tests := map[string]struct {
		sorts []index.Sort
		want  string
		// sort is Hit.Sort of all hits.
		sort string
	}{
		"none is by number":        {nil, "abcd", `[][][][]`},
		"texts by bytes":           {[]index.Sort{by("color")}, "bacd", `["B"]["b"]["b"][null]`},
		"texts downwards":          {[]index.Sort{down("color")}, "acbd", `["b"]["b"]["B"][null]`},
		"the missing first":        {[]index.Sort{first(down("color"))}, "dacb", `[null]["b"]["b"]["B"]`},
		"the lowest of several":    {[]index.Sort{by("tags")}, "abcd", `["a"]["m"][null][null]`},
		"the highest of several":   {[]index.Sort{down("tags")}, "abcd", `["x"]["m"][null][null]`},
		"the highest, upwards":     {[]index.Sort{mode("tags", "max")}, "bacd", `["m"]["x"][null][null]`},
		"numbers by value":         {[]index.Sort{by("sizes")}, "cabd", `[-2][1][1][3]`},
		"sums":                     {[]index.Sort{mode("sizes", "sum")}, "cbda", `[-3][5][6][9]`},
		"averages round a half up": {[]index.Sort{mode("sizes", "avg")}, "cabd", `[-1][3][3][3]`},
		"medians round a half up":  {[]index.Sort{mode("sizes", "median")}, "cabd", `[-1][2][3][3]`},
		"fractions do not":         {[]index.Sort{mode("weights", "avg")}, "bacd", `[0.10000000149011612][0.15000000596046448][7][null]`},
		"dates in milliseconds":    {[]index.Sort{by("day")}, "dabc", `[1703980800000][1704067200000][null][null]`},
		"nanoseconds":              {[]index.Sort{by("instant")}, "bacd", `[7][null][null][null]`},
		"booleans":                 {[]index.Sort{by("ok")}, "bdac", `[0][0][1][null]`},
		"a sum of booleans":        {[]index.Sort{mode("ok", "sum")}, "badc", `[0][1][1][null]`},
		"the highest integers":     {[]index.Sort{down("huge")}, "cdab", `[18446744073709551615][1][null][null]`},
		"values of elements":       {[]index.Sort{by("files.bytes")}, "abcd", `[1][3][null][null]`},
		"sums over elements":       {[]index.Sort{mode("files.bytes", "sum")}, "bacd", `[3][12][null][null]`},
		"by a second key":          {[]index.Sort{down("color"), by("sizes")}, "cabd", `["b",-2]["b",1]["B",1][null,3]`},
		"by id":                    {[]index.Sort{down("_id")}, "dcba", `["d"]["c"]["b"]["a"]`},
		"a field without values":   {[]index.Sort{first(by("nowhere")), down("_id")}, "dcba", `[null,"d"][null,"c"][null,"b"][null,"a"]`},
		"by an id in between":      {[]index.Sort{by("color"), down("_id"), by("size")}, "bcad", `["B","b",null]["b","c",null]["b","a",null][null,"d",null]`},
	}
	docs := sortDocuments(t)
	layouts := map[string][]evaluate.Part{"whole": parts(t, docs), "spread": parts(t, docs, 1, 2)}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for layout, of := range layouts {
				for size := 1; size <= 5; size++ {
					got := answer(t, of, index.SearchRequest{Hits: &index.HitsRequest{Size: size, Sort: test.sorts}})
					if want := test.want[:min(size, 4)]; ids(got.Hits) != want {
						t.Errorf("%s: the first %d are %q, want %q", layout, size, ids(got.Hits), want)
					}
					if text := sortsOf(t, got.Hits); size > 4 && text != test.sort {
						t.Errorf("%s: %s, want %s", layout, text, test.sort)
					}
				}
			}
		})
	}
}

func sortsOf(t *testing.T, hits []index.Hit) string {
	t.Helper()
	var b bytes.Buffer
	for _, h := range hits {
		text, err := json.Marshal(h.Sort)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// TestPages reads random orders page by page, by sort values and by number.
func TestPages(t *testing.T) {
	w := world{rand.New(rand.NewPCG(3, 5))}
	docs := w.documents(150)
	for name, of := range map[string][]evaluate.Part{"whole": parts(t, docs), "spread": parts(t, docs, 20, 21, 90)} {
		for i := range 40 {
			sorts := append(w.sorts(), index.Sort{Field: field("_id"), Descending: w.IntN(2) == 0})
			t.Run(fmt.Sprintf("%s %d", name, i), func(t *testing.T) {
				all := answer(t, of, index.SearchRequest{Total: true, Hits: &index.HitsRequest{Size: 1000, Sort: sorts}})
				if len(all.Hits) != int(all.Total) {
					t.Fatalf("%d of %d", len(all.Hits), all.Total)
				}
				var after []json.RawMessage
				for from := 0; from < len(all.Hits); from += 13 {
					want := ids(all.Hits[from:min(from+13, len(all.Hits))])
					page := answer(t, of, index.SearchRequest{Hits: &index.HitsRequest{From: 5, Size: 13, Sort: sorts, After: after}})
					if after == nil {
						page = answer(t, of, index.SearchRequest{Hits: &index.HitsRequest{Size: 13, Sort: sorts}})
					}
					if ids(page.Hits) != want {
						t.Fatalf("after %s: %q, want %q\n%+v", after, ids(page.Hits), want, sorts)
					}
					if got := ids(answer(t, of, index.SearchRequest{Hits: &index.HitsRequest{From: from, Size: 13, Sort: sorts}}).Hits); got != want {
						t.Fatalf("from %d: %q, want %q", from, got, want)
					}
					after = slices.Clone(page.Hits[len(page.Hits)-1].Sort)
				}
			})
		}
	}
}

// TestAfter continues after sort values that no document has.
func TestAfter(t *testing.T) {
	tests := map[string]struct {
		sort  index.Sort
		after string
		want  string
	}{
		"between texts":              {index.Sort{Field: field("color")}, `"a"`, "acd"},
		"behind all texts":           {index.Sort{Field: field("color")}, `"c"`, "d"},
		"between texts downwards":    {index.Sort{Field: field("color"), Descending: true}, `"C"`, "bd"},
		"the missing":                {index.Sort{Field: field("color")}, `null`, ""},
		"the missing first":          {index.Sort{Field: field("color"), MissingFirst: true}, `null`, "bac"},
		"between integers":           {index.Sort{Field: field("sizes")}, `0.5`, "abd"},
		"between integers downwards": {index.Sort{Field: field("sizes"), Descending: true}, `3.5`, "dc"},
		"above all integers":         {index.Sort{Field: field("sizes")}, `1e30`, ""},
		"below all integers":         {index.Sort{Field: field("sizes")}, `-1e30`, "cabd"},
		"equal is left out":          {index.Sort{Field: field("sizes")}, `1`, "d"},
		"true":                       {index.Sort{Field: field("ok")}, `true`, "c"},
		"false":                      {index.Sort{Field: field("ok")}, `false`, "ac"},
		"0":                          {index.Sort{Field: field("ok")}, `0`, "ac"},
		"a day":                      {index.Sort{Field: field("day")}, `1703980800001`, "abc"},
		"a sum":                      {index.Sort{Field: field("sizes"), Mode: "sum"}, `5`, "da"},
		"no value at all":            {index.Sort{Field: field("nowhere")}, `"x"`, "abcd"},
	}
	docs := sortDocuments(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, of := range [][]evaluate.Part{parts(t, docs), parts(t, docs, 1, 3)} {
				got := answer(t, of, index.SearchRequest{Hits: &index.HitsRequest{
					Size: 10, Sort: []index.Sort{test.sort}, After: []json.RawMessage{json.RawMessage(test.after)},
				}})
				if ids(got.Hits) != test.want {
					t.Errorf("%q, want %q", ids(got.Hits), test.want)
				}
			}
		})
	}
}

func TestHitsRefused(t *testing.T) {
	after := func(path, value string) index.HitsRequest {
		return index.HitsRequest{Size: 1, Sort: []index.Sort{{Field: field(path)}}, After: []json.RawMessage{json.RawMessage(value)}}
	}
	sorted := func(s index.Sort) index.HitsRequest { return index.HitsRequest{Size: 1, Sort: []index.Sort{s}} }
	tests := map[string]struct {
		hits index.HitsRequest
		want string
	}{
		"analyzed text":  {sorted(index.Sort{Field: field("words")}), "the field \"words\" is analyzed text, which supports neither facets nor sorting"},
		"a sum of texts": {sorted(index.Sort{Field: field("color"), Mode: "sum"}), "the field \"color\" has text values, which sort only by min or max"},
		"an unknown mode": {
			sorted(index.Sort{Field: field("size"), Mode: "most"}), "the sort mode of the field \"size\" must be min, max, sum, avg or median",
		},
		"behind the window": {
			index.HitsRequest{From: 9_999, Size: 2},
			"from and size must not be negative, and their sum must not exceed 10000; to read further, continue after the sort values of the last document",
		},
		"too few values": {
			index.HitsRequest{Size: 1, Sort: []index.Sort{{Field: field("size")}, {Field: field("_id")}}, After: []json.RawMessage{[]byte(`1`)}},
			"the number of sort values to continue after is 1, but the order has 2 keys",
		},
		"a number for a text":     {after("color", `1`), `sort value 1 to continue after is not a value of the field "color"`},
		"a text for a number":     {after("size", `"1"`), `sort value 1 to continue after is not a value of the field "size"`},
		"an object":               {after("size", `{}`), `sort value 1 to continue after is not a value of the field "size"`},
		"no JSON":                 {after("size", `1 2`), `sort value 1 to continue after is not a value of the field "size"`},
		"a boolean for a number":  {after("size", `true`), `sort value 1 to continue after is not a value of the field "size"`},
		"a fraction for a date":   {after("day", `1.5`), `sort value 1 to continue after is not a value of the field "day"`},
		"another number than 0/1": {after("ok", `2`), `sort value 1 to continue after is not a value of the field "ok"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := evaluate.Search(t.Context(), parts(t, sortDocuments(t)), []index.SearchRequest{{Hits: &test.hits}})
			invalid(t, err, test.want)
		})
	}
}
