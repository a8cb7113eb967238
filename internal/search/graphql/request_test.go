package graphql_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/catalogue/definition"
)

// TestPages compares the requests to the index.
func TestPages(t *testing.T) {
	id := index.Sort{Field: query.Field{Path: "_id", Type: "keyword"}}
	count := query.Field{Path: "count", Type: "long"}
	for _, c := range []struct {
		name, args, node string
		want             index.SearchRequest
	}{
		{"nothing is said", ``, `id`, index.SearchRequest{Hits: &index.HitsRequest{Size: 10, Sort: []index.Sort{id}, Source: index.Source{None: true}}}},
		{"values", `(first:2,offset:3)`, `count files{hits{edges{node{name}}}} experiment{lab{city}}`, index.SearchRequest{Hits: &index.HitsRequest{
			Size: 2, From: 3, Sort: []index.Sort{id}, Source: index.Source{Paths: []string{"count", "files.name", "experiment.lab.city"}},
		}}},
		{"a container of which nothing is needed", `(first:0)`, `files{hits{total}}`, index.SearchRequest{Hits: &index.HitsRequest{
			Sort: []index.Sort{id}, Source: index.Source{Paths: []string{"files"}},
		}}},
		{"most of it", ``, `analysisId studyId note count small ratio open created info tags odd_name`, index.SearchRequest{Hits: &index.HitsRequest{
			Size: 10, Sort: []index.Sort{id},
		}}},
		{"null is the default", `(first:null,offset:null,filters:null,sort:null,searchAfter:null)`, `id`, index.SearchRequest{Hits: &index.HitsRequest{
			Size: 10, Sort: []index.Sort{id}, Source: index.Source{None: true},
		}}},
		{"an order", `(sort:[{fieldName:"count",order:desc,mode:avg,missing:first},{fieldName:"files.name",order:asc},{fieldName:"studyId"}])`, `id`, index.SearchRequest{Hits: &index.HitsRequest{
			Size: 10, Source: index.Source{None: true}, Sort: []index.Sort{
				{Field: count, Descending: true, Mode: "avg", MissingFirst: true},
				{Field: query.Field{Path: "files.name", Type: "keyword", Nested: []string{"files"}}, MissingFirst: true},
				{Field: query.Field{Path: "studyId", Type: "keyword"}},
				id,
			},
		}}},
		{"an order by the id", `(sort:{fieldName:"_id",order:desc})`, `id`, index.SearchRequest{Hits: &index.HitsRequest{
			Size: 10, Source: index.Source{None: true}, Sort: []index.Sort{{Field: id.Field, Descending: true}},
		}}},
		{"an order by the score, which is none", `(sort:[{fieldName:"_score",order:desc},{fieldName:"count"}],searchAfter:[3,"a7"])`, `id`, index.SearchRequest{Hits: &index.HitsRequest{
			Size: 10, Source: index.Source{None: true}, Sort: []index.Sort{{Field: count}, id},
			After: []json.RawMessage{json.RawMessage(`3`), json.RawMessage(`"a7"`)},
		}}},
		{"behind a document", `(sort:{fieldName:"count"},searchAfter:["9223372036854775807","7"])`, `id`, index.SearchRequest{Hits: &index.HitsRequest{
			Size: 10, Source: index.Source{None: true}, Sort: []index.Sort{{Field: count}, id},
			After: []json.RawMessage{json.RawMessage(`9223372036854775807`), json.RawMessage(`"7"`)},
		}}},
		{"a filter", `(filters:{op:in,content:{fieldName:"studyId",value:["S2","S1"]}})`, `id`, index.SearchRequest{
			Filter: &query.Node{Op: query.Terms, Field: query.Field{Path: "studyId", Type: "keyword"}, Terms: []string{"S1", "S2"}},
			Hits:   &index.HitsRequest{Size: 10, Sort: []index.Sort{id}, Source: index.Source{None: true}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			got := w.ask(core.GraphQLRequest{Query: `{analysis{hits` + c.args + `{edges{node{` + c.node + `}}}}}`})
			if got.Rejected {
				t.Fatalf("%s", got.Body)
			}
			if diff := cmp.Diff([]index.SearchRequest{c.want}, w.engine.reqs, cmpopts.IgnoreFields(index.HitsRequest{}, "Read")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTotals(t *testing.T) {
	for _, c := range []struct {
		name, query, want string
		reqs              int
	}{
		{"alone", `{analysis{hits{total}}}`, `{"data":{"analysis":{"hits":{"total":41}}}}`, 1},
		{"not counted", `{analysis{hits(trackTotalHits:false,offset:3){total edges{node{id}}}}}`, `{"data":{"analysis":{"hits":{"total":4,"edges":[{"node":{"id":"a"}}]}}}}`, 1},
		{"neither counted nor given", `{analysis{hits(trackTotalHits:false){total}}}`, `{"data":{"analysis":{"hits":{"total":0}}}}`, 0},
		{"nothing is asked", `{analysis{hits{__typename}}}`, `{"data":{"analysis":{"hits":{"__typename":"analysisConnection"}}}}`, 0},
		{"several questions in one", `{a:analysis{hits{total}} b:analysis{hits(filters:{op:in,content:{fieldName:"studyId",value:"S1"}}){total} c:hits{total}}}`, `{"data":{"a":{"hits":{"total":41}},"b":{"hits":{"total":41},"c":{"total":41}}}}`, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.engine.answer = gives(41, index.Hit{ID: "a"})
			w.answers(c.query, c.want)
			if len(w.engine.reqs) != c.reqs || w.engine.calls != min(c.reqs, 1) {
				t.Errorf("%d calls, %d requests", w.engine.calls, len(w.engine.reqs))
			}
		})
	}
}

// wrong is a response with one error.
func wrong(message, code, rest string) string {
	raw, _ := json.Marshal(message)
	return `{"errors":[{"message":` + string(raw) + `,"extensions":{"code":"` + code + `"}` + rest + `}]}`
}

func at(line, column string, path ...string) string {
	where := `,"locations":[{"line":` + line + `,"column":` + column + `}]`
	if len(path) > 0 {
		where += `,"path":["` + strings.Join(path, `","`) + `"]`
	}
	return where
}

func TestRejections(t *testing.T) {
	const input, validation = "BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED"
	hits := func(args string) core.GraphQLRequest {
		return core.GraphQLRequest{Query: `{analysis{hits(` + args + `){total}}}`}
	}
	inHits := at("1", "16", "analysis", "hits")
	for _, c := range []struct {
		name    string
		request core.GraphQLRequest
		want    string
	}{
		{"an unknown field", core.GraphQLRequest{Query: `{analysis{hitz{total}}}`}, wrong(`Cannot query field "hitz" on type "analysis". Did you mean "hits"?`, validation, at("1", "11"))},
		{"a huge number", hits(`first:3000000000`), wrong(`the argument first is not a 32-bit integer`, input, inHits)},
		{"a negative first", hits(`first:-1`), wrong(`the argument first is negative`, input, inHits)},
		{"a negative offset", hits(`offset:-1`), wrong(`the argument offset is negative`, input, inHits)},
		{"too far", hits(`first:1,offset:10000`), wrong(`the argument offset plus first is more than 10000 documents: continue with the searchAfter of the last edge`, input, at("1", "24", "analysis", "hits"))},
		{"behind and left out", hits(`offset:1,searchAfter:["x"]`), wrong(`the argument offset and searchAfter exclude each other`, input, inHits)},
		{"behind nothing", hits(`searchAfter:[1,"x"]`), wrong(`the argument searchAfter is not the searchAfter of an edge in this order, which has 1 values including the tie-breaker`, input, inHits)},
		{"an order of nothing", hits(`sort:{fieldName:"cuont"}`), wrong(`the argument sort [0]: there is no field "cuont", did you mean "count"?`, input, inHits)},
		{"an order of an object", hits(`sort:{fieldName:"files"}`), wrong(`the argument sort [0]: "files" is an object, not a value`, input, inHits)},
		{"an order of values that the index does not have", hits(`sort:[{fieldName:"uncounted"}]`), wrong(`the argument sort [0]: "uncounted" is not sortable: the index does not have its values by document (doc_values is false)`, input, inHits)},
		{"an order of words", hits(`sort:[{fieldName:"count"},{fieldName:"note"}]`), wrong(`the argument sort [1]: type text, the type of "note", is not sortable`, input, inHits)},
		{"a mean of texts", hits(`sort:{fieldName:"studyId",mode:avg}`), wrong(`the argument sort [0]: mode avg is for numeric fields, but "studyId" has type keyword`, input, inHits)},
		{"a mutation where none may be", core.GraphQLRequest{Query: `mutation{saveSet(type:analysis,sqon:{},path:"_id"){setId}}`, ReadOnly: true}, wrong("a mutation must be sent by POST", "BAD_REQUEST", at("1", "1"))},
		{"a missing variable", core.GraphQLRequest{Query: `query($n:Int!){analysis{hits(first:$n){total}}}`}, wrong("the variable $n of type Int! is missing", input, at("1", "7"))},
		{"a set where there are none", core.GraphQLRequest{Query: `mutation{saveSet(type:analysis,sqon:{},path:"_id"){setId}}`}, `{"errors":[{"message":"saved sets are not enabled for this catalogue","locations":[{"line":1,"column":10}],"path":["saveSet"],
			"extensions":{"code":"BAD_USER_INPUT","hint":"set enableSets in the configuration of the catalogue"}}]}`},
		{
			"a malformed filter",
			core.GraphQLRequest{Query: `query($f:JSON){analysis{hits(filters:$f){total}}}`, Variables: json.RawMessage(`{"f":{"op":"and","content":[{"op":"in","content":{"fieldName":"cuont","value":1}}]}}`)},
			`{"errors":[{"message":"the filter is not valid at /content/0/content/fieldName: unknown field \"cuont\", did you mean \"count\"?","locations":[{"line":1,"column":30}],
			"path":["analysis","hits"],"extensions":{"code":"BAD_USER_INPUT","violations":[{"pointer":"/content/0/content/fieldName","keyword":"fieldName","message":"unknown field \"cuont\", did you mean \"count\"?"}]}}]}`,
		},
		{"no interval", core.GraphQLRequest{Query: `{analysis{aggregations{count{histogram(interval:0){buckets{key}}}}}}`}, wrong("the argument interval must be greater than 0", input, at("1", "40", "analysis", "aggregations", "count", "histogram"))},
		{"documents of unknown fields", core.GraphQLRequest{Query: `{analysis{aggregations{studyId{buckets{top_hits(_source:"file")}}}}}`}, wrong("the argument _source names an unknown field, did you mean files?", input, at("1", "49", "analysis", "aggregations", "studyId", "buckets"))},
		{"too many documents", core.GraphQLRequest{Query: `{analysis{aggregations{studyId{buckets(max:1001){top_hits(size:10)}}}}}`}, wrong("the argument size times the argument max of buckets is more than 10000: use a smaller max", input, at("1", "59", "analysis", "aggregations", "studyId", "buckets"))},
		{"no documents", core.GraphQLRequest{Query: `{analysis{aggregations{studyId{buckets{top_hits(size:0)}}}}}`}, wrong("the argument size is not between 1 and 100", input, at("1", "49", "analysis", "aggregations", "studyId", "buckets"))},
		{"a filter of buckets", core.GraphQLRequest{Query: `{analysis{aggregations{studyId{bucket_count buckets{filter_by_term(filter:1)}}}}}`}, `{"errors":[{"message":"the filter is not valid: a filter must be an object, not a number",
			"locations":[{"line":1,"column":68}],"path":["analysis","aggregations","studyId","buckets"],"extensions":{"code":"BAD_USER_INPUT","violations":[{"pointer":"","keyword":"node","message":"a filter must be an object, not a number"}]}}]}`},
		{"a negative precision", core.GraphQLRequest{Query: `{analysis{aggregations{studyId{cardinality(precision_threshold:-1)}}}}`}, wrong("the argument precision_threshold is negative", input, at("1", "44", "analysis", "aggregations", "studyId", "cardinality"))},
		{"ranges without end", core.GraphQLRequest{Query: `{analysis{aggregations{count{range(ranges:[` + strings.Repeat("{},", 1001) + `]){buckets{key}}}}}}`}, wrong("the argument ranges has more than 1000 ranges", input, at("1", "36", "analysis", "aggregations", "count", "range"))},
		{"an unknown set", core.GraphQLRequest{Query: `{analysis{hits(filters:{op:in,content:{fieldName:"studyId",value:"set_id:x"}}){total}}}`}, `{"errors":[{"message":"there is no saved set x, or it is not yours, or it has expired",
			"locations":[{"line":1,"column":11}],"path":["analysis","hits"],"extensions":{"code":"BAD_USER_INPUT","violations":[
			{"pointer":"/content/value","keyword":"","message":"there is no saved set x, or it is not yours, or it has expired"}]}}]}`},
		{"a place behind that is none", hits(`searchAfter:[{}]`), wrong(`the argument searchAfter must contain only scalar values`, input, inHits)},
		{"an interval that is too small", core.GraphQLRequest{Query: `{analysis{aggregations{count{histogram(interval:1e-101){buckets{key}}}}}}`}, wrong("the argument interval is too small: the smallest is 1e-100", input, at("1", "40", "analysis", "aggregations", "count", "histogram"))},
		{"documents of ranges", core.GraphQLRequest{Query: `{analysis{aggregations{count{range{buckets{key top_hits}}}}}}`}, wrong("buckets of histogram and range have only document counts: top_hits is not available", input, at("1", "48", "analysis", "aggregations", "count", "range", "buckets"))},
		{"filters of intervals", core.GraphQLRequest{Query: `{analysis{aggregations{count{histogram{buckets{filter_by_term(filter:{})}}}}}}`}, wrong("buckets of histogram and range have only document counts: filter_by_term is not available", input, at("1", "48", "analysis", "aggregations", "count", "histogram", "buckets"))},
		{"a negative number of elements", core.GraphQLRequest{Query: `{analysis{hits{edges{node{files{hits(first:-1){total}}}}}}}`}, wrong("the argument first is negative", input, at("1", "38", "analysis", "hits", "edges"))},
		{"elements before the first", core.GraphQLRequest{Query: `{analysis{hits{edges{node{files{hits(offset:-1){total}}}}}}}`}, wrong("the argument offset is negative", input, at("1", "38", "analysis", "hits", "edges"))},
		{"a pattern of ids", hits(`filters:{op:in,content:{fieldName:"_id",value:"a*"}}`), `{"errors":[{"message":"document ids do not support patterns: use in, with * and ? escaped by a backslash","locations":[{"line":1,"column":11}],
			"path":["analysis","hits"],"extensions":{"code":"BAD_USER_INPUT","violations":[{"pointer":"/content/value","keyword":"","message":"document ids do not support patterns: use in, with * and ? escaped by a backslash"}]}}]}`},
		{"a filter by the id's other name", hits(`filters:{op:in,content:{fieldName:"id",value:"a1"}}`), `{"errors":[{"message":"the filter is not valid at /content/fieldName: unknown field \"id\"","locations":[{"line":1,"column":16}],
			"path":["analysis","hits"],"extensions":{"code":"BAD_USER_INPUT","hint":"id is not a field: filter by _id, the document id",
			"violations":[{"pointer":"/content/fieldName","keyword":"fieldName","message":"unknown field \"id\""}]}}]}`},
		{"no network", core.GraphQLRequest{Query: `{network{nodes{hits}}}`}, wrong(`Cannot query field "network" on type "Root".`, validation, at("1", "2"))},
		{"no buckets", core.GraphQLRequest{Query: `{analysis{aggregations{studyId{buckets(max:0){key}}}}}`}, wrong("the argument max is less than 1", input, at("1", "40", "analysis", "aggregations", "studyId", "buckets"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.refuses(c.request, c.want)
			if w.engine.calls != 0 {
				t.Errorf("the index was asked %d times", w.engine.calls)
			}
		})
	}
}

// TestRejectedMutation: a mutation in a read-only request is rejected as such, also one whose plan was made for another request.
func TestRejectedMutation(t *testing.T) {
	w := newWorld(t)
	mutation := core.GraphQLRequest{Query: `mutation{__typename}`}
	if got := w.ask(mutation); got.Rejected || got.RejectedMutation {
		t.Errorf("rejected: %s", got.Body)
	}
	mutation.ReadOnly = true
	if got := w.ask(mutation); !got.Rejected || !got.RejectedMutation {
		t.Errorf("read-only: %s", got.Body)
	}
	if got := w.ask(core.GraphQLRequest{Query: `{nothing}`, ReadOnly: true}); !got.Rejected || got.RejectedMutation {
		t.Errorf("a query: %s", got.Body)
	}
}

func TestIntrospectionCanBeOff(t *testing.T) {
	w := newWorld(t, func(d *definition.Definition) { d.GraphQLIntrospection = false })
	for _, q := range []string{`{__schema{queryType{name}}}`, `{__type(name:"Root"){name}}`, `{...f} fragment f on Root{__schema{queryType{name}}}`} {
		got := w.ask(core.GraphQLRequest{Query: q})
		if !got.Rejected || !strings.Contains(string(got.Body), `"validationErrorCode":"INTROSPECTION_DISABLED"`) ||
			!strings.Contains(string(got.Body), `"code":"GRAPHQL_VALIDATION_FAILED"`) {
			t.Errorf("%s: %s", q, got.Body)
		}
	}
	w.answers(`{__typename analysis{__typename}}`, `{"data":{"__typename":"Root","analysis":{"__typename":"analysis"}}}`)
	w.refuses(core.GraphQLRequest{Query: `{analysis{hitz}}`}, wrong(`Cannot query field "hitz" on type "analysis".`, "GRAPHQL_VALIDATION_FAILED", at("1", "11")))
}

func TestIntrospection(t *testing.T) {
	w := newWorld(t)
	got := w.ask(core.GraphQLRequest{
		Query: `query($t:String!){__schema{queryType{name}} a:__type(name:$t){...t} b:__type(name:"nobody"){name}} fragment t on __Type{kind name}`, Variables: json.RawMessage(`{"t":"analysisAggregations"}`),
	})
	same(t, `{"data":{"__schema":{"queryType":{"name":"Root"}},"a":{"kind":"OBJECT","name":"analysisAggregations"},"b":null}}`, got.Body)
}

// TestFailures: index errors are reported at the fields that they affect, without the index's own text.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name, message, code string
		err                 error
	}{
		{"away", "the index does not answer", "SERVICE_UNAVAILABLE", core.WrapError(core.CodeUnavailable, "the index does not answer", errors.New("10.0.0.1: secret"))},
		{"blocked", "the index is missing", "SERVICE_UNAVAILABLE", core.WrapError(core.CodeIndexBlocked, "the index is missing", core.ErrIndexMissing)},
		{"too fine", "the interval is too small", "BAD_USER_INPUT", core.NewError(core.CodeInvalid, "the interval is too small")},
		{"unknown", "an internal error occurred", "INTERNAL_SERVER_ERROR", errors.New("secret")},
		{"over", "request timed out", "SERVICE_UNAVAILABLE", context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.engine.answer = func(context.Context, []index.SearchRequest) ([]index.SearchResult, error) { return nil, c.err }
			got := w.ask(core.GraphQLRequest{Query: `{__typename analysis{hits{total} aggregations{open{bucket_count}}}}`})
			if got.Rejected {
				t.Error("refused, though it was executed")
			}
			same(t, `{"data":{"__typename":"Root","analysis":{"hits":null,"aggregations":null}},"errors":[
				{"message":"`+c.message+`","locations":[{"line":1,"column":22}],"path":["analysis","hits"],"extensions":{"code":"`+c.code+`"}},
				{"message":"`+c.message+`","locations":[{"line":1,"column":34}],"path":["analysis","aggregations"],"extensions":{"code":"`+c.code+`"}}]}`, got.Body)
		})
	}
}

func TestCancellationReachesTheIndex(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.engine.answer = func(ctx context.Context, _ []index.SearchRequest) ([]index.SearchResult, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	got := w.service.Execute(ctx, w.model, core.Principal{}, core.GraphQLRequest{Query: `{analysis{hits{total}}}`})
	if !strings.Contains(string(got.Body), `"code":"SERVICE_UNAVAILABLE"`) {
		t.Errorf("%s", got.Body)
	}
}

func TestFiltersCanBeOff(t *testing.T) {
	w := newWorld(t, func(d *definition.Definition) { d.DisableFilters = true })
	w.refuses(core.GraphQLRequest{Query: `{analysis{hits(filters:{op:in,content:{fieldName:"open",value:true}}){total}}}`},
		wrong("filters are disabled for this catalogue", "BAD_USER_INPUT", at("1", "16", "analysis", "hits")))
	w.answers(`{analysis{hits(filters:{op:and,content:[]}){total}}}`, `{"data":{"analysis":{"hits":{"total":0}}}}`)
}
