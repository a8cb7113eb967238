package core

import "encoding/json"

// GraphQLRequest is one GraphQL operation as a client sends it.
type GraphQLRequest struct {
	Query, OperationName string
	// Variables is a JSON object, or null, or nil.
	Variables json.RawMessage
	// ReadOnly is set where mutations are not allowed: GET.
	ReadOnly bool
}

// GraphQLResponse is what answers it.
type GraphQLResponse struct {
	// Body is a GraphQL response: {"data":…,"errors":…}.
	Body []byte
	// Refused is set when nothing was executed: the request is no GraphQL, does not fit the schema, is over a limit, or its
	// variables are not what it says. Body has no data then.
	Refused bool
}
