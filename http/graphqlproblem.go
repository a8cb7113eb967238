package http

import (
	nethttp "net/http"
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

// onGraphQL adds what a GraphQL path has beside the others. The code is in the words of Apollo's server, by which clients tell
// that they need another token.
func (p problem) onGraphQL() problem {
	code := strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(p.Title))
	if p.Status == nethttp.StatusUnauthorized {
		code = "UNAUTHENTICATED"
	}
	p.graphQLFailure = &graphQLFailure{Errors: []graphQLError{{Message: p.Detail, Extensions: graphQLExtensions{Code: code}}}}
	return p
}

// onGraphQLSurface tells whether the request is for a GraphQL path of a catalogue.
func (h *Handler) onGraphQLSurface(r *nethttp.Request) bool {
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
