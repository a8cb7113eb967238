package graphql_test

import (
	"context"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

func ExampleService_Execute() {
	ctx := context.Background()
	d := definition.Definition{ID: "analyses", DocumentType: "analysis", Index: "analyses", MaxAliases: 15}
	m, problem := catalogue.Load(ctx, d, source(mappings))
	if problem != nil {
		fmt.Println(problem)
		return
	}
	documents := &engine{answer: gives(1, index.Hit{ID: "a1", Source: []byte(document)})}
	service := graphql.New(view.New(documents, view.Config{}), graphql.Config{})
	got := service.Execute(ctx, m, core.Principal{}, core.GraphQLRequest{
		Query:     `query($study:JSON){analysis{hits(filters:$study){total edges{node{id studyId}}}}}`,
		Variables: []byte(`{"study":{"op":"in","content":{"fieldName":"studyId","value":["S1"]}}}`),
	})
	fmt.Println(string(got.Body))
	// Output:
	// {"data":{"analysis":{"hits":{"total":1,"edges":[{"node":{"id":"a1","studyId":"S1"}}]}}}}
}
