package search

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/internal/core"
)

// patternCatalogue is the pattern prefix of routes under a catalogue id.
const patternCatalogue = "/{" + paramCatalogue + "}/"

// catalogueFunc writes the response about a catalogue, or returns an error; not both.
type catalogueFunc func(http.ResponseWriter, *http.Request, *core.Catalogue) error

// catalogueRoute is a route under each catalogue id, and without an id if there is exactly one catalogue.
type catalogueRoute struct {
	method string
	// below is the pattern after the catalogue id.
	below string
	// offers are the media types of the response.
	offers  []string
	query   api.Parameters
	handler catalogueFunc
	// path returns the path of this route for a catalogue, without the base path.
	path func(*core.Catalogue) string
	// page is what browsers get, nil for the same as other clients.
	page QueryPage
}

// handle adds a route under the ids of all catalogues and without an id. The error of a failed catalogue is public, so it is
// returned before authentication and all other checks.
func (h *catalogues) handle(c catalogueRoute) {
	guarded := api.RequireAccess(api.OptionalToken(), func(w http.ResponseWriter, r *http.Request) {
		if err := h.serve(w, r, c); err != nil {
			api.Fail(w, r, err)
		}
	})
	next := h.unlessFailed(func(w http.ResponseWriter, r *http.Request) {
		if shown := h.shown(r, c); shown != nil {
			w.Header().Add("Vary", "Accept")
			c.page(w, r, shown)
			return
		}
		guarded(w, r)
	})
	h.router.HandleFunc(c.method, patternCatalogue+c.below, next)
	h.router.HandleFunc(c.method, "/"+c.below, next)
}

// shown returns the catalogue whose page a request is for, nil if it is for data: only a client that prefers HTML to all that the route
// offers, which Accept: */* does not, and that sends no parameters gets a page.
func (h *catalogues) shown(r *http.Request, route catalogueRoute) *core.Catalogue {
	offers := append(slices.Clip(route.offers), media.HTML)
	if route.page == nil || r.URL.RawQuery != "" || media.Negotiate(r.Header.Values("Accept"), offers...) != media.HTML {
		return nil
	}
	c, err := h.resolve(r, route)
	if err != nil || !c.GraphQLIntrospection {
		return nil
	}
	return c
}

// unlessFailed returns a handler that calls next for available catalogues, and writes the error of failed ones.
func (h *catalogues) unlessFailed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		if !h.Owns(path) {
			h.router.ServeUnrouted(w, r)
			return
		}
		if failed := h.failedAt(path); failed != nil {
			writeFailed(w, r, failed)
			return
		}
		next(w, r)
	}
}

// serve checks the request, resolves its catalogue and calls route.handler.
func (h *catalogues) serve(w http.ResponseWriter, r *http.Request, route catalogueRoute) error {
	for _, name := range []string{"Accept", api.HeaderAuthorization} {
		w.Header().Add("Vary", name)
	}
	if media.Negotiate(r.Header.Values("Accept"), route.offers...) == "" {
		return api.NotAcceptable(route.offers)
	}
	if err := route.query.Check(r); err != nil {
		return err
	}
	c, err := h.resolve(r, route)
	if err != nil {
		return err
	}
	if err := api.RequireQuery(r, c); err != nil {
		return err
	}
	err = route.handler(w, r, c)
	if core.CodeOf(err) == core.CodeNotFound {
		// The catalogue may have failed after resolve.
		if failed := h.failedAt(r.URL.EscapedPath()); failed != nil {
			writeFailed(w, r, failed)
			return nil
		}
	}
	if core.CodeOf(err) == core.CodeInternal && r.Context().Err() != nil {
		// The client disconnected; this is not an internal error.
		return core.WrapError(core.CodeUnavailable, "the request was cancelled before the response", err)
	}
	return err
}

// resolve returns the catalogue of a request's path: the one it names, else the only one.
func (h *catalogues) resolve(r *http.Request, route catalogueRoute) (*core.Catalogue, error) {
	set := h.responses.current().set
	if chi.URLParam(r, paramCatalogue) != "" {
		return h.named(r, set)
	}
	return h.only(set, route.path)
}

// Owns reports whether a path belongs to a search route and not to another route, whichever pattern the router matches:
// /jobs/graphql is the job with the id graphql.
func (h *catalogues) Owns(path string) bool {
	rest, ok := strings.CutPrefix(path, h.router.BasePath()+"/")
	segment, _, _ := strings.Cut(rest, "/")
	return ok && segment != "" && (!h.router.Begins(segment) || segment == segmentGraphQL || segment == segmentDownload)
}

// Override returns the handler for a path of a failed catalogue, nil for other paths.
func (h *catalogues) Override(path string) http.HandlerFunc {
	failed := h.failedAt(path)
	if failed == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) { writeFailed(w, r, failed) }
}
