package graphql_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

// anything returns arbitrary results.
func anything(source string) func(context.Context, []index.SearchRequest) ([]index.SearchResult, error) {
	return func(_ context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		hit := index.Hit{ID: "a\"\x00\xff", Source: []byte(source), Sort: []json.RawMessage{json.RawMessage(`1`), json.RawMessage(`null`)}}
		results := empty(reqs)
		for i, req := range reqs {
			results[i].Total = 3
			if req.Hits != nil {
				results[i].Hits = []index.Hit{hit, {ID: ""}}
			}
			for k, f := range req.Facets {
				found := &results[i].Facets[k]
				found.Missing, found.Cardinality = 1, 2
				found.Histogram = []index.Interval{{Key: 1.5, Count: 1}}
				if f.Buckets != nil {
					found.Buckets = []index.Bucket{
						{Key: "true", Count: 1, TopHits: []index.Hit{hit}, Filters: make([]int64, len(f.Buckets.Filters))}, {Key: "\xff"},
					}
				}
			}
		}
		return results, nil
	}
}

// FuzzExecute: for any query and any documents, the result is a GraphQL response.
func FuzzExecute(f *testing.F) {
	for _, seed := range []struct{ query, variables string }{
		{`{analysis{hits{total edges{searchAfter node{id tags info small open count note files{hits{total edges{node{name parts{hits{total}}}}}} experiment{lab{city}}}}}}}`, ``},
		{`query($f:JSON,$s:[Sort],$n:Int=3){analysis{hits(filters:$f,sort:$s,first:$n){total edges{node{...n}}}}} fragment n on analysisNode{id @skip(if:true) count}`, `{"f":{"op":"and","content":[]},"s":{"fieldName":"count","order":"asc"}}`},
		{`{analysis{aggregations{studyId{bucket_count buckets(max:1){key doc_count key_as_string top_hits(_source:["files.name"],size:2) filter_by_term(filter:{op:"in",content:{fieldName:"open",value:[true]}})}} open{buckets{key key_as_string}} count{stats{min} histogram(interval:0.1){buckets{key}} range(ranges:[{from:1,to:2.5,key:"x"}]){buckets{key doc_count}}}}}}`, `null`},
		{`{__schema{types{name fields(includeDeprecated:true){name args{name defaultValue} type{kind name ofType{name}}} enumValues{name} inputFields{name}}} __type(name:"Sort"){name} analysis{configs{extended(fieldNames:"tags") table{columns{fieldName}}} mapping}}`, `{}`},
		{`mutation{saveSet(type:analysis,sqon:{},path:"_id"){setId}}`, `{"a":1e400}`},
		{`{sets{hits{total}} network{nodes{hits}}}`, ``},
		{`{analysis{hits(searchAfter:[1,"\u{1F600}"],sort:{fieldName:"count"},filters:{op:"between",content:{fieldName:"count",value:[1,2]}}){total}}}`, ``},
	} {
		f.Add(seed.query, seed.variables, document, true)
		f.Add(seed.query, seed.variables, `{"files":[{"name":["\"",{}]},`, false)
	}
	d := plain()
	d.EnableSets = true
	m := model(f, d, mappings)
	e := &engine{}
	s := &sets{}
	service := graphql.New(view.New(e, view.Config{}), graphql.Config{Sets: s, Network: &network{}})
	f.Fuzz(func(t *testing.T, query, variables, source string, valid bool) {
		if valid && !json.Valid([]byte(source)) {
			source = "{}"
		}
		e.answer = anything(source)
		got := service.Execute(t.Context(), m, core.Principal{ID: "me"}, core.GraphQLRequest{Query: query, Variables: json.RawMessage(variables)})
		if valid || json.Valid([]byte(source)) { // what is no JSON stays none, and is nothing worse
			held(t, got)
			e.reads = true
			read := service.Execute(t.Context(), m, core.Principal{ID: "me"}, core.GraphQLRequest{Query: query, Variables: json.RawMessage(variables)})
			e.reads = false
			if !bytes.Equal(got.Body, read.Body) {
				t.Fatalf("where documents are read as they stand:\n%s\nelse:\n%s", read.Body, got.Body)
			}
		}
	})
}

// held fails unless a response is valid GraphQL.
func held(t *testing.T, got core.GraphQLResponse) {
	t.Helper()
	var response struct {
		Data   json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if !json.Valid(got.Body) {
		t.Fatalf("not JSON: %s", got.Body)
	}
	if err := json.Unmarshal(got.Body, &response); err != nil {
		t.Fatal(err)
	}
	if got.Rejected != (response.Data == nil) || got.Rejected && len(response.Errors) == 0 {
		t.Fatalf("refused is %t: %s", got.Rejected, got.Body)
	}
	for _, e := range response.Errors {
		if e.Message == "" || e.Extensions.Code == "" {
			t.Fatalf("an error without words: %s", got.Body)
		}
	}
}

// BenchmarkHits writes a page of 20 documents of 10 fields each.
func BenchmarkHits(b *testing.B) {
	m := model(b, plain(), mappings)
	e := &engine{}
	hits := make([]index.Hit, 20)
	for i := range hits {
		hits[i] = index.Hit{ID: "a1", Source: []byte(document), Sort: []json.RawMessage{json.RawMessage(`"a1"`)}}
	}
	e.answer = gives(20, hits...)
	service := graphql.New(view.New(e, view.Config{}), graphql.Config{})
	r := ask(`{analysis{hits(first:20){total edges{node{id analysisId studyId note count small open created tags experiment{platform} files{hits{edges{node{name}}}}}}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if got := service.Execute(b.Context(), m, anonymous, r); got.Rejected {
			b.Fatalf("%s", got.Body)
		}
	}
}
