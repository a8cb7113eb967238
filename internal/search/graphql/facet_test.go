package graphql_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// facets answers each facet by the path of its field.
func facets(answers map[string]index.FacetResult) func(context.Context, []index.SearchRequest) ([]index.SearchResult, error) {
	return func(_ context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		results := empty(reqs)
		for i, req := range reqs {
			for k, f := range req.Facets {
				results[i].Facets[k] = answers[f.Field.Path]
			}
		}
		return results, nil
	}
}

func TestFacets(t *testing.T) {
	studies := index.FacetResult{
		Buckets: []index.Bucket{
			{Key: "S1", Count: 3, Filters: []int64{2}, TopHits: []index.Hit{{ID: "a1", Source: []byte(document)}}},
			{Key: "S2", Count: 1, Filters: []int64{0}},
		},
		Missing: 5, Cardinality: 7,
	}
	all := map[string]index.FacetResult{
		"studyId":    studies,
		"open":       {Buckets: []index.Bucket{{Key: "true", Count: 2}, {Key: "false", Count: 1}}},
		"count":      {Stats: index.Stats{Min: 1, Max: 9007199254740993, Avg: 2.5, Sum: 5, Count: 2}, Histogram: []index.Interval{{Key: 0, Count: 1}, {Key: 0.5, Count: 0}}, Ranges: []int64{4, 0}},
		"created":    {Histogram: []index.Interval{{Key: 1483228800000, Count: 1}}, Ranges: []int64{1}},
		"files.name": {Buckets: []index.Bucket{{Key: "f\"1", Count: 1}}},
	}
	for _, c := range []struct{ name, query, want string }{
		{
			"buckets", `{analysis{aggregations{studyId{bucket_count cardinality buckets{key doc_count key_as_string}}}}}`,
			`{"data":{"analysis":{"aggregations":{"studyId":{"bucket_count":3,"cardinality":7,"buckets":[
				{"key":"S1","doc_count":3,"key_as_string":null},{"key":"S2","doc_count":1,"key_as_string":null},
				{"key":"__missing__","doc_count":5,"key_as_string":null}]}}}}}`,
		},
		{
			"without what is missing", `{analysis{aggregations(include_missing:false){studyId{bucket_count buckets{key}}}}}`,
			`{"data":{"analysis":{"aggregations":{"studyId":{"bucket_count":2,"buckets":[{"key":"S1"},{"key":"S2"}]}}}}}`,
		},
		{
			"documents and filters of buckets", `{analysis{aggregations{studyId{buckets{key
				top_hits(_source:["experiment.lab","files.name","studyId"])
				filter_by_term(filter:{op:"in",content:{fieldName:"open",value:true}})}}}}}`,
			`{"data":{"analysis":{"aggregations":{"studyId":{"buckets":[
				{"key":"S1","top_hits":{"studyId":"S1","experiment":{"lab":{"city":"Toronto"}},"files":[{"name":"f1"},{"name":"f2"}]},"filter_by_term":{"doc_count":2}},
				{"key":"S2","top_hits":{},"filter_by_term":{"doc_count":0}},
				{"key":"__missing__","top_hits":{},"filter_by_term":{"doc_count":0}}]}}}}}`,
		},
		{
			"booleans", `{analysis{aggregations{open{buckets{key key_as_string}}}}}`,
			`{"data":{"analysis":{"aggregations":{"open":{"buckets":[{"key":"1","key_as_string":"true"},{"key":"0","key_as_string":"false"}]}}}}}`,
		},
		{
			"numbers", `{analysis{aggregations{count{stats{min max avg sum count} histogram(interval:0.5){bucket_count cardinality buckets{key doc_count}}
				range(ranges:[{from:10},{from:0,to:10,key:"low"}]){buckets{key doc_count}}}}}}`,
			`{"data":{"analysis":{"aggregations":{"count":{"stats":{"min":1,"max":9007199254740992,"avg":2.5,"sum":5,"count":2},
				"histogram":{"bucket_count":2,"cardinality":null,"buckets":[{"key":"0","doc_count":1},{"key":"0.5","doc_count":0}]},
				"range":{"buckets":[{"key":"low","doc_count":4},{"key":"10.0-*","doc_count":0}]}}}}}}`,
		},
		{
			"dates", `{analysis{aggregations{created{histogram{buckets{key key_as_string}} range{buckets{key doc_count}}}}}}`,
			`{"data":{"analysis":{"aggregations":{"created":{"histogram":{"buckets":[{"key":"1483228800000","key_as_string":"2017-01-01T00:00:00.000Z"}]},
				"range":{"buckets":[{"key":"1970-01-01T00:00:00.000Z-*","doc_count":1}]}}}}}}`,
		},
		{
			"statistics of nothing", `{analysis{aggregations{ratio{stats{min max avg sum count}}}}}`,
			`{"data":{"analysis":{"aggregations":{"ratio":{"stats":{"min":null,"max":null,"avg":null,"sum":0,"count":0}}}}}}`,
		},
		{
			"nested, by aliases", `{analysis{aggregations{a:files__name{buckets(max:1){k:key}} b:files__name{buckets(max:2){k:key}}}}}`,
			`{"data":{"analysis":{"aggregations":{"a":{"buckets":[{"k":"f\"1"}]},"b":{"buckets":[{"k":"f\"1"}]}}}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.engine.answer = facets(all)
			w.answers(c.query, c.want)
			if w.engine.calls != 1 {
				t.Errorf("%d calls", w.engine.calls)
			}
		})
	}
}

// TestEqualFacetsAreRequestedOnce: a facet with several aliases is requested once, and each alias has its result.
func TestEqualFacetsAreRequestedOnce(t *testing.T) {
	w := newWorld(t)
	w.engine.answer = func(_ context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		results := make([]index.SearchResult, len(reqs))
		for i, req := range reqs {
			for _, f := range req.Facets {
				results[i].Facets = append(results[i].Facets, index.FacetResult{Buckets: []index.Bucket{{Key: fmt.Sprint(f.Field.Path, f.Buckets.Max), Count: 1}}})
			}
		}
		return results, nil
	}
	w.answers(`{analysis{aggregations(include_missing:false){a:studyId{buckets{key}} b:tags{buckets{key}} c:studyId{buckets{key}} d:studyId{buckets(max:2){key}}}
		x:aggregations{tags{buckets{key filter_by_term(filter:{op:in,content:{fieldName:"open",value:true}})}}}
		y:aggregations{tags{buckets{key filter_by_term(filter:{op:in,content:{fieldName:"open",value:[true]}})}}}}}`,
		`{"data":{"analysis":{"aggregations":{"a":{"buckets":[{"key":"studyId300000"}]},"b":{"buckets":[{"key":"tags300000"}]},
			"c":{"buckets":[{"key":"studyId300000"}]},"d":{"buckets":[{"key":"studyId2"}]}},"x":{"tags":{"buckets":[{"key":"tags300000","filter_by_term":null}]}},
			"y":{"tags":{"buckets":[{"key":"tags300000","filter_by_term":null}]}}}}}`)
	facets := w.engine.reqs[0].Facets
	if len(w.engine.reqs) != 2 || len(facets) != 3 { // the second one counts the documents without a value
		t.Fatalf("%d requests, %d facets", len(w.engine.reqs), len(facets))
	}
	if tags := facets[1]; !tags.Missing || len(tags.Buckets.Filters) != 1 {
		t.Errorf("requested is %+v", tags)
	}
}

// TestOwnClausesAfterASibling: a facet of a field in the filter omits the clauses of that field, whatever was requested before.
func TestOwnClausesAfterASibling(t *testing.T) {
	w := newWorld(t)
	w.engine.answer = facets(nil)
	w.ask(core.GraphQLRequest{Query: `{analysis{aggregations(filters:{op:in,content:{fieldName:"studyId",value:"S1"}}){tags{buckets{key}} studyId{buckets{key}}}}}`})
	asked := map[string]bool{}
	for _, req := range w.engine.reqs {
		for _, f := range req.Facets {
			asked[f.Field.Path] = req.Filter != nil
		}
	}
	if !asked["tags"] || asked["studyId"] || len(asked) != 2 {
		t.Errorf("narrowed: %v", asked)
	}
}

// TestAnswersAreBounded: a response that is too large is replaced by an error.
func TestAnswersAreBounded(t *testing.T) {
	w := newWorld(t)
	large := index.Bucket{Key: strings.Repeat("x", 33<<20), Count: 1}
	w.engine.answer = facets(map[string]index.FacetResult{"studyId": {Buckets: []index.Bucket{large, large, large}}})
	got := w.ask(core.GraphQLRequest{Query: `{analysis{aggregations{studyId{buckets{key}}}}}`})
	if len(got.Body) > 1<<10 || !bytes.Contains(got.Body, []byte(`"buckets":null`)) || !bytes.Contains(got.Body, []byte("the response is too large")) {
		t.Errorf("%d bytes: %.300s", len(got.Body), got.Body)
	}
}

// TestOneSearchForEachSetOfClauses: facets over the same documents are requested together, with their number.
func TestOneSearchForEachSetOfClauses(t *testing.T) {
	w := newWorld(t)
	const filters = `{"f":{"op":"and","content":[{"op":"in","content":{"fieldName":"studyId","value":["S1"]}},{"op":"in","content":{"fieldName":"open","value":[true]}}]}}`
	got := w.ask(core.GraphQLRequest{
		Query: `query($f:JSON){analysis{
			hits(filters:$f){total}
			aggregations(filters:$f){studyId{buckets{key}} open{buckets{key}} tags{buckets{key}} files__name{bucket_count} count{stats{min}}}
			page:hits(filters:$f,first:5){total edges{node{id}}}}}`,
		Variables: []byte(filters),
	})
	if got.Rejected {
		t.Fatalf("%s", got.Body)
	}
	study := &query.Node{Op: query.Terms, Field: query.Field{Path: "studyId", Type: "keyword"}, Terms: []string{"S1"}}
	open := &query.Node{Op: query.Terms, Field: query.Field{Path: "open", Type: "boolean"}, Terms: []string{"true"}}
	both := &query.Node{Op: query.And, Children: []*query.Node{study, open}}
	facet := func(path, kind string, nested ...string) index.Facet {
		return index.Facet{Field: query.Field{Path: path, Type: kind, Nested: nested}, Buckets: &index.Buckets{Max: index.MaxBuckets}, Missing: true}
	}
	stats := index.Facet{Field: query.Field{Path: "count", Type: "long"}, Stats: true}
	want := []index.SearchRequest{
		{Filter: both, Total: true, Facets: []index.Facet{facet("tags", "keyword"), facet("files.name", "keyword", "files"), stats}},
		{Filter: open, Facets: []index.Facet{facet("studyId", "keyword")}},
		{Filter: study, Facets: []index.Facet{facet("open", "boolean")}},
		{Filter: both, Total: true, Hits: &index.HitsRequest{
			Size: 5, Source: index.Source{None: true}, Sort: []index.Sort{{Field: query.Field{Path: "_id", Type: "keyword"}}},
		}},
	}
	if diff := cmp.Diff(want, w.engine.reqs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.engine.calls != 1 {
		t.Errorf("%d calls", w.engine.calls)
	}
}

func TestFacetsThatDoNotFitTogether(t *testing.T) {
	w := newWorld(t)
	w.ask(core.GraphQLRequest{Query: `{analysis{aggregations{
		studyId{bucket_count a:buckets(max:3){key} b:buckets(max:9){key} c:cardinality(precision_threshold:5) d:cardinality}
		again:studyId{buckets(max:9){key top_hits(_source:["open"],size:2)} cardinality(precision_threshold:5)}
		count{h:histogram(interval:2){buckets{key}} i:histogram(interval:3){buckets{key}} stats{min}}}}}`})
	study, number := query.Field{Path: "studyId", Type: "keyword"}, query.Field{Path: "count", Type: "long"}
	want := []index.SearchRequest{{Facets: []index.Facet{
		{Field: study, Buckets: &index.Buckets{Max: 3}, Missing: true, Cardinality: 5},
		{
			Field: study, Buckets: &index.Buckets{Max: 9, TopHits: 2, TopSource: index.Source{Paths: []string{"open"}}},
			Missing: true, Cardinality: 40_000,
		},
		{Field: number, Histogram: 2, Stats: true},
		{Field: number, Histogram: 3},
	}}, {
		Filter: &query.Node{Op: query.Not, Children: []*query.Node{{Op: query.Exists, Field: study}}},
		Hits: &index.HitsRequest{
			Size: 2, Source: index.Source{Paths: []string{"open"}}, Sort: []index.Sort{{Field: query.Field{Path: "_id", Type: "keyword"}}},
		},
	}}
	if diff := cmp.Diff(want, w.engine.reqs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyFacetFilters: the filter is translated again for each aggregated field that it contains.
func TestManyFacetFilters(t *testing.T) {
	clauses := func(n int) json.RawMessage {
		one := `{"op":"in","content":{"fieldName":"studyId","value":["S1"]}},{"op":"in","content":{"fieldName":"open","value":[true]}},`
		return json.RawMessage(`{"f":{"op":"and","content":[` + strings.TrimSuffix(strings.Repeat(one, n/2), ",") + `]}}`)
	}
	query := func(fields string) string {
		return `query($f:JSON){analysis{aggregations(filters:$f){` + fields + `}}}`
	}
	w := newWorld(t)
	const several = `studyId{bucket_count} open{bucket_count} tags{bucket_count}`
	if got := w.ask(core.GraphQLRequest{Query: query(several), Variables: clauses(9000)}); got.Rejected {
		t.Errorf("%s", got.Body)
	}
	many := several
	for i := range 15 {
		many += fmt.Sprintf(" a%d:analysisId{bucket_count}", i) // the filter does not name it
	}
	if got := w.ask(core.GraphQLRequest{Query: query(many), Variables: clauses(9000)}); got.Rejected {
		t.Errorf("%s", got.Body)
	}
	var mapping, fields, filter strings.Builder
	for i := range 400 {
		fmt.Fprintf(&mapping, `,"f%d":{"type":"keyword"}`, i)
		fmt.Fprintf(&fields, " f%d{bucket_count}", i)
		fmt.Fprintf(&filter, `,{"op":"in","content":{"fieldName":"f%d","value":["a"]}}`, i)
	}
	w.over(plain(), `{"properties":{`+mapping.String()[1:]+`}}`)
	got := w.ask(core.GraphQLRequest{Query: query(fields.String()), Variables: json.RawMessage(`{"f":{"op":"and","content":[` + filter.String()[1:] + `]}}`)})
	const want = "the filter has 401 clauses, which is too many for this number of aggregations of fields in the filter"
	if !got.Rejected || !strings.Contains(string(got.Body), `"message":"`+want+`"`) || !strings.Contains(string(got.Body), `"code":"BAD_USER_INPUT"`) {
		t.Errorf("%.300s", got.Body)
	}
}

// TestMissingInPivot: the bucket of documents without a value counts those that choosing it inside the filter's pivot finds.
func TestMissingInPivot(t *testing.T) {
	w := newWorld(t)
	w.engine.answer = func(_ context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		results := empty(reqs)
		for i, req := range reqs {
			if req.Total {
				results[i].Total = 4
			}
			for k, f := range req.Facets {
				if f.Missing {
					t.Errorf("a facet counts documents without a value in any element of %s", f.Field.Path)
				}
				results[i].Facets[k].Buckets = []index.Bucket{{Key: "f1", Count: 1}}
			}
		}
		return results, nil
	}
	w.answers(`{analysis{aggregations(filters:{op:and,pivot:"files",content:[{op:gt,content:{fieldName:"files.size",value:5}}]}){
		files__name{bucket_count buckets{key doc_count filter_by_term(filter:{op:in,content:{fieldName:"open",value:true}})}}}}}`,
		`{"data":{"analysis":{"aggregations":{"files__name":{"bucket_count":2,"buckets":[{"key":"f1","doc_count":1,"filter_by_term":null},
			{"key":"__missing__","doc_count":4,"filter_by_term":{"doc_count":4}}]}}}}}`)
	if w.engine.calls != 1 {
		t.Errorf("%d calls", w.engine.calls)
	}
}

// TestMoreValuesThanReturned: bucket_count counts values that the response has no room for, and a warning names the field.
func TestMoreValuesThanReturned(t *testing.T) {
	w := newWorld(t)
	w.engine.answer = facets(map[string]index.FacetResult{
		"studyId":    {Buckets: []index.Bucket{{Key: "S1", Count: 3}, {Key: "S2", Count: 1}}, Omitted: 20_000, Missing: 5},
		"files.name": {Buckets: []index.Bucket{{Key: "f", Count: 1}}, Omitted: 9},
	})
	w.answers(`{analysis{aggregations{studyId{bucket_count buckets{key}} files__name{bucket_count}}}}`,
		`{"data":{"analysis":{"aggregations":{"studyId":{"bucket_count":20003,"buckets":[{"key":"S1"},{"key":"S2"},{"key":"__missing__"}]},
			"files__name":{"bucket_count":10}}}},
			"extensions":{"warnings":[{"code":"BUCKETS_CLAMPED","field":"studyId","hint":"select fewer documents by a filter",
			"message":"the field studyId has 20002 values in the documents: only the 2 in most documents are returned"}]}}`)
}

// TestFieldsWithoutValuesByDocument: an engine would fail the whole search for a facet or a sort of such a field.
func TestFieldsWithoutValuesByDocument(t *testing.T) {
	w := newWorld(t)
	w.engine.answer = facets(map[string]index.FacetResult{"studyId": {Buckets: []index.Bucket{{Key: "S1", Count: 3}}}})
	w.answers(`{analysis{aggregations{uncounted{bucket_count} studyId{buckets{key}}}}}`,
		`{"errors":[{"message":"the field uncounted has no facet: the index does not have its values by document (doc_values is false)",
			"locations":[{"line":1,"column":24}],"path":["analysis","aggregations","uncounted"],"extensions":{"code":"BAD_REQUEST"}}],
			"data":{"analysis":{"aggregations":{"uncounted":null,"studyId":{"buckets":[{"key":"S1"}]}}}}}`)
	if n := len(w.engine.reqs[0].Facets); n != 1 {
		t.Errorf("%d facets were requested", n)
	}
}
