package schema_test

import (
	"context"
	"fmt"

	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql/schema"
)

func ExampleBuild() {
	d := definition.Definition{ID: "analyses", DocumentType: "analysis", Index: "analyses"}
	m, problem := catalogue.Load(context.Background(), d, fixed(`{"properties":{
		"study-id":{"type":"keyword"},"files":{"type":"nested","properties":{"fileSize":{"type":"long"}}}}}`))
	if problem != nil {
		fmt.Println(problem.Message)
		return
	}
	s, err := schema.Build(m, schema.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	node, _ := s.Objects["analysisNode"]
	fmt.Println(node.Members["study_id"].Key, node.Members["files"].Type, node.Members["files"].Node)
	for _, f := range s.AST.Types["analysisAggregations"].Fields {
		name, _ := s.Aggregated[f.Name]
		fmt.Println(f.Name, f.Type, name)
	}
	// Output:
	// study-id analysisFiles analysisFilesNode
	// files__fileSize NumericAggregations files.fileSize
	// study_id Aggregations study-id
}
