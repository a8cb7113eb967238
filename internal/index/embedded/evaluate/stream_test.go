package evaluate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
)

// many returns n small documents whose values repeat with different periods.
func many(n int) []document {
	docs := make([]document, 0, n)
	for i := range n {
		d := document{id: fmt.Sprintf("%06d", (i*7919)%n), body: map[string]any{"size": i % 1000, "code": fmt.Sprintf("c%d", i%5000), "score": float64(i) / 8}, stale: i%11 == 0}
		if i%3 > 0 {
			d.body["color"] = []string{"red", "green", "blue"}[i%7%3]
		}
		if i%2 == 0 {
			d.body["sizes"] = []int{i % 13, i % 700}
			d.body["files"] = []any{
				map[string]any{"kind": fmt.Sprint("k", i%5), "bytes": i % 900}, map[string]any{"kind": fmt.Sprint("k", i%10), "name": fmt.Sprintf("f%d", i%9000)},
			}
		}
		docs = append(docs, d)
	}
	return docs
}

// TestManyDocuments has more rows than one bitmap container, columns of all forms, and filters from few to most documents.
func TestManyDocuments(t *testing.T) {
	docs := many(66_000)
	o := newOracle(t, docs)
	whole, spread := parts(t, docs), parts(t, docs, 10_000, 65_900)
	none := query.Bound{}
	elements := func(child *query.Node) *query.Node { return some("files", child) }
	filters := map[string]*query.Node{
		"all":                       nil,
		"few":                       terms("code", "c17", "c4000"),
		"a third":                   terms("color", "red"),
		"most":                      not(terms("size", "1", "2", "3")),
		"many codes":                patterns(true, "code", "*1*"),
		"low codes":                 patterns(false, "code", "c1*"),
		"a wide range":              between("size", from("100"), none),
		"a wide range of several":   between("sizes", from("100"), none),
		"a wide range of different": between("score", from("100"), from("5000.5")),
		"a narrow range":            between("size", from("100"), beyond("103")),
		"elements":                  elements(terms("files.kind", "k1", "k3", "k4")),
		"few elements":              elements(terms("files.name", "f12")),
		"most elements":             elements(between("files.bytes", from("10"), none)),
		"elements of both":          elements(and(exists("files.name"), not(terms("files.kind", "k8")))),
	}
	facets := []index.Facet{
		{Field: field("color"), Buckets: &index.Buckets{Max: 2, TopHits: 2, Filters: []*query.Node{terms("size", "5", "6")}}, Missing: true},
		{Field: field("code"), Buckets: &index.Buckets{Max: 5}, Cardinality: 1},
		{Field: field("sizes"), Stats: true, Histogram: 100, Cardinality: 1},
		{Field: field("score"), Stats: true, Histogram: 1000},
		{Field: field("files.kind"), Elements: exists("files.name"), Buckets: &index.Buckets{Max: 5}, Missing: true},
		{Field: field("files.bytes"), Buckets: &index.Buckets{Max: 3}, Stats: true, Histogram: 50},
	}
	sorts := []index.Sort{{Field: field("color"), Descending: true, MissingFirst: true}, {Field: field("sizes")}}
	for name, filter := range filters {
		t.Run(name, func(t *testing.T) {
			req := index.SearchRequest{Filter: filter, Total: true, Facets: facets, Hits: &index.HitsRequest{Sort: sorts, From: 10, Size: 300}}
			want := o.expect(req)
			for layout, of := range map[string][]evaluate.Part{"whole": whole, "spread": spread} {
				want.compare(t, layout, answer(t, of, req))
				want.compareStream(t, of)
			}
		})
	}
}

func TestStreamEndsWithItsError(t *testing.T) {
	of := parts(t, many(2000))
	stop := errors.New("enough")
	calls := 0
	err := evaluate.Stream(t.Context(), of, index.StreamRequest{Sort: []index.Sort{{Field: field("size")}}}, func(refs []evaluate.DocumentRef, _ []index.Hit) error {
		if len(refs) != 500 {
			t.Errorf("%d documents", len(refs))
		}
		if calls++; calls == 2 {
			return stop
		}
		return nil
	})
	if err != stop || calls != 2 { //nolint:errorlint // returned unwrapped
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestStreamRefused(t *testing.T) {
	err := evaluate.Stream(t.Context(), nil, index.StreamRequest{Sort: []index.Sort{{Field: field("words")}}}, nil)
	invalid(t, err, "the field \"words\" is analyzed text, which supports neither facets nor sorting")
}

func TestCanceled(t *testing.T) {
	of := parts(t, many(2000))
	ctx, cancel := context.WithCancel(t.Context())
	assert := func(err error) {
		t.Helper()
		if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "the search was cancelled before it was complete" ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	assert(evaluate.Stream(ctx, of, index.StreamRequest{}, func([]evaluate.DocumentRef, []index.Hit) error {
		cancel()
		return nil
	}))
	_, err := evaluate.Search(ctx, of, []index.SearchRequest{{Total: true}})
	assert(err)
	assert(evaluate.Stream(ctx, of, index.StreamRequest{}, nil))
}

// TestRequestsShareClauses uses the same filter in many requests, by the same node and by equal ones.
func TestRequestsShareClauses(t *testing.T) {
	w := world{rand.New(rand.NewPCG(11, 13))}
	docs := w.documents(200)
	of := parts(t, docs, 50)
	var reqs []index.SearchRequest
	for range 5 {
		filter := and(terms("color", "blue", "red"), some("files", or(terms("files.kind", "bam"), exists("files.parts.n"))))
		filter.Children[1].Children[0].Children[1] = some("files.parts", exists("files.parts.n"))
		reqs = append(reqs, index.SearchRequest{Filter: filter, Total: true}, index.SearchRequest{Filter: filter.Children[0], Total: true})
	}
	answers, err := evaluate.Search(t.Context(), of, reqs)
	if err != nil {
		t.Fatal(err)
	}
	for i := range reqs {
		one := answer(t, of, reqs[i])
		if diff := cmp.Diff(one, answers[i]); diff != "" || one.Total == 0 {
			t.Errorf("request %d, total %d:\n%s", i, one.Total, diff)
		}
	}
}
