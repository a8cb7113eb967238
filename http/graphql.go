package http

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"tutti/internal/core"
)

const (
	// contentTypeGraphQL is the media type of GraphQL responses (GraphQL over HTTP, "Media types").
	contentTypeGraphQL = "application/graphql-response+json"
	charsetUTF8        = "; charset=utf-8"
	// paramTag names the segment behind a GraphQL path that clients of Arranger put there to tell their requests apart.
	paramTag = "tag"
)

// routeSearch routes GraphQL and downloads (CONTRACT section 5). The catalogue's access rule, or its default access without one,
// says what is seen without a token.
func (h *Handler) routeSearch() {
	// By POST the query string says nothing: clients put names of operations there, for the logs of proxies.
	graphql := catalogueRoute{
		method: http.MethodPost, below: segmentGraphQL, offers: []string{contentTypeJSON, contentTypeGraphQL},
		query: ignoreParams(), answer: h.executeFromBody, path: graphqlPath,
	}
	h.handleCatalogue(graphql)
	graphql.below += "/{" + paramTag + "}"
	h.handleCatalogue(graphql)
	graphql.method, graphql.below = http.MethodGet, segmentGraphQL
	graphql.query, graphql.answer = allowParams("query", "operationName", "variables", "extensions"), h.executeFromQuery
	h.handleCatalogue(graphql)

	h.handleCatalogue(catalogueRoute{
		method: http.MethodPost, below: segmentDownload, offers: downloadOffers(),
		query: allowParams(), answer: h.download, path: downloadPath,
	})
}

// executeFromBody answers a GraphQL operation in a body.
func (h *Handler) executeFromBody(w http.ResponseWriter, r *http.Request, c *core.Catalogue) error {
	if chi.URLParam(r, paramTag) != "" {
		if _, err := pathParam(r, paramTag, paramTag); err != nil {
			return err
		}
	}
	operation, err := h.operationFromBody(r)
	if err != nil {
		return err
	}
	return h.execute(w, r, c, operation)
}

// executeFromQuery answers a GraphQL operation in the query of a GET, which changes nothing.
func (h *Handler) executeFromQuery(w http.ResponseWriter, r *http.Request, c *core.Catalogue) error {
	operation, err := h.operationFromQuery(r)
	if err != nil {
		return err
	}
	if isMutation(operation.Query, operation.OperationName) {
		w.Header().Set("Allow", http.MethodPost)
		return &core.Error{
			Code: codeMethodNotAllowed, Message: "mutations are not allowed with GET", Hint: "use " + http.MethodPost,
		}
	}
	return h.execute(w, r, c, operation)
}

// execute answers an operation. What fails while it is executed is in the response beside the data, with status 200; one that is
// refused as a whole is 400 in either media type, as existing clients of Arranger have seen it.
func (h *Handler) execute(w http.ResponseWriter, r *http.Request, c *core.Catalogue, operation core.GraphQLRequest) error {
	caller, _ := callerOf(r.Context())
	operation.Header = r.Header
	response, err := h.ports.GraphQL.Execute(r.Context(), c.ID, caller, operation)
	if err != nil {
		return err
	}
	if response.Release != nil {
		defer response.Release()
	}
	status := http.StatusOK
	if response.Rejected {
		status = http.StatusBadRequest
		exchangeOf(r.Context()).err = core.NewError(core.CodeInvalid, "the GraphQL operation was refused")
	}
	writeWhole(w, status, graphQLMedia(r.Header.Values("Accept"))+charsetUTF8, response.Body)
	return nil
}

// graphQLMedia returns the media type to answer with: JSON, which every client knows, unless the other is named and liked no
// less.
func graphQLMedia(accept []string) string {
	offers := []string{contentTypeJSON, contentTypeGraphQL}
	if preferenceFor(accept, contentTypeGraphQL).rank == rankNamed {
		slices.Reverse(offers)
	}
	return negotiate(accept, offers...)
}
