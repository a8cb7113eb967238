package graphql_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

func TestSelections(t *testing.T) {
	const shown = `"analysis":{"hits":{"edges":[{"node":`
	for _, c := range []struct{ name, query, variables, want string }{
		{
			"the order of the query", `{analysis{hits{edges{node{studyId id analysisId x:studyId}}}}}`, "",
			`{"data":{` + shown + `{"studyId":"S1","id":"a1","analysisId":"a1","x":"S1"}}]}}}}`,
		},
		{
			"fields of one key", `{analysis{hits{edges{node{experiment{platform}}}} hits{edges{node{id experiment{lab{city} platform}}}}}}`, "",
			`{"data":{` + shown + `{"experiment":{"platform":"ILLUMINA","lab":{"city":"Toronto"}},"id":"a1"}}]}}}}`,
		},
		{
			"fragments", `query{...r} fragment r on Root{analysis{hits{edges{node{... on analysisNode{id ...n} ... on Node{again:id} ...{studyId}}}}}} fragment n on analysisNode{id open}`, "",
			`{"data":{` + shown + `{"id":"a1","open":true,"again":"a1","studyId":"S1"}}]}}}}`,
		},
		{
			"skipped and included", `query q($yes:Boolean!,$no:Boolean=false){analysis{hits{edges{node{id @skip(if:$yes) studyId @include(if:$yes)
				open @include(if:$no) count @skip(if:false) @include(if:true) ...f @skip(if:$yes) ... @include(if:$no){note}}}}}} fragment f on analysisNode{tags}`, `{"yes":true}`,
			`{"data":{` + shown + `{"studyId":"S1","count":9007199254740993}}]}}}}`,
		},
		{
			"variables within values", `query q($study:String!,$n:Int=1){analysis{hits(first:$n,sort:[{fieldName:$study}],filters:{op:"in",content:{fieldName:$study,value:[$study,"x"]}}){edges{node{id}}}}}`, `{"study":"studyId"}`,
			`{"data":{` + shown + `{"id":"a1"}}]}}}}`,
		},
		{
			"one operation of several", `query a{__typename} query q{x:__typename}`, "", `{"data":{"x":"Root"}}`,
		},
		{"what is the configuration", `{hasValidConfig(documentType:"analysis",index:"analyses")  no:hasValidConfig(documentType:"analysis",index:"x")}`, "", `{"data":{"hasValidConfig":true,"no":false}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.engine.answer = gives(1, index.Hit{ID: "a1", Source: []byte(document)})
			name := ""
			if strings.Contains(c.query, "query q") {
				name = "q"
			}
			for range 2 { // the second time the query is known
				got := w.ask(core.GraphQLRequest{Query: c.query, OperationName: name, Variables: json.RawMessage(c.variables)})
				if got.Rejected || string(got.Body) != c.want {
					t.Errorf("got  %s\nwant %s", got.Body, c.want)
				}
			}
		})
	}
}

func TestDepthIsConfigured(t *testing.T) {
	w := newWorld(t, func(d *definition.Definition) { d.MaxDepth, d.MaxAliases = 4, 0 })
	w.answers(`{analysis{hits{total}} __schema{queryType{fields{type{name}}}}}`, mustAnswer(w))
	w.refuses(ask(`{analysis{hits{edges{node{id}}}}}`), wrong("the operation is 5 fields deep, at most 4 are allowed", "GRAPHQL_VALIDATION_FAILED", at("1", "1")))
	w.refuses(ask(`{a:__typename}`), wrong("the operation has 1 aliases, at most 0 are allowed", "GRAPHQL_VALIDATION_FAILED", at("1", "1")))
}

// mustAnswer executes a query that must succeed.
func mustAnswer(w *world) string {
	return string(w.ask(ask(`{analysis{hits{total}} __schema{queryType{fields{type{name}}}}}`)).Body)
}

// TestManyErrors: a response has at most 100 errors, and the number of the others.
func TestManyErrors(t *testing.T) {
	w := newWorld(t)
	hits := make([]index.Hit, 150)
	for i := range hits {
		hits[i] = index.Hit{ID: fmt.Sprint(i), Source: []byte(`{"studyId":{}}`)}
	}
	w.engine.answer = gives(150, hits...)
	got := w.ask(ask(`{analysis{hits(first:150){edges{node{id studyId}}}}}`))
	var answer struct {
		Errors []struct{ Message string }
		Data   struct {
			Analysis struct{ Hits struct{ Edges []any } }
		}
	}
	if err := json.Unmarshal(got.Body, &answer); err != nil {
		t.Fatal(err)
	}
	if n := len(answer.Errors); n != 100 || answer.Errors[99].Message != "51 more errors were omitted" || len(answer.Data.Analysis.Hits.Edges) != 150 {
		t.Errorf("%d errors, %v, %d edges", n, answer.Errors[len(answer.Errors)-1], len(answer.Data.Analysis.Hits.Edges))
	}
}

// TestModelsAreReplaced while both are in use.
func TestModelsAreReplaced(t *testing.T) {
	service := graphql.New(view.New(&engine{}, view.Config{}), graphql.Config{})
	var wait sync.WaitGroup
	for i := range 5 {
		m := model(t, plain(), fmt.Sprintf(`{"properties":{"f%d":{"type":"keyword"}}}`, i))
		for range 3 {
			wait.Go(func() {
				got := service.Execute(t.Context(), m, anonymous, ask(fmt.Sprintf(`{analysis{hits{edges{node{f%d}}}}}`, i)))
				if string(got.Body) != `{"data":{"analysis":{"hits":{"edges":[]}}}}` {
					t.Errorf("%s", got.Body)
				}
			})
		}
	}
	wait.Wait()
}

func TestNamesThatNoSchemaHas(t *testing.T) {
	service := graphql.New(view.New(&engine{}, view.Config{}), graphql.Config{})
	d := plain()
	d.DocumentType = "String"
	m := model(t, d, mappings)
	_, err := service.Accept(m)
	if core.CodeOf(err) != core.CodeInvalid || !strings.Contains(core.MessageOf(err), `the documentType "String" cannot be used`) {
		t.Errorf("got %v", err)
	}
	if got := service.Execute(t.Context(), m, anonymous, ask(`{__typename}`)); !got.Rejected || !json.Valid(got.Body) {
		t.Errorf("got %s", got.Body)
	}
	if text, err := service.Schema(model(t, plain(), mappings)); err != nil || !strings.Contains(text, "type analysisNode") {
		t.Errorf("got %.100s, %v", text, err)
	}
}
