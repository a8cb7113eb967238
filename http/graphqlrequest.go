package http

import (
	"bytes"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"tutti/internal/core"
)

// operationFromBody reads the operation of a body (GraphQL over HTTP, "POST"). Members that it does not have there are ignored:
// clients of Arranger send their names for requests beside them.
func (h *Handler) operationFromBody(r *http.Request) (core.GraphQLRequest, error) {
	if _, err := declared(r.Header, contentTypeJSON); err != nil {
		return core.GraphQLRequest{}, err
	}
	body, err := h.readBody(r)
	if err != nil {
		return core.GraphQLRequest{}, err
	}
	const hint = `send a JSON object such as {"query":"{ __typename }"}`
	switch trimmed := bytes.Trim(body, " \t\r\n"); {
	case len(trimmed) == 0:
		return core.GraphQLRequest{}, &core.Error{Code: core.CodeInvalid, Message: "the body is empty", Hint: hint}
	case trimmed[0] == '[':
		return core.GraphQLRequest{}, &core.Error{
			Code: core.CodeInvalid, Message: "the body is an array, and batches of operations are not supported",
			Hint: "send each operation by itself; one operation may ask for many fields",
		}
	}
	members, err := decodeObject(body)
	if err != nil {
		return core.GraphQLRequest{}, err
	}
	var operation core.GraphQLRequest
	if operation.Query, err = members.text("query"); err != nil {
		return core.GraphQLRequest{}, err
	}
	if operation.Query == "" {
		missing := &core.Error{Code: core.CodeInvalid, Message: "member query of the body is missing", Hint: hint}
		if isPersisted(members["extensions"]) {
			missing.Err = errPersistedQuery
		}
		return core.GraphQLRequest{}, missing
	}
	if operation.OperationName, err = members.text("operationName"); err != nil {
		return core.GraphQLRequest{}, err
	}
	for _, name := range []string{"variables", "extensions"} {
		if members.has(name) && members[name][0] != '{' {
			return core.GraphQLRequest{}, memberError(name, "must be an object")
		}
	}
	if members.has("variables") {
		operation.Variables = members["variables"]
	}
	return operation, nil
}

// isPersisted reports whether a request names a query by its hash.
func isPersisted(extensions json.RawMessage) bool {
	var named struct {
		PersistedQuery map[string]json.RawMessage `json:"persistedQuery"`
	}
	return len(extensions) > 0 && json.Unmarshal(extensions, &named) == nil && len(named.PersistedQuery) > 0
}

// operationFromQuery reads the operation of the query of a GET (GraphQL over HTTP, "GET").
func (h *Handler) operationFromQuery(r *http.Request) (core.GraphQLRequest, error) {
	q, err := queryOf(r)
	if err != nil {
		return core.GraphQLRequest{}, err
	}
	operation := core.GraphQLRequest{ReadOnly: true}
	if operation.Query, err = q.unicode("query"); err != nil {
		return core.GraphQLRequest{}, err
	}
	if operation.Query == "" {
		missing := &core.Error{
			Code: core.CodeInvalid, Message: "query parameter query is missing",
			Hint: "give the GraphQL document as query, or POST a JSON object that has it; see " + h.cfg.BasePath + pathDocs,
		}
		if given, err := q.text("extensions"); err == nil && isPersisted(json.RawMessage(given)) {
			missing.Err = errPersistedQuery
		}
		return core.GraphQLRequest{}, missing
	}
	if operation.OperationName, err = q.unicode("operationName"); err != nil {
		return core.GraphQLRequest{}, err
	}
	for _, name := range []string{"variables", "extensions"} {
		given, err := q.unicode(name)
		if err != nil {
			return core.GraphQLRequest{}, err
		}
		if given == "" || given == "null" {
			continue
		}
		if _, err := decodeObjectOf("query parameter "+name, []byte(given)); err != nil {
			return core.GraphQLRequest{}, err
		}
		if name == "variables" {
			operation.Variables = json.RawMessage(given)
		}
	}
	return operation, nil
}

// unicode returns the one value of name as text does; one that is not UTF-8 is CodeInvalid.
func (q query) unicode(name string) (string, error) {
	v, err := q.text(name)
	if err == nil && !utf8.ValidString(v) {
		err = core.NewError(core.CodeInvalid, "query parameter "+name+" is not UTF-8")
	}
	return v, err
}
