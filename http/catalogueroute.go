package http

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"tutti/internal/core"
)

// patternCatalogue is how the patterns of the routes below a catalogue begin.
const patternCatalogue = "/{" + paramCatalogue + "}/"

// catalogueFunc answers a request about a catalogue, or returns the error to answer with; not both.
type catalogueFunc func(http.ResponseWriter, *http.Request, *core.Catalogue) error

// catalogueRoute is a route of each catalogue, and of the only one without its id.
type catalogueRoute struct {
	method string
	// below is the pattern behind the id of a catalogue.
	below string
	// offers are the media types that are answered.
	offers []string
	query  parameters
	answer catalogueFunc
	// path returns the path that this route has for a catalogue.
	path func(*core.Catalogue) string
}

// handleCatalogue adds a route below the ids of all catalogues and without an id. A failed catalogue answers before anything else is
// checked, tokens included: its error is public.
func (h *Handler) handleCatalogue(c catalogueRoute) {
	guarded := h.requireAccess(optionalToken(), func(w http.ResponseWriter, r *http.Request) {
		if err := h.answerCatalogue(w, r, c); err != nil {
			h.fail(w, r, err)
		}
	})
	next := h.unlessCatalogueFailed(guarded)
	h.router.MethodFunc(c.method, h.cfg.BasePath+patternCatalogue+c.below, next)
	h.router.MethodFunc(c.method, h.cfg.BasePath+"/"+c.below, next)
}

// unlessCatalogueFailed returns a handler that calls next for available catalogues and answers for failed ones.
func (h *Handler) unlessCatalogueFailed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		if !h.isCataloguePath(path) {
			h.answerUnrouted(w, r)
			return
		}
		if failed := h.failedCatalogueAt(path); failed != nil {
			h.answerFailedCatalogue(w, r, failed)
			return
		}
		next(w, r)
	}
}

// answerCatalogue answers a request for the catalogue of its path.
func (h *Handler) answerCatalogue(w http.ResponseWriter, r *http.Request, route catalogueRoute) error {
	for _, name := range []string{"Accept", headerAuthorization} {
		w.Header().Add("Vary", name)
	}
	if negotiate(r.Header.Values("Accept"), route.offers...) == "" {
		return notAcceptable(route.offers)
	}
	if err := route.query.check(r); err != nil {
		return err
	}
	c, err := h.resolveCatalogue(r, route)
	if err != nil {
		return err
	}
	if err := h.requireQuery(r, c); err != nil {
		return err
	}
	err = route.answer(w, r, c)
	if core.CodeOf(err) == core.CodeNotFound {
		// It may have failed after it was looked up.
		if failed := h.failedCatalogueAt(r.URL.EscapedPath()); failed != nil {
			h.answerFailedCatalogue(w, r, failed)
			return nil
		}
	}
	if core.CodeOf(err) == core.CodeInternal && r.Context().Err() != nil {
		// The client is gone: this keeps disconnects from being logged as internal errors.
		return core.WrapError(core.CodeUnavailable, "the request ended before it was answered", err)
	}
	return err
}

// resolveCatalogue returns the catalogue of a request's path: the one it names, else the only one.
func (h *Handler) resolveCatalogue(r *http.Request, route catalogueRoute) (*core.Catalogue, error) {
	set := h.catalogues.current().set
	if chi.URLParam(r, paramCatalogue) != "" {
		return h.pathCatalogue(r, set)
	}
	return h.onlyCatalogue(set, route.path)
}

// isCataloguePattern reports whether a pattern without the base path is that of a route below a catalogue.
func isCataloguePattern(pattern string) bool { return strings.HasPrefix(pattern, patternCatalogue) }

// isCataloguePath reports whether a path can be a search route. A path that begins like another route is not one, whichever pattern
// the router matches: /jobs/graphql is the job with the id graphql.
func (h *Handler) isCataloguePath(path string) bool {
	rest, ok := strings.CutPrefix(path, h.cfg.BasePath+"/")
	segment, _, _ := strings.Cut(rest, "/")
	return ok && segment != "" && (!h.routed[segment] || segment == segmentGraphQL || segment == segmentDownload)
}
