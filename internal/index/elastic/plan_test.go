package elastic_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

func searchCases() []struct {
	name string
	reqs []index.SearchRequest
} {
	k, n, a := field("k", "keyword"), field("n", "long"), field("a.k", "keyword", "a")
	size := field("a.b.n", "long", "a", "a.b")
	filter, other := terms(k, "x"), terms(k, "y")
	hits := &index.HitsRequest{Size: 20, Sort: []index.Sort{{Field: k}}}
	full := index.Facet{
		Field: size, Elements: terms(a, "e"), Missing: true, Cardinality: 100_000, Stats: true, Histogram: 2.5,
		Ranges:  []index.NumberRange{{To: new(1.0)}, {From: new(1.0), To: new(1e21)}, {}, {From: new(2.0), To: new(1.0)}, {From: new(math.NaN())}},
		Buckets: &index.Buckets{Max: 10, Filters: []*query.Node{filter, nil}},
	}
	flat := full
	flat.Field, flat.Elements, flat.Histogram, flat.Cardinality = n, nil, 1e-7, 5
	buckets := func(f query.Field, most int) index.Facet {
		return index.Facet{Field: f, Buckets: &index.Buckets{Max: most}}
	}
	return []struct {
		name string
		reqs []index.SearchRequest
	}{
		{"total", []index.SearchRequest{{Total: true}}},
		{"hits", []index.SearchRequest{{Filter: filter, Hits: hits}}},
		{"hits and total", []index.SearchRequest{{Filter: filter, Total: true, Hits: &index.HitsRequest{From: 40, Size: 20, Sort: hits.Sort}}}},
		{"ids alone", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 10_000, Source: index.Source{None: true}}}}},
		{"a part of the source", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 1, Source: index.Source{Paths: []string{"k", "a.b"}}}}}},
		{"nothing of the source", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 1, Source: index.Source{Paths: []string{}}}}}},
		{"after", []index.SearchRequest{{Hits: &index.HitsRequest{
			From: 7, Size: 1, After: []json.RawMessage{[]byte("\"x\"\n"), []byte("9223372036854775807")},
			Sort: []index.Sort{{Field: k, Descending: true}, {Field: n, MissingFirst: true}},
		}}}},
		{"orders", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 1, Sort: []index.Sort{
			{Field: size, Mode: "avg", Descending: true},
			{Field: field("i", "integer")},
			{Field: field("t", "date_nanos")},
			{Field: field("d", "date"), Mode: "sum", Descending: true},
			{Field: field("d", "date"), Mode: "avg"},
			{Field: field("ip", "ip")},
			{Field: field("f", "scaled_float")},
			{Field: field("h", "half_float")},
			{Field: field("info", "flattened"), Mode: "max"},
			{Field: field("g", "geo_point"), Mode: "max"},
		}}}}},
		{"a facet of elements", []index.SearchRequest{{Filter: filter, Facets: []index.Facet{full}}}},
		{"a facet of documents", []index.SearchRequest{{Filter: filter, Facets: []index.Facet{flat}}}},
		{"facets of what has no values", []index.SearchRequest{{Facets: []index.Facet{
			{Field: field("g", "geo_point"), Buckets: &index.Buckets{Max: 1}, Stats: true, Histogram: 1, Cardinality: 1, Missing: true},
			{Field: k, Stats: true, Histogram: 1, Ranges: []index.NumberRange{{}}},
			{Field: field("x", "text"), Missing: true},
		}}}},
		{"bounds of half_float as it holds them", []index.SearchRequest{{Facets: []index.Facet{{
			Field: field("h", "half_float"), Ranges: []index.NumberRange{
				{From: new(0.1), To: new(65504.5)}, {From: new(-70000.0), To: new(-0.1)}, {From: new(70000.0)}, {From: new(-2049.0), To: new(2.0)},
			},
		}}}}},
		{"bounds of float as it holds them", []index.SearchRequest{{Facets: []index.Facet{{
			Field: field("f", "float"), Ranges: []index.NumberRange{{From: new(0.1), To: new(0.3)}, {From: new(-1e39), To: new(1e39)}},
		}}}}},
		{"most of all values", []index.SearchRequest{{Facets: []index.Facet{buckets(k, index.MaxBuckets), buckets(field("ip", "ip"), 2)}}}},
		{"documents beside facets", []index.SearchRequest{{Filter: filter, Total: true, Hits: hits, Facets: []index.Facet{buckets(k, 5)}}}},
		{"one search for each distinct filter", []index.SearchRequest{
			{Filter: filter, Facets: []index.Facet{buckets(k, 5)}},
			{Filter: other, Facets: []index.Facet{buckets(n, 5)}},
			{Filter: terms(k, "x"), Total: true, Facets: []index.Facet{buckets(n, 5), buckets(k, 5)}},
			{Filter: other, Total: true, Hits: hits},
			{Total: true},
		}},
	}
}

// TestSearches holds what the cluster is asked, and that it is asked the same each time.
func TestSearches(t *testing.T) {
	x, asked := asking(t)
	var all strings.Builder
	for _, tt := range searchCases() {
		for again := range 2 {
			if _, err := x.Search(t.Context(), "a", tt.reqs); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if again == 0 {
				fmt.Fprintf(&all, "# %s\n%s\n", tt.name, strings.TrimSuffix(asked(), "\n"))
			} else if !strings.Contains(all.String(), asked()) {
				t.Errorf("%s: the second time it asks %s", tt.name, asked())
			}
		}
		_, body, _ := strings.Cut(asked(), "\n")
		for line := range bytes.Lines([]byte(body)) {
			if !json.Valid(line) {
				t.Errorf("%s: asked %s", tt.name, line)
			}
		}
	}
	golden(t, "searches.golden", []byte(all.String()))
}

// TestNothingIsAskedForNothing: a search without hits, counts and facets sends no request.
func TestNothingIsAskedForNothing(t *testing.T) {
	x, _ := play(t)
	got, err := x.Search(t.Context(), "a", []index.SearchRequest{
		{},
		{Hits: &index.HitsRequest{From: 3}},
		{Facets: []index.Facet{{Field: field("g", "geo_point"), Stats: true, Ranges: []index.NumberRange{{}}}}},
	})
	if err != nil || len(got) != 3 || len(got[2].Facets) != 1 || len(got[2].Facets[0].Ranges) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestRefusedSearches: what the cluster cannot answer is told before it is asked.
func TestRefusedSearches(t *testing.T) {
	text := field("x", "text")
	const analyzed = "the field \"x\" is analyzed text, which supports neither facets nor sorting"
	hits := func(h index.HitsRequest) index.SearchRequest { return index.SearchRequest{Hits: &h} }
	facet := func(f index.Facet) index.SearchRequest { return index.SearchRequest{Facets: []index.Facet{f}} }
	by := func(f query.Field, mode string) index.SearchRequest {
		return hits(index.HitsRequest{Size: 1, Sort: []index.Sort{{Field: f, Mode: mode}}})
	}
	after := func(values ...string) index.SearchRequest {
		h := index.HitsRequest{Size: 1, Sort: []index.Sort{{Field: field("k", "keyword")}}, After: []json.RawMessage{}}
		for _, value := range values {
			h.After = append(h.After, json.RawMessage(value))
		}
		return hits(h)
	}
	const elsewhere = "the cursor is not one that was returned with a document"
	k := field("k", "keyword")
	tests := []struct {
		name    string
		req     index.SearchRequest
		message string
	}{
		{"too far", hits(index.HitsRequest{From: 9_999, Size: 2}), "the requested documents must be among the first 10000"},
		{"a negative place", hits(index.HitsRequest{From: -1, Size: 2}), "the requested documents must be among the first 10000"},
		{"a sum that overflows", hits(index.HitsRequest{From: math.MaxInt, Size: 2}), "the requested documents must be among the first 10000"},
		{"sorting by a text", by(text, ""), analyzed},
		{"buckets of a text", facet(index.Facet{Field: text, Buckets: &index.Buckets{Max: 1}}), analyzed},
		{"cardinality of a text", facet(index.Facet{Field: text, Cardinality: 1}), analyzed},
		{"the sum of keywords", by(k, "sum"), "the field \"k\" has text values, which sort only by min or max"},
		{"an unknown mode", by(k, "first"), "the sort mode of the field \"k\" must be min, max, sum, avg or median"},
		{"the median of elements", by(field("a.n", "long", "a"), "median"), "the field \"a.n\" is nested, and nested fields do not sort by median"},
		{"after too little", after(), "the cursor must have one value for each sort key"},
		{"after an object", after(`{"a":1}`), elsewhere},
		{"after what is no JSON", after(`1],"x":[1`), elsewhere},
		{"after nothing", after(``), elsewhere},
		{"no bucket", facet(index.Facet{Field: k, Buckets: &index.Buckets{}}), "the number of buckets of the field \"k\" must be between 1 and 300000"},
		{"too many buckets", facet(index.Facet{Field: k, Buckets: &index.Buckets{Max: 300_001}}), "the number of buckets of the field \"k\" must be between 1 and 300000"},
		{"too many top hits", facet(index.Facet{Field: k, Buckets: &index.Buckets{Max: 1, TopHits: 101}}), "the number of top hits per bucket of the field \"k\" must be between 0 and 100"},
		{"an interval of nothing", facet(index.Facet{Field: k, Histogram: -1}), "the histogram interval of the field \"k\" must be at least 1e-100 and finite"},
		{"a tiny interval", facet(index.Facet{Field: k, Histogram: 1e-300}), "the histogram interval of the field \"k\" must be at least 1e-100 and finite"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, _ := play(t)
			_, err := x.Search(t.Context(), "a", []index.SearchRequest{tt.req})
			wantError(t, err, core.CodeInvalid, tt.message)
		})
	}
	x, _ := play(t)
	err := x.Stream(t.Context(), "a", index.StreamRequest{Sort: []index.Sort{{Field: text}}}, func([]index.Hit) error { return nil })
	wantError(t, err, core.CodeInvalid, analyzed)
	_, err = x.Search(t.Context(), "", nil)
	wantError(t, err, core.CodeInvalid, "the index name is empty")
}

// TestPartsOfSources: a part is asked for where documents are large, and where there are many of an unknown size.
func TestPartsOfSources(t *testing.T) {
	hits := func(bytes, count int) answer {
		hit := fmt.Sprintf(`{"_id":"1","_source":{"k":%q}}`, strings.Repeat("x", bytes))
		return answer{200, fmt.Sprintf(`{"timed_out":false,"_shards":{"failed":0},"hits":{"hits":[%s]}}`, strings.TrimSuffix(strings.Repeat(hit+",", count), ","))}
	}
	t.Run("whole members alone", func(t *testing.T) {
		x, s := play(t, hits(20_000, 1), hits(10, 1))
		for _, source := range []index.Source{{}, {Paths: []string{"files.name", "k", "files.parts.n", "a.b"}}} {
			if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 1, Source: source}}}); err != nil {
				t.Fatal(err)
			}
		}
		if want := `"_source":{"includes":["files","k","a"]}`; !strings.Contains(s.asked[1], want) {
			t.Errorf("asked %s", s.asked[1])
		}
	})
	for _, c := range []struct {
		name    string
		answers []answer
		sizes   []int
		want    []bool
	}{
		{"small ones", []answer{hits(100, 2), hits(100, 2)}, []int{10, 10_000}, []bool{false, false}},
		{"large ones", []answer{hits(20_000, 2), hits(10, 1), hits(10, 1)}, []int{10, 10, 1}, []bool{false, true, true}},
		{
			"many that are large together",
			[]answer{hits(10_000, 1), {200, point}, hits(10, 1), {200, `{}`}, hits(10, 1)},
			[]int{1, 10_000, 1_000},
			[]bool{false, false, true, false, false},
		},
		{"many of an unknown size, some of which are looked at", []answer{hits(10, 2), hits(10, 1), hits(10, 1)}, []int{201, 10_000}, []bool{false, false, false}},
		{"many of an unknown size that are large", []answer{hits(20_000, 2), hits(10, 1), hits(10, 1)}, []int{201, 200}, []bool{false, true, true}},
		{"many of which there are none", []answer{hits(10, 0), hits(10, 0), hits(10, 0), hits(10, 0), hits(10, 0), hits(10, 1), hits(10, 1)}, []int{201, 201, 200, 10_000}, []bool{false, true, false, true, false, false, false}},
		{"ones that become small", []answer{hits(20_000, 1), hits(10, 1), hits(10, 1), hits(10, 1)}, []int{1, 0, 0, 1}, []bool{false, false, false, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, s := play(t, c.answers...)
			for _, size := range c.sizes {
				source := index.Source{Paths: []string{"k"}}
				if size == 0 {
					source, size = index.Source{}, 1 // the whole is wanted
				}
				if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: size, Source: source}}}); err != nil {
					t.Fatal(err)
				}
			}
			got := make([]bool, len(s.asked))
			for i, asked := range s.asked {
				got[i] = strings.Contains(asked, `"_source"`)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("searches ask for a part: %v", got)
			}
		})
	}
}
