package console

import (
	"context"
	"net/http"
	"net/url"

	"tutti/http/api"
	"tutti/http/explore"
	"tutti/http/search"
	"tutti/internal/core"
)

// queryView is the content of the page on which people write GraphQL queries for a catalogue.
type queryView struct {
	Base string
	*core.Catalogue
	// Endpoint is the path to which the page sends queries, Example the first one. Command is the start of the same request as a curl
	// command, up to its body.
	Endpoint, Example, Command string
}

// pageKey marks requests for a page outside the console's own paths, whose errors are pages as well.
type pageKey struct{}

// queryPage writes the page on which people write GraphQL queries for a catalogue.
func (s *cataloguePages) queryPage(w http.ResponseWriter, r *http.Request, c *core.Catalogue) {
	r = r.WithContext(context.WithValue(r.Context(), pageKey{}, true))
	s.guard(api.OptionalToken(), func(w http.ResponseWriter, r *http.Request) error {
		if err := api.RequireQuery(r, c); err != nil {
			return err
		}
		s.render(w, r, http.StatusOK, "query", page{Title: "Query " + c.ID, Active: "catalogues", Content: queryView{
			Base: s.base, Catalogue: c, Endpoint: s.link("catalogues", c.ID, "graphql"),
			Example: explore.Example(explore.DocumentName(c.DocumentType), c.Fields), Command: s.curl(r, c),
		}})
		return nil
	})(w, r)
}

// executeQuery executes a GraphQL operation as the caller whose token the cookie has: the API's own route ignores cookies.
func (s *cataloguePages) executeQuery(w http.ResponseWriter, r *http.Request) error {
	c, err := s.openCatalogue(r)
	if err != nil {
		return err
	}
	return search.ServeGraphQL(w, r, s.ports.GraphQL, c)
}

// curl returns a curl command that sends a GraphQL operation to a catalogue, up to its body.
func (s *cataloguePages) curl(r *http.Request, c *core.Catalogue) string {
	scheme, token := "http://", ""
	if isSecure(r) {
		scheme = "https://"
	}
	if s.auth {
		token = ` -H "Authorization: Bearer $TUTTI_TOKEN"`
	}
	return "curl " + scheme + r.Host + s.base + "/" + url.PathEscape(c.ID) + "/graphql" + token + " -H 'Content-Type: application/json' -d "
}
