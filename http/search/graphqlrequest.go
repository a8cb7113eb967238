package search

import (
	"bytes"
	"encoding/json"
	"net/http"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/internal/core"
)

// operationFromBody reads the operation of a POST body (GraphQL over HTTP, "POST"). Unknown members are ignored: clients of
// Arranger also send a name of the request.
func operationFromBody(r *http.Request) (core.GraphQLRequest, error) {
	if _, err := media.Declared(r.Header, media.JSON); err != nil {
		return core.GraphQLRequest{}, err
	}
	body, err := api.ReadBody(r)
	if err != nil {
		return core.GraphQLRequest{}, err
	}
	const hint = `send a JSON object such as {"query":"{ __typename }"}`
	switch trimmed := bytes.Trim(body, " \t\r\n"); {
	case len(trimmed) == 0:
		return core.GraphQLRequest{}, &core.Error{Code: core.CodeInvalid, Message: "the body is empty", Hint: hint}
	case trimmed[0] == '[':
		return core.GraphQLRequest{}, &core.Error{
			Code: core.CodeInvalid, Message: "the body is an array; batched operations are not supported",
			Hint: "send each operation in its own request; one operation may select many fields",
		}
	}
	members, err := api.DecodeObject(body)
	if err != nil {
		return core.GraphQLRequest{}, err
	}
	var operation core.GraphQLRequest
	if operation.Query, err = members.Text("query"); err != nil {
		return core.GraphQLRequest{}, err
	}
	if operation.Query == "" {
		missing := &core.Error{Code: core.CodeInvalid, Message: "member query of the body is missing", Hint: hint}
		if isPersisted(members["extensions"]) {
			missing.Err = errPersistedQuery
		}
		return core.GraphQLRequest{}, missing
	}
	if operation.OperationName, err = members.Text("operationName"); err != nil {
		return core.GraphQLRequest{}, err
	}
	for _, name := range []string{"variables", "extensions"} {
		if members.Has(name) && members[name][0] != '{' {
			return core.GraphQLRequest{}, api.MemberError(name, "must be an object")
		}
	}
	if members.Has("variables") {
		operation.Variables = members["variables"]
	}
	return operation, nil
}

// isPersisted reports whether the extensions of a request have a persistedQuery.
func isPersisted(extensions json.RawMessage) bool {
	var named struct {
		PersistedQuery map[string]json.RawMessage `json:"persistedQuery"`
	}
	return len(extensions) > 0 && json.Unmarshal(extensions, &named) == nil && len(named.PersistedQuery) > 0
}

// operationFromQuery reads the operation of a GET from its query (GraphQL over HTTP, "GET").
func (g graphql) operationFromQuery(r *http.Request) (core.GraphQLRequest, error) {
	q, err := api.QueryOf(r)
	if err != nil {
		return core.GraphQLRequest{}, err
	}
	operation := core.GraphQLRequest{ReadOnly: true}
	if operation.Query, err = q.Unicode("query"); err != nil {
		return core.GraphQLRequest{}, err
	}
	if operation.Query == "" {
		missing := &core.Error{
			Code: core.CodeInvalid, Message: "query parameter query is missing",
			Hint: "send the GraphQL document as query, or POST a JSON object that has it; see " + g.basePath + "/api-docs",
		}
		if given, err := q.Text("extensions"); err == nil && isPersisted(json.RawMessage(given)) {
			missing.Err = errPersistedQuery
		}
		return core.GraphQLRequest{}, missing
	}
	if operation.OperationName, err = q.Unicode("operationName"); err != nil {
		return core.GraphQLRequest{}, err
	}
	for _, name := range []string{"variables", "extensions"} {
		given, err := q.Unicode(name)
		if err != nil {
			return core.GraphQLRequest{}, err
		}
		if given == "" || given == "null" {
			continue
		}
		if _, err := api.DecodeObjectOf("query parameter "+name, []byte(given)); err != nil {
			return core.GraphQLRequest{}, err
		}
		if name == "variables" {
			operation.Variables = json.RawMessage(given)
		}
	}
	return operation, nil
}
