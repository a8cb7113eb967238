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

// TestExponentialQueries: queries that expand exponentially are rejected quickly.
func TestExponentialQueries(t *testing.T) {
	doubling := func(n int) string {
		var b strings.Builder
		b.WriteString(`{__type(name:"Root"){...f0}}`)
		for i := range n {
			fmt.Fprintf(&b, " fragment f%d on __Type{a%[1]d:ofType{...f%[2]d} b%[1]d:ofType{...f%[2]d}}", i, i+1)
		}
		fmt.Fprintf(&b, " fragment f%d on __Type{name}", n)
		return b.String()
	}
	nested := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " fragment f%d on __Type{ofType{...f%[2]d} ofType{...f%[2]d}}", i, i+1)
		}
		fmt.Fprintf(&b, " fragment f%d on __Type{name}", n)
		return b.String()
	}
	wide := func(n int, each string) string {
		return `{analysis{hits{edges{node{` + strings.Repeat(each, n) + `}}}}}`
	}
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, c := range []struct{ name, query, message string }{
		{"aliases", `{` + numbered(16, "a%d:__typename ") + `}`, "the operation has 16 aliases, at most 15 are allowed"},
		{"aliases in fragments", `{...f ...f ...f} fragment f on Root{` + numbered(6, "a%d:__typename ") + `}`, "the operation has 18 aliases, at most 15 are allowed"},
		{"a field over and over", wide(30_000, "id "), "the operation requests 30004 fields, at most 20000 are allowed"},
		{"fragments that double", doubling(100), "the operation has billions of aliases, at most 15 are allowed"},
		{"fragments that double without aliases", `{__type(name:"Root"){...f0}}` + nested(100), "the operation requests billions of fields, at most 20000 are allowed"},
		{"depth", `{analysis{hits{edges{node` + strings.Repeat("{files", 200) + strings.Repeat("}", 200) + `}}}}`, "the operation is 204 fields deep, at most 100 are allowed"},
		{"depth that is no query", strings.Repeat("{a", 2000), "exceeded maximum nesting depth of 1000"},
		{"too many words", `{` + strings.Repeat("a ", 100_001) + `}`, "exceeded token limit of 100000"},
		{"too long", `{__typename #` + strings.Repeat("x", 1<<20) + "\n}", "the query has 1048591 bytes, at most 1048576 are allowed"},
		{"fragments", `{__typename}` + numbered(201, " fragment f%d on Root{__typename}"), "the query has 201 fragments, at most 200 are allowed"},
		{"operations", numbered(51, " query q%d{__typename}"), "the query has 51 operations, at most 50 are allowed"},
		{"variables", `query(` + numbered(501, "$v%d:Int ") + `){__typename}`, "the operation has 501 variables, at most 500 are allowed"},
		{"a chain of wide fragments", `{...f0} ` + numbered(150, "fragment f%d on Root{"+strings.Repeat("__typename ", 100)+"...g} ") + `fragment g on Root{` + strings.Repeat("__typename ", 1000) + `}`, "are too large in total"},
		{"unknown names", `{analysis{hits{edges{node{` + numbered(15_000, "studyId%d ") + `}}}}}`, `Did you mean`},
		{"lists of introspection", `{__schema{types{fields{type{fields{type{fields{name}}}}}}}}`, "Maximum introspection depth exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			got := w.ask(core.GraphQLRequest{Query: c.query})
			if !got.Rejected || !json.Valid(got.Body) || !strings.Contains(string(got.Body), c.message) {
				t.Errorf("%.300s", got.Body)
			}
		})
	}
	t.Run("what is large and right", func(t *testing.T) {
		w := newWorld(t)
		if got := w.ask(core.GraphQLRequest{Query: wide(19_000, "id ")}); got.Rejected {
			t.Errorf("%.300s", got.Body)
		}
	})
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
	err := service.Accept(m)
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
