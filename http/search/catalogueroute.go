package search

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"tutti/http/api"
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
	query  api.Parameters
	answer catalogueFunc
	// path returns the path that this route has for a catalogue.
	path func(*core.Catalogue) string
}

// handle adds a route below the ids of all catalogues and without an id. A failed catalogue answers before anything else is
// checked, tokens included: its error is public.
func (h *catalogues) handle(c catalogueRoute) {
	guarded := api.RequireAccess(api.OptionalToken(), func(w http.ResponseWriter, r *http.Request) {
		if err := h.answer(w, r, c); err != nil {
			api.Fail(w, r, err)
		}
	})
	next := h.unlessFailed(guarded)
	h.router.HandleFunc(c.method, patternCatalogue+c.below, next)
	h.router.HandleFunc(c.method, "/"+c.below, next)
}

// unlessFailed returns a handler that calls next for available catalogues and answers for failed ones.
func (h *catalogues) unlessFailed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		if !h.Owns(path) {
			h.router.AnswerUnrouted(w, r)
			return
		}
		if failed := h.failedAt(path); failed != nil {
			answerFailed(w, r, failed)
			return
		}
		next(w, r)
	}
}

// answer answers a request for the catalogue of its path.
func (h *catalogues) answer(w http.ResponseWriter, r *http.Request, route catalogueRoute) error {
	for _, name := range []string{"Accept", api.HeaderAuthorization} {
		w.Header().Add("Vary", name)
	}
	if api.Negotiate(r.Header.Values("Accept"), route.offers...) == "" {
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
	err = route.answer(w, r, c)
	if core.CodeOf(err) == core.CodeNotFound {
		// It may have failed after it was looked up.
		if failed := h.failedAt(r.URL.EscapedPath()); failed != nil {
			answerFailed(w, r, failed)
			return nil
		}
	}
	if core.CodeOf(err) == core.CodeInternal && r.Context().Err() != nil {
		// The client is gone: this keeps disconnects from being logged as internal errors.
		return core.WrapError(core.CodeUnavailable, "the request ended before it was answered", err)
	}
	return err
}

// resolve returns the catalogue of a request's path: the one it names, else the only one.
func (h *catalogues) resolve(r *http.Request, route catalogueRoute) (*core.Catalogue, error) {
	set := h.answers.current().set
	if chi.URLParam(r, paramCatalogue) != "" {
		return h.named(r, set)
	}
	return h.only(set, route.path)
}

// Owns reports whether a path can be a search route. A path that begins like another route is not one, whichever pattern
// the router matches: /jobs/graphql is the job with the id graphql.
func (h *catalogues) Owns(path string) bool {
	rest, ok := strings.CutPrefix(path, h.router.BasePath()+"/")
	segment, _, _ := strings.Cut(rest, "/")
	return ok && segment != "" && (!h.router.Begins(segment) || segment == segmentGraphQL || segment == segmentDownload)
}

// Override returns what answers the paths of a failed catalogue.
func (h *catalogues) Override(path string) http.HandlerFunc {
	failed := h.failedAt(path)
	if failed == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) { answerFailed(w, r, failed) }
}
