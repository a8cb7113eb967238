//go:build services

package elastic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/mapping"
)

const searchMapping = `{"properties":{"id":{"type":"keyword"},"k":{"type":"keyword"},"n":{"type":"long"},"ip":{"type":"ip"},` +
	`"t":{"type":"date"},"tn":{"type":"date_nanos"},"a":{"type":"nested","properties":{"k":{"type":"keyword"},"n":{"type":"long"},` +
	`"b":{"type":"nested","properties":{"n":{"type":"long"}}}}}}}`

// searched returns an engine with documents that hold their id in the field id.
func searched(t *testing.T, documents ...string) (*elastic.Index, string) {
	t.Helper()
	x, alias := cluster(t), fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Mapping: []byte(searchMapping)})
	for part := range slices.Chunk(documents, 10_000) {
		writes := make([]core.Write, len(part))
		for i, document := range part {
			var held struct{ ID string }
			if err := json.Unmarshal([]byte(document), &held); err != nil {
				t.Fatal(err)
			}
			writes[i] = put(held.ID, 1, document)
		}
		for _, result := range write(t, x, alias, writes...) {
			if result.Outcome != core.OutcomeIndexed {
				t.Fatalf("got %+v", result)
			}
		}
	}
	if err := x.Refresh(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	return x, alias
}

func subsearch(t *testing.T, x *elastic.Index, alias string, reqs ...index.SearchRequest) []index.SearchResult {
	t.Helper()
	got, err := x.Search(t.Context(), alias, reqs)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestGoldenQueries: the cluster understands all that the golden files hold.
func TestGoldenQueries(t *testing.T) {
	x, alias := cluster(t), fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Mapping: []byte(`{"properties":{"k":{"type":"keyword"},"n":{"type":"long"},"i":{"type":"integer"},` +
		`"f":{"type":"double"},"t":{"type":"date"},"x":{"type":"text"},"g":{"type":"geo_point"},"info":{"type":"flattened"},` +
		`"a":{"type":"nested","properties":{"k":{"type":"keyword"},"b":{"type":"nested","properties":{"k":{"type":"keyword"},"n":{"type":"long"}}}}}}}`)})
	for _, tt := range filterCases() {
		if tt.filter != nil && tt.filter.Field.Type == "date_nanos" || strings.HasPrefix(tt.name, "instants") {
			continue // the field t is of another type here
		}
		if _, err := x.Search(t.Context(), alias, []index.SearchRequest{{Filter: tt.filter, Total: true}}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for _, tt := range searchCases() {
		if tt.name == "orders" { // of types that the mapping does not have
			continue
		}
		if _, err := x.Search(t.Context(), alias, tt.reqs); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for _, levels := range []int{16, 17, 18, 19, 20, 21, 26, 27, 28, 29, 30, 31, 60, 100} {
		for _, leaf := range []*query.Node{
			some("a", join(query.Not, some("a.b", terms(field("a.b.k", "keyword"), "x")))),
			patterns(field("k", "keyword"), true, "a*", "b*"), exists(field("k", "keyword")),
		} {
			f := index.Facet{Field: field("a.k", "keyword", "a"), Elements: deep(levels, terms(field("a.k", "keyword"), "x")), Buckets: &index.Buckets{Max: 1}}
			if _, err := x.Search(t.Context(), alias, []index.SearchRequest{{Filter: deep(levels, leaf), Total: true, Facets: []index.Facet{f}}}); err != nil {
				t.Errorf("%d levels: %v", levels, err)
			}
		}
	}
}

// TestPatternsOfAddresses counts them, and matches them with the values that there are.
func TestPatternsOfAddresses(t *testing.T) {
	x, alias := searched(t, `{"id":"1","ip":["10.0.0.1","2001:db8::1"]}`, `{"id":"2","ip":"9.0.0.1"}`, `{"id":"3","ip":"::ffff:10.0.0.2"}`, `{"id":"4"}`)
	ip := field("ip", "ip")
	got := subsearch(t, x, alias,
		index.SearchRequest{Filter: patterns(ip, true, "10.*", "*DB8*"), Total: true},
		index.SearchRequest{Filter: patterns(ip, false, "*DB8*"), Total: true},
		index.SearchRequest{Filter: join(query.Not, patterns(ip, true, "10.0.0.?")), Total: true, Facets: []index.Facet{{Field: ip, Buckets: &index.Buckets{Max: 1}}}},
	)
	want := []index.SearchResult{{Total: 2}, {}, {Total: 2, Facets: []index.FacetResult{{Buckets: []index.Bucket{{Key: "9.0.0.1", Count: 1}}}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestManyValues: the cluster returns at most 65,536 buckets per search, and a facet has more values.
func TestManyValues(t *testing.T) {
	const size = 70_000
	documents := make([]string, size)
	for i := range documents {
		documents[i] = fmt.Sprintf(`{"id":"%06d","k":"v%06d","n":%d,"a":[{"k":"e%06d","n":1},{"k":"e%06d","n":2},{"k":"same","n":3}]}`, i, i, i, i/2, i/2)
	}
	x, alias := searched(t, documents...)
	k, n, e := field("k", "keyword"), field("n", "long"), field("a.k", "keyword", "a")
	none := []*query.Node{terms(k, "v000000")}
	got := subsearch(t, x, alias, index.SearchRequest{Total: true, Facets: []index.Facet{
		{Field: k, Buckets: &index.Buckets{Max: index.MaxBuckets}},
		{Field: e, Missing: true, Buckets: &index.Buckets{Max: 40_000}},
		{Field: n, Stats: true, Buckets: &index.Buckets{Max: 2}, Histogram: 1000},
		{Field: e, Buckets: &index.Buckets{Max: 3, TopHits: 1, TopSource: index.Source{None: true}, Filters: none}},
	}})[0]
	all, elements, numbers := got.Facets[0].Buckets, got.Facets[1].Buckets, got.Facets[2]
	if got.Total != size || len(all) != size || all[0].Key != "v000000" || all[size-1].Key != "v069999" || all[size-1].Count != 1 {
		t.Errorf("%d documents, %d values", got.Total, len(all))
	}
	if len(elements) != size/2+1 || elements[0].Key != "same" || elements[0].Count != size {
		t.Errorf("%d values of elements, of which the first is %+v", len(elements), elements[0])
	}
	hit := []index.Hit{{ID: "000000"}}
	first := []index.Bucket{
		{Key: "same", Count: size, Filters: []int64{1}, TopHits: hit},
		{Key: "e000000", Count: 2, Filters: []int64{1}, TopHits: hit},
		{Key: "e000001", Count: 2, Filters: []int64{0}, TopHits: []index.Hit{{ID: "000002"}}},
	}
	if diff := cmp.Diff(first, got.Facets[3].Buckets); diff != "" {
		t.Error(diff)
	}
	if len(numbers.Histogram) != 70 || numbers.Histogram[69] != (index.Interval{Key: 69_000, Count: 1000}) || numbers.Stats.Count != size {
		t.Errorf("got %+v", numbers)
	}
	// Among equals the first by key, cut at the same place by pages as by one answer.
	if diff := cmp.Diff([]index.Bucket{{Key: "0", Count: 1}, {Key: "1", Count: 1}}, numbers.Buckets); diff != "" {
		t.Error(diff)
	}

	_, err := x.Search(t.Context(), alias, []index.SearchRequest{{Facets: []index.Facet{{Field: n, Histogram: 1}}}})
	wantError(t, err, core.CodeInvalid, "a histogram of the field \"n\" with an interval of 1 would have more than 10000 intervals")

	seen := 0
	err = x.Stream(t.Context(), alias, index.StreamRequest{Sort: []index.Sort{{Field: field("_id", "keyword"), Descending: true}}}, func(hits []index.Hit) error {
		for _, hit := range hits {
			if want := fmt.Sprintf("%06d", size-1-seen); hit.ID != want || string(hit.Sort[0]) != `"`+want+`"` {
				t.Fatalf("got %s at %d", hit.ID, seen)
			}
			seen++
		}
		return nil
	})
	if seen != size || err != nil {
		t.Errorf("%d documents, %v", seen, err)
	}
}

// TestStreamIsOfOneMoment: what is written and removed meanwhile does not show, and nothing is left open.
func TestStreamIsOfOneMoment(t *testing.T) {
	documents := make([]string, 350)
	for i := range documents {
		documents[i] = fmt.Sprintf(`{"id":"%03d","k":"before"}`, i)
	}
	x, alias := searched(t, documents...)
	for _, sorts := range [][]index.Sort{nil, {{Field: field("k", "keyword")}}} {
		seen := map[string]bool{}
		err := x.Stream(t.Context(), alias, index.StreamRequest{Sort: sorts}, func(hits []index.Hit) error {
			if len(seen) == 0 {
				version := core.Version(len(sorts) + 2)
				write(t, x, alias, put("349", version, `{"id":"349","k":"after"}`), put("new", version, `{"id":"new"}`))
				if err := x.Refresh(t.Context(), alias); err != nil {
					return err
				}
			}
			for _, hit := range hits {
				seen[hit.ID] = true
				if sorts == nil && !strings.Contains(string(hit.Source), "before") {
					t.Errorf("got %s: %s", hit.ID, hit.Source)
				}
			}
			return nil
		})
		want := 350 + len(sorts) // the new one was there when the second began
		if err != nil || len(seen) != want {
			t.Errorf("%d documents, want %d, %v", len(seen), want, err)
		}
	}
	if open := admin(t, http.MethodGet, "/"+alias+"/_stats/search?filter_path=_all.primaries.search.open_contexts", ""); !strings.Contains(open, `"open_contexts":0`) {
		t.Errorf("left open: %s", open)
	}
}

// TestCountsAreKept: the same question is answered from the cluster's cache.
func TestCountsAreKept(t *testing.T) {
	x, alias := searched(t, `{"id":"1","k":"x","t":"2024-03-05"}`)
	facets := []index.Facet{{Field: field("k", "keyword"), Buckets: &index.Buckets{Max: 10}}}
	filter := within(field("t", "date"), instant("2024-01-01T00:00:00Z", true), query.Bound{})
	for range 3 {
		subsearch(t, x, alias, index.SearchRequest{Filter: filter, Facets: facets})
		subsearch(t, x, alias, index.SearchRequest{Filter: filter, Facets: facets, Total: true, Hits: &index.HitsRequest{Size: 1}})
	}
	stats := admin(t, http.MethodGet, "/"+alias+"/_stats/request_cache?filter_path=_all.total.request_cache", "")
	if !strings.Contains(stats, `"hit_count":5,"miss_count":1`) {
		t.Errorf("six equal questions: %s", stats)
	}
}

// TestNoDocuments: the error says why an alias returns no documents.
func TestNoDocuments(t *testing.T) {
	x, alias := searched(t, `{"id":"1"}`)
	one := []index.SearchRequest{{Total: true}}
	two := []index.SearchRequest{{Total: true, Hits: &index.HitsRequest{Size: 1}, Facets: []index.Facet{{Field: field("k", "keyword"), Missing: true}}}}
	nobody := func([]index.Hit) error { return nil }
	admin(t, http.MethodPost, "/"+alias+"/_close", "")
	for _, reqs := range [][]index.SearchRequest{one, two} {
		_, err := x.Search(t.Context(), alias, reqs)
		wantError(t, err, core.CodeIndexBlocked, "the index is closed")
		_, err = x.Search(t.Context(), "test-"+uuid.NewString(), reqs)
		wantError(t, err, core.CodeIndexBlocked, "the index is missing")
	}
	wantError(t, x.Stream(t.Context(), alias, index.StreamRequest{}, nobody), core.CodeIndexBlocked, "the index is closed")
	wantError(t, x.Stream(t.Context(), "test-"+uuid.NewString(), index.StreamRequest{}, nobody), core.CodeIndexBlocked, "the index is missing")
	admin(t, http.MethodPost, "/"+alias+"/_open", "")

	many := make([]sqon.Pattern, 20_000)
	for i := range many {
		many[i] = sqon.Pattern(fmt.Sprintf("x%d*", i))
	}
	_, err := x.Search(t.Context(), alias, []index.SearchRequest{{Filter: patterns(field("k", "keyword"), true, many...), Total: true}})
	wantError(t, err, core.CodeInvalid, "the filter has more clauses than the index allows")
	_, err = x.Search(t.Context(), alias, []index.SearchRequest{{Hits: &index.HitsRequest{
		Size: 1, Sort: []index.Sort{{Field: field("n", "long")}}, After: []json.RawMessage{[]byte(`"zz"`)},
	}}})
	wantError(t, err, core.CodeInvalid, "the cursor does not match the sort order")
}

// TestWildcardsAreFound: a document is found by the value of a wildcard field, or the mapping says that it is not ("index": false), which
// clients refuse by name. The type is a module of OpenSearch; Elasticsearch's own is in none of its packages.
func TestWildcardsAreFound(t *testing.T) {
	if engineOf(t).Product != flavour.OpenSearch {
		return
	}
	x, alias := cluster(t), fresh(t)
	const wildcard, stored = `{"type":"wildcard","doc_values":false}`, `{"type":"wildcard","doc_values":true}` // the default depends on the version
	ensure(t, x, index.Spec{Alias: alias, Mapping: []byte(strings.NewReplacer("WILDCARD", wildcard, "STORED", stored).Replace(
		`{"properties":{"k":{"type":"keyword","copy_to":["c","d"],"fields":{"w":WILDCARD}},"c":WILDCARD,"d":STORED,"o":{"properties":{"w":WILDCARD}},` +
			`"n":{"type":"nested","properties":{"w":STORED,"o":{"properties":{"w":WILDCARD}}}}}}`))})
	write(t, x, alias, put("1", 1, `{"k":"vx","o":[{"w":"vx"},{"w":"b"}],"n":[{"w":"vx"},{"o":{"w":["vx","b"]}}]}`))
	if err := x.Refresh(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	raw, err := x.Mapping(t.Context(), alias)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	for path, nested := range map[string][]string{"k.w": nil, "c": nil, "d": nil, "o.w": nil, "n.w": {"n"}, "n.o.w": {"n"}} {
		f := field(path, "wildcard")
		f.Nested = nested
		for name, filter := range map[string]*query.Node{
			"value":   {Op: query.Terms, Field: f, Terms: []string{"vx"}},
			"pattern": {Op: query.Patterns, Field: f, Patterns: []sqon.Pattern{"*X"}, Fold: true},
		} {
			for _, nest := range nested {
				filter = &query.Node{Op: query.Some, Path: nest, Children: []*query.Node{filter}}
			}
			found := subsearch(t, x, alias, index.SearchRequest{Filter: filter, Total: true})[0].Total == 1
			refused := string(tree.Lookup(path).Params["index"]) == "false"
			if found == refused {
				t.Errorf("%s of %s: found %t, refused %t", name, path, found, refused)
			}
		}
	}
}
