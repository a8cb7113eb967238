package federation_test

import (
	"context"
	"encoding/json"
	"fmt"

	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/federation"
)

func ExampleProbe() {
	d := definition.Definition{ID: "files", DocumentType: "file", Network: json.RawMessage(`{"remoteNodes":[
		{"displayName":"Montreal","documentType":"file","graphqlUrl":"https://montreal.example/graphql"},
		{"displayName":"Toronto","documentType":"file","graphqlUrl":"https://toronto.example/graphql"}]}`)}
	for _, node := range federation.Probe(context.Background(), d, federation.Config{Transport: hosts{
		"montreal.example": says(200, typeAnswer(map[string]string{"sex": "Aggregations"})),
		"toronto.example":  says(400, apolloOff),
	}}) {
		fmt.Println(node.Node, node.Fields, node.Err)
	}
	// Output:
	// Montreal 1 <nil>
	// Toronto 0 does not allow GraphQL introspection, by which its fields are discovered; the next discovery is when this server restarts
}
