package evaluate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
)

func faceted(t *testing.T) []document {
	return documentsOf(
		t,
		`{"color":"red","sizes":[9,9,10],"score":0.5,"ok":true,"day":"2024-01-01","files":[{"kind":"bam","bytes":5},{"kind":"bam","bytes":5},{"kind":"vcf","bytes":40}]}`,
		`{"color":"red","sizes":[10],"score":2,"ok":false,"day":"2024-01-02","instant":"2024-01-01T00:00:00.001000001Z","files":[{"kind":"vcf","bytes":[1,1,2]}]}`,
		`{"color":"blue","sizes":[-3],"score":-1.5,"instant":["2024-01-01T00:00:00.001999999Z","1969-12-31T23:59:59.999999999Z"],"files":{"kind":"cram"}}`,
		`{"color":"green","ok":true,"files":[]}`,
		`{"sizes":null}`,
	)
}

// shown prints buckets as "key=count", their top hits and filters.
func shown(buckets []index.Bucket) string {
	var all []string
	for _, b := range buckets {
		text := fmt.Sprintf("%s=%d", b.Key, b.Count)
		if len(b.TopHits) > 0 {
			text += ":" + ids(b.TopHits)
		}
		if len(b.Filters) > 0 {
			text += fmt.Sprint(b.Filters)
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestBuckets(t *testing.T) {
	tests := map[string]struct {
		path     string
		elements *query.Node
		filter   *query.Node
		buckets  index.Buckets
		want     string
	}{
		"by count, then by key":           {path: "color", want: "red=2 blue=1 green=1"},
		"the most":                        {path: "color", buckets: index.Buckets{Max: 2}, want: "red=2 blue=1"},
		"a value that stands twice":       {path: "sizes", want: "10=2 -3=1 9=1"},
		"fractions by value":              {path: "score", want: "-1.5=1 0.5=1 2=1"},
		"booleans":                        {path: "ok", want: "true=2 false=1"},
		"dates in milliseconds":           {path: "day", want: "1704067200000=1 1704153600000=1"},
		"nanoseconds in milliseconds":     {path: "instant", buckets: index.Buckets{Max: 9, TopHits: 2}, want: "1704067200001=2:bc -1=1:c"},
		"documents, not elements":         {path: "files.kind", want: "vcf=2 bam=1 cram=1"},
		"numbers of elements by value":    {path: "files.bytes", want: "1=1 2=1 5=1 40=1"},
		"a field without values":          {path: "nowhere", want: ""},
		"filtered":                        {path: "files.kind", filter: terms("color", "blue", "red"), want: "vcf=2 bam=1 cram=1"},
		"filtered to some":                {path: "files.kind", filter: terms("ok", "false"), want: "vcf=1"},
		"filtered to none":                {path: "files.kind", filter: terms("color", "x"), want: ""},
		"narrowed to elements":            {path: "files.kind", elements: between("files.bytes", query.Bound{}, from("5")), want: "bam=1 vcf=1"},
		"narrowed to no element":          {path: "files.kind", elements: terms("files.bytes", "77"), want: ""},
		"top hits by id":                  {path: "color", buckets: index.Buckets{Max: 10, TopHits: 1}, want: "red=2:a blue=1:c green=1:d"},
		"top hits of elements, once each": {path: "files.kind", buckets: index.Buckets{Max: 2, TopHits: 5}, want: "vcf=2:ab bam=1:a"},
		"top hits of what was narrowed": {
			path: "files.kind", elements: terms("files.bytes", "1", "5"),
			buckets: index.Buckets{Max: 9, TopHits: 2}, want: "bam=1:a vcf=1:b",
		},
		"filters of each bucket": {
			path: "files.kind", want: "vcf=2[1 2 1] bam=1[1 1 1] cram=1[0 0 1]",
			buckets: index.Buckets{Max: 9, Filters: []*query.Node{terms("ok", "true"), terms("color", "red"), terms("_id", "a", "c")}},
		},
	}
	docs := faceted(t)
	layouts := map[string][]evaluate.Part{"whole": parts(t, docs), "spread": parts(t, docs, 1, 2, 4)}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.buckets.Max == 0 {
				test.buckets.Max = 10
			}
			for layout, of := range layouts {
				got := answer(t, of, index.SearchRequest{Filter: test.filter, Facets: []index.Facet{{
					Field: field(test.path), Elements: test.elements, Buckets: &test.buckets,
				}}})
				if text := shown(got.Facets[0].Buckets); text != test.want {
					t.Errorf("%s: %q, want %q", layout, text, test.want)
				}
			}
		})
	}
}

func TestFacets(t *testing.T) {
	two, zero := 2.0, 0.0
	tests := map[string]struct {
		facet index.Facet
		want  index.FacetResult
	}{
		"missing":             {index.Facet{Field: field("color"), Missing: true}, index.FacetResult{Missing: 1}},
		"missing in elements": {index.Facet{Field: field("files.bytes"), Missing: true}, index.FacetResult{Missing: 3}},
		"elements do not narrow the missing": {
			index.Facet{Field: field("files.kind"), Missing: true, Elements: terms("files.kind", "bam")}, index.FacetResult{Missing: 2},
		},
		"missing of analyzed text": {index.Facet{Field: field("words"), Missing: true}, index.FacetResult{Missing: 5}},
		"everything is missing":    {index.Facet{Field: field("nowhere"), Missing: true, Cardinality: 9}, index.FacetResult{Missing: 5}},
		"cardinality":              {index.Facet{Field: field("files.bytes"), Cardinality: 1}, index.FacetResult{Cardinality: 4}},
		"statistics count values": {
			index.Facet{Field: field("files.bytes"), Stats: true},
			index.FacetResult{Stats: index.Stats{Min: 1, Max: 40, Sum: 54, Avg: 9, Count: 6}},
		},
		"statistics of elements": {
			index.Facet{Field: field("files.bytes"), Stats: true, Elements: terms("files.kind", "bam")},
			index.FacetResult{Stats: index.Stats{Min: 5, Max: 5, Sum: 10, Avg: 5, Count: 2}},
		},
		"statistics of booleans": {
			index.Facet{Field: field("ok"), Stats: true},
			index.FacetResult{Stats: index.Stats{Min: 0, Max: 1, Sum: 2, Avg: 2.0 / 3, Count: 3}},
		},
		"no statistics of texts": {index.Facet{Field: field("color"), Stats: true, Histogram: 1}, index.FacetResult{}},
		"histogram with gaps": {
			index.Facet{Field: field("sizes"), Histogram: 5},
			index.FacetResult{Histogram: []index.Interval{{Key: -5, Count: 1}, {Key: 0}, {Key: 5, Count: 1}, {Key: 10, Count: 2}}},
		},
		"histogram of documents": {
			index.Facet{Field: field("files.bytes"), Histogram: 30},
			index.FacetResult{Histogram: []index.Interval{{Key: 0, Count: 2}, {Key: 30, Count: 1}}},
		},
		"histogram of days": {
			index.Facet{Field: field("day"), Histogram: 86_400_000},
			index.FacetResult{Histogram: []index.Interval{{Key: 1704067200000, Count: 1}, {Key: 1704153600000, Count: 1}}},
		},
		"ranges of documents": {
			index.Facet{Field: field("files.bytes"), Ranges: []index.NumberRange{{}, {From: &two}, {To: &two}, {From: &two, To: &two}, {From: &zero, To: &two}}},
			index.FacetResult{Ranges: []int64{2, 2, 1, 0, 1}},
		},
		"ranges of texts": {index.Facet{Field: field("color"), Ranges: []index.NumberRange{{}}}, index.FacetResult{Ranges: []int64{0}}},
	}
	docs := faceted(t)
	layouts := map[string][]evaluate.Part{"whole": parts(t, docs), "spread": parts(t, docs, 1, 2, 4)}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.want.Ranges == nil {
				test.want.Ranges = []int64{}
			}
			for layout, of := range layouts {
				got := answer(t, of, index.SearchRequest{Facets: []index.Facet{test.facet}})
				if diff := cmp.Diff(test.want, got.Facets[0]); diff != "" {
					t.Errorf("%s:\n%s", layout, diff)
				}
			}
		})
	}
}

// TestSumsOfFractions sums numbers that round: the result must not depend on their order.
func TestSumsOfFractions(t *testing.T) {
	tests := map[string]struct {
		docs []string
		want float64
	}{
		"small beside large": {[]string{`{"score":1e100}`, `{"score":1}`, `{"score":-1e100}`, `{"score":1}`}, 2},
		"tenths":             {[]string{`{"score":0.1}`, `{"score":0.2}`, `{"score":0.3}`, `{"score":-0.6}`}, 2.7755575615628914e-17},
		"infinite":           {[]string{`{"score":1e308}`, `{"score":1e308}`, `{"score":1e308}`}, math.Inf(1)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			docs := documentsOf(t, test.docs...)
			for _, of := range [][]evaluate.Part{parts(t, docs), parts(t, docs, 1), parts(t, docs, 1, 2)} {
				got := answer(t, of, index.SearchRequest{Facets: []index.Facet{{Field: field("score"), Stats: true}}})
				if sum := got.Facets[0].Stats.Sum; sum != test.want {
					t.Errorf("%v, want %v", sum, test.want)
				}
			}
		})
	}
}

func TestFacetsRefused(t *testing.T) {
	docs := documentsOf(t, `{"size":0,"words":"w"}`, `{"size":10000}`)
	analyzed := "the field \"words\" is analyzed text, which supports neither facets nor sorting"
	tests := map[string]struct {
		facet index.Facet
		want  string
	}{
		"buckets of analyzed text":     {index.Facet{Field: field("words"), Buckets: &index.Buckets{Max: 1}}, analyzed},
		"cardinality of analyzed text": {index.Facet{Field: field("words"), Cardinality: 1}, analyzed},
		"too many intervals": {
			index.Facet{Field: field("size"), Histogram: 1}, "a histogram of the field \"size\" with an interval of 1 would have more than 10000 intervals",
		},
		"an interval backwards": {
			index.Facet{Field: field("size"), Histogram: -1}, "the histogram interval of the field \"size\" must be at least 1e-100 and finite",
		},
		"no buckets": {
			index.Facet{Field: field("size"), Buckets: &index.Buckets{}}, "the number of buckets of the field \"size\" must be between 1 and 300000",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := evaluate.Search(t.Context(), parts(t, docs, 1), []index.SearchRequest{{Facets: []index.Facet{test.facet}}})
			invalid(t, err, test.want)
		})
	}
	got := answer(t, parts(t, docs, 1), index.SearchRequest{Facets: []index.Facet{{Field: field("size"), Histogram: 1.0002}}})
	if n := len(got.Facets[0].Histogram); n != 9999 {
		t.Errorf("%d intervals, want 9999", n)
	}
}
