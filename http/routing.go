package http

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"tutti/internal/core"
)

// routeRaw makes chi route on the escaped path, so that an escaped slash stays inside its segment. chi alone takes the
// decoded path whenever its default escaping is the one received, and a handler could not tell what to decode.
func routeRaw(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rctx := chi.RouteContext(r.Context()); rctx != nil {
			rctx.RoutePath = r.URL.EscapedPath()
			if r.Method == http.MethodHead {
				rctx.RouteMethod = http.MethodGet
			}
		}
		next.ServeHTTP(w, r)
	})
}

// pathParam returns a path parameter, percent-decoded once and checked. what names it in the message.
func pathParam(r *http.Request, name, what string) (string, error) {
	value, err := url.PathUnescape(chi.URLParam(r, name))
	if err != nil {
		return "", core.WrapError(core.CodeInvalid, what+" has a malformed percent escape", err)
	}
	if err := core.ValidID(what, value); err != nil {
		return "", err
	}
	return value, nil
}

// answerUnrouted answers a request without a route: with the error of a failed catalogue below its paths, else 405 if the path has
// other methods, else 404.
func (h *Handler) answerUnrouted(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	failed := h.failedCatalogueAt(path)
	if allowed := h.allowed(path); len(allowed) > 0 && (failed == nil || !h.isCataloguePath(path)) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		h.fail(w, r, &core.Error{
			Code: codeMethodNotAllowed, Message: "this path does not support this method",
			Hint: "use " + strings.Join(allowed, ", "),
		})
		return
	}
	if failed != nil {
		h.answerFailedCatalogue(w, r, failed)
		return
	}
	if strings.HasSuffix(path, "/") && h.endsInParameter(r.Method, path+"-") {
		h.fail(w, r, core.NewError(core.CodeInvalid, "the last segment of the path is empty"))
		return
	}
	h.fail(w, r, &core.Error{
		Code: core.CodeNotFound, Message: "there is nothing at this path",
		Hint: "every path is in " + h.cfg.BasePath + "/openapi.json",
	})
}

// allowed lists the methods that are routed at path.
func (h *Handler) allowed(path string) []string {
	var methods []string
	for _, m := range []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	} {
		pattern := h.router.Find(chi.NewRouteContext(), m, path)
		if pattern == "" || isCataloguePattern(pattern[len(h.cfg.BasePath):]) && !h.isCataloguePath(path) {
			continue
		}
		methods = append(methods, m)
		if m == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	return methods
}

// preflightMethods lists the methods that a preflight allows at path: the routed ones or, below a failed catalogue, those of
// its routes.
func (h *Handler) preflightMethods(path string) []string {
	if methods := h.allowed(path); len(methods) > 0 || h.failedCatalogueAt(path) == nil {
		return methods
	}
	return []string{http.MethodGet, http.MethodHead, http.MethodPost}
}

// endsInParameter reports whether path is routed to a pattern whose last segment is a parameter.
func (h *Handler) endsInParameter(method, path string) bool {
	return strings.HasSuffix(h.router.Find(chi.NewRouteContext(), method, path), "}")
}
