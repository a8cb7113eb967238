package search

import (
	"errors"
	"net/http"
	"strings"

	"tutti/http/problem"
)

// errPersistedQuery reports a request that has the hash of a query instead of the query (Apollo's "automatic persisted queries").
var errPersistedQuery = errors.New("persisted queries are not supported")

// withGraphQLMembers adds the member errors of GraphQL to a problem. It uses the codes of Apollo's server, because clients react to
// them: they refresh the token or send the full query.
func withGraphQLMembers(p problem.Problem, err error) problem.Problem {
	code := p.StatusName()
	message := p.Detail
	switch {
	case p.Status == http.StatusUnauthorized:
		code = "UNAUTHENTICATED"
	case errors.Is(err, errPersistedQuery):
		code, message = "PERSISTED_QUERY_NOT_SUPPORTED", "PersistedQueryNotSupported"
	}
	p.GraphQLMembers = &problem.GraphQLMembers{Errors: []problem.GraphQLError{{Message: message, Extensions: problem.GraphQLExtensions{Code: code}}}}
	return p
}

// isGraphQL reports whether the request is for a GraphQL path of a catalogue.
func (h *catalogues) isGraphQL(r *http.Request) bool {
	path := r.URL.EscapedPath()
	if !h.Owns(path) {
		return false
	}
	segments := strings.Split(strings.TrimPrefix(path, h.router.BasePath()+"/"), "/")
	if segments[0] != segmentGraphQL {
		segments = segments[1:]
	}
	return len(segments) > 0 && len(segments) <= 2 && segments[0] == segmentGraphQL
}
