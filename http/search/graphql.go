package search

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/http/problem"
	"tutti/internal/core"
)

const (
	// contentTypeGraphQL is the media type of GraphQL responses (GraphQL over HTTP, "Media types").
	contentTypeGraphQL = "application/graphql-response+json"
	charsetUTF8        = "; charset=utf-8"
	// paramTag names the optional last path segment by which clients of Arranger label requests; it is ignored.
	paramTag = "tag"
)

// graphql handles GraphQL operations. What anonymous callers see depends on the access rule of the catalogue, or else on its
// default access.
type graphql struct {
	port     GraphQL
	basePath string
}

// ServeGraphQL executes an operation on a catalogue. The body of the request is one of POST /{catalogueId}/graphql.
func ServeGraphQL(w http.ResponseWriter, r *http.Request, port GraphQL, c *core.Catalogue) error {
	return graphql{port: port}.executeFromBody(w, r, c)
}

// executeFromBody executes the GraphQL operation of a POST body.
func (g graphql) executeFromBody(w http.ResponseWriter, r *http.Request, c *core.Catalogue) error {
	if chi.URLParam(r, paramTag) != "" {
		if _, err := api.PathParam(r, paramTag, paramTag); err != nil {
			return err
		}
	}
	operation, err := operationFromBody(r)
	if err != nil {
		return err
	}
	return g.execute(w, r, c, operation)
}

// executeFromQuery executes the GraphQL operation of a GET, which must not be a mutation.
func (g graphql) executeFromQuery(w http.ResponseWriter, r *http.Request, c *core.Catalogue) error {
	operation, err := g.operationFromQuery(r)
	if err != nil {
		return err
	}
	return g.execute(w, r, c, operation)
}

// execute executes an operation. Execution errors are in the response beside the data, with status 200. An operation that is
// rejected before execution is 400 in both media types, as in Arranger.
func (g graphql) execute(w http.ResponseWriter, r *http.Request, c *core.Catalogue, operation core.GraphQLRequest) error {
	caller, _ := api.CallerOf(r.Context())
	operation.Header, operation.Caller = r.Header, api.LimitCaller(r)
	response, err := g.port.Execute(r.Context(), c.ID, caller, operation)
	if err != nil {
		return err
	}
	if response.Release != nil {
		defer response.Release()
	}
	if response.RejectedMutation {
		w.Header().Set("Allow", http.MethodPost)
		return &core.Error{
			Code: problem.CodeMethodNotAllowed, Message: "mutations are not allowed with GET", Hint: "use " + http.MethodPost,
		}
	}
	status := http.StatusOK
	if response.Rejected {
		status = http.StatusBadRequest
		api.NoteError(r, core.NewError(core.CodeInvalid, "the GraphQL operation was rejected"))
	}
	api.WriteWhole(w, status, graphQLMedia(r.Header.Values("Accept"))+charsetUTF8, response.Body)
	return nil
}

// graphQLMedia returns the media type of the response: application/json, unless Accept names the other one with an equal or higher
// preference.
func graphQLMedia(accept []string) string {
	offers := []string{media.JSON, contentTypeGraphQL}
	if media.PreferenceFor(accept, contentTypeGraphQL).Rank == media.RankNamed {
		slices.Reverse(offers)
	}
	return media.Negotiate(accept, offers...)
}
