package core

import (
	"encoding/json"
	"net/http"
)

// GraphQLRequest is one GraphQL operation of a client.
type GraphQLRequest struct {
	Query, OperationName string
	// Variables is a JSON object, or null, or nil.
	Variables json.RawMessage
	// ReadOnly is set if mutations are not allowed: GET.
	ReadOnly bool
	// Header are the headers of the client's request; a federation forwards those that its configuration lists. Nil for none.
	Header http.Header
}

// GraphQLResponse is the response to a GraphQLRequest.
type GraphQLResponse struct {
	// Body is a GraphQL response: {"data":…,"errors":…}.
	Body []byte
	// Rejected is set if nothing was executed: the request is not valid GraphQL, does not match the schema, exceeds a limit, or
	// has invalid variables. Body then has no data.
	Rejected bool
	// RejectedMutation is set if the operation is a mutation and GraphQLRequest.ReadOnly is set; Rejected is set then, too.
	RejectedMutation bool
	// Release, if not nil, returns Body to its pool; Body must not be used afterwards. Call it at most once.
	Release func()
}
