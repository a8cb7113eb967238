package http

import (
	"errors"
	"net/http"
	"strings"
)

// graphQLFailure is what a problem of a GraphQL path has beside the others, for clients that look for errors there.
type graphQLFailure struct {
	Errors []graphQLError `json:"errors"`
}

type graphQLError struct {
	Message    string            `json:"message"`
	Extensions graphQLExtensions `json:"extensions"`
}

type graphQLExtensions struct {
	Code string `json:"code"`
}

// errPersistedQuery is that of a request with the hash of a query in its place (Apollo's "automatic persisted queries").
var errPersistedQuery = errors.New("persisted queries are not supported")

// withGraphQLMembers adds what a GraphQL path has beside the others. The code is in the words of Apollo's server, by which clients tell
// that they need another token, or must send a query that they named by its hash.
func (p problem) withGraphQLMembers(err error) problem {
	code := strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(p.Title))
	message := p.Detail
	switch {
	case p.Status == http.StatusUnauthorized:
		code = "UNAUTHENTICATED"
	case errors.Is(err, errPersistedQuery):
		code, message = "PERSISTED_QUERY_NOT_SUPPORTED", "PersistedQueryNotSupported"
	}
	p.graphQLFailure = &graphQLFailure{Errors: []graphQLError{{Message: message, Extensions: graphQLExtensions{Code: code}}}}
	return p
}

// onGraphQLSurface reports whether the request is for a GraphQL path of a catalogue.
func (h *Handler) onGraphQLSurface(r *http.Request) bool {
	path := r.URL.EscapedPath()
	if !h.isCataloguePath(path) {
		return false
	}
	segments := strings.Split(strings.TrimPrefix(path, h.cfg.BasePath+"/"), "/")
	if segments[0] != segmentGraphQL {
		segments = segments[1:]
	}
	return len(segments) > 0 && len(segments) <= 2 && segments[0] == segmentGraphQL
}
