package core

import (
	"encoding/json"
	"net/http"
)

// GraphQLRequest is one GraphQL operation as a client sends it.
type GraphQLRequest struct {
	Query, OperationName string
	// Variables is a JSON object, or null, or nil.
	Variables json.RawMessage
	// ReadOnly is set where mutations are not allowed: GET.
	ReadOnly bool
	// Header are the headers of the client's request, of which a federation hands those on that its configuration names; nil
	// for none.
	Header http.Header
}

// GraphQLResponse is what answers it.
type GraphQLResponse struct {
	// Body is a GraphQL response: {"data":…,"errors":…}.
	Body []byte
	// Rejected is set when nothing was executed: the request is no GraphQL, does not fit the schema, is over a limit, or its
	// variables are not what it says. Body has no data then.
	Rejected bool
	// Release, where it is not nil, returns Body back to who made it: nobody reads it any more. It is called once, or never.
	Release func()
}
