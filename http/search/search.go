package search

import (
	_ "embed"
	"net/http"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/http/problem"
	"tutti/internal/core"
)

//go:embed openapi.yaml
var document []byte

// Surface serves introspection (CONTRACT section 2), GraphQL and downloads (section 5).
type Surface struct {
	ports Ports
	page  QueryPage
}

// QueryPage writes the page on which people write GraphQL queries for a catalogue, or the error why the caller may not.
type QueryPage func(w http.ResponseWriter, r *http.Request, c *core.Catalogue)

// New returns a Surface that uses ports.
func New(ports Ports) *Surface { return &Surface{ports: ports} }

// ShowQueries sets the page that browsers get at the GraphQL paths of catalogues with GraphQL introspection. It must be called before
// Register; without it they get what other clients get.
func (s *Surface) ShowQueries(page QueryPage) { s.page = page }

// OpenAPI implements api.Surface.
func (s *Surface) OpenAPI() []byte { return document }

// Register implements api.Surface.
func (s *Surface) Register(r *api.Router) {
	c := &catalogues{router: r, responses: &responseCache{port: s.ports.Catalogues, basePath: r.BasePath()}, data: s.ports.Data}
	r.UseWildcards(c)
	r.ExtendProblems(func(p problem.Problem, req *http.Request, err error) problem.Problem {
		if c.isGraphQL(req) {
			return withGraphQLMembers(p, err)
		}
		return p
	})
	c.register(r)

	// A POST ignores its query string: clients send names of operations there, for the logs of proxies.
	g := graphql{port: s.ports.GraphQL, basePath: r.BasePath()}
	route := catalogueRoute{
		method: http.MethodPost, below: segmentGraphQL, offers: []string{media.JSON, contentTypeGraphQL},
		query: api.IgnoreParams(), handler: g.executeFromBody, path: graphqlPath,
	}
	c.handle(route)
	route.below += "/{" + paramTag + "}"
	c.handle(route)
	route.method, route.below = http.MethodGet, segmentGraphQL
	route.query, route.handler = api.StrictParams(), g.executeFromQuery
	route.page = s.page
	c.handle(route)

	c.handle(catalogueRoute{
		method: http.MethodPost, below: segmentDownload, offers: downloadOffers(),
		query: api.StrictParams(), handler: downloads{s.ports.Downloads}.download, path: downloadPath,
	})
}
