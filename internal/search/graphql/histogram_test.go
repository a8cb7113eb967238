package graphql_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// TestMissingBucketIsOfTheDocuments: the missing bucket of a nested field counts documents in which no element has a value.
func TestMissingBucketIsOfTheDocuments(t *testing.T) {
	w := newWorld(t)
	w.engine.answer = facets(nil)
	w.ask(ask(`{analysis{aggregations(filters:{op:in,content:{fieldName:"files.size",value:1}}){files__name{buckets{
		filter_by_term(filter:{op:in,content:{fieldName:"open",value:true}})}}}}}`))
	files := []string{"files"}
	some := func(n query.Node) *query.Node {
		return &query.Node{Op: query.Some, Path: "files", Children: []*query.Node{&n}}
	}
	want := &query.Node{Op: query.And, Children: []*query.Node{
		some(query.Node{Op: query.Terms, Field: query.Field{Path: "files.size", Type: "long", Nested: files}, Terms: []string{"1"}}),
		{Op: query.Not, Children: []*query.Node{some(query.Node{Op: query.Exists, Field: query.Field{Path: "files.name", Type: "keyword", Nested: files}})}},
		{Op: query.Terms, Field: query.Field{Path: "open", Type: "boolean"}, Terms: []string{"true"}},
	}}
	if len(w.engine.reqs) != 2 || !w.engine.reqs[1].Total {
		t.Fatalf("%+v", w.engine.reqs)
	}
	if diff := cmp.Diff(want, w.engine.reqs[1].Filter); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHistogramsAreRequestedAgain: if one of several histograms is rejected, the others still have results.
func TestHistogramsAreRequestedAgain(t *testing.T) {
	const asked = `{analysis{aggregations(include_missing:false){count{histogram(interval:1){buckets{key}}}
		ratio{histogram(interval:1){buckets{key}}} studyId{bucket_count}}}}`
	const wide = `{"message":"a histogram of the field \"count\" with an interval of 1 would have more than 10000 intervals","locations":[{"line":1,"column":53}],
		"path":["analysis","aggregations","count","histogram"],"extensions":{"code":"BAD_USER_INPUT","hint":"use a larger interval or a more specific filter"}}`
	for _, c := range []struct {
		name string
		// again is the result of the third call, for the histograms that fit.
		again error
		want  string
	}{
		{"and given", nil, `{"data":{"analysis":{"aggregations":{"count":{"histogram":null},"ratio":{"histogram":{"buckets":[{"key":"2"}]}},
			"studyId":{"bucket_count":1}}}},"errors":[` + wide + `]}`},
		{"and refused, as there are new values", core.NewError(core.CodeInvalid, "too many"), `{"data":{"analysis":{"aggregations":{
			"count":{"histogram":null},"ratio":{"histogram":null},"studyId":{"bucket_count":1}}}},"errors":[` + wide + `,
			{"message":"a histogram of the field \"ratio\" with an interval of 1 would have more than 10000 intervals","locations":[{"line":2,"column":9}],
			"path":["analysis","aggregations","ratio","histogram"],"extensions":{"code":"BAD_USER_INPUT","hint":"use a larger interval or a more specific filter"}}]}`},
		{"of an index that is gone", core.NewError(core.CodeUnavailable, "the index does not answer"), `{"data":{"analysis":{"aggregations":null}},"errors":[
			{"message":"the index does not answer","locations":[{"line":1,"column":11}],"path":["analysis","aggregations"],"extensions":{"code":"SERVICE_UNAVAILABLE"}}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			var third []index.SearchRequest
			w.engine.answer = func(_ context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
				switch w.engine.calls {
				case 1:
					return nil, core.NewError(core.CodeInvalid, "a histogram of count has too many intervals")
				case 2:
					return facets(map[string]index.FacetResult{
						"count": {Stats: index.Stats{Min: -1, Max: 9999.5, Count: 2}}, "ratio": {Stats: index.Stats{Min: 0, Max: 9999.5, Count: 2}},
						"studyId": {Buckets: []index.Bucket{{Key: "S1", Count: 2}}},
					})(t.Context(), reqs)
				default:
					third = reqs
					if c.again != nil {
						return nil, c.again
					}
					return facets(map[string]index.FacetResult{"ratio": {Histogram: []index.Interval{{Key: 2, Count: 1}}}})(t.Context(), reqs)
				}
			}
			same(w, c.want, w.ask(ask(asked)).Body)
			want := []index.SearchRequest{{Facets: []index.Facet{{Field: query.Field{Path: "ratio", Type: "double"}, Histogram: 1}}}}
			if diff := cmp.Diff(want, third); diff != "" || w.engine.calls != 3 {
				t.Errorf("%d calls (-want +got):\n%s", w.engine.calls, diff)
			}
		})
	}
	t.Run("not without one", func(t *testing.T) {
		w := newWorld(t)
		w.engine.answer = func(context.Context, []index.SearchRequest) ([]index.SearchResult, error) {
			return nil, core.NewError(core.CodeInvalid, "too many documents")
		}
		w.ask(ask(`{analysis{hits{total} aggregations{count{stats{min}}}}}`))
		if w.engine.calls != 1 {
			t.Errorf("%d calls", w.engine.calls)
		}
	})
}
