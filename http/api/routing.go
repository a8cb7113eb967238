package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"tutti/http/problem"
	"tutti/internal/core"
)

// routeRaw makes chi route on the escaped path, so that an escaped slash stays inside its segment. chi itself routes on the
// decoded path if its default escaping equals the one received, and a handler could not know whether to decode.
func (h *Router) routeRaw(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rctx := chi.RouteContext(r.Context()); rctx != nil {
			rctx.RoutePath = h.trimSlash(r.URL.EscapedPath())
			if r.Method == http.MethodHead {
				rctx.RouteMethod = http.MethodGet
			}
		}
		next.ServeHTTP(w, r)
	})
}

// PathParam returns a path parameter, percent-decoded once and checked. what names it in the message.
func PathParam(r *http.Request, name, what string) (string, error) {
	value, err := unescaped(chi.URLParam(r, name), what)
	if err != nil {
		return "", err
	}
	return value, core.ValidID(what, value)
}

// PathRecord returns the record that the parameters repositoryCode, organization and id of a path name.
func PathRecord(r *http.Request) (core.RecordRef, error) {
	var parts [3]string
	for i, name := range [...]string{"repositoryCode", "organization", "id"} {
		part, err := unescaped(chi.URLParam(r, name), name)
		if err != nil {
			return core.RecordRef{}, err
		}
		parts[i] = part
	}
	return core.NewRecordRef(parts[0], parts[1], parts[2])
}

// unescaped returns a segment of a path, percent-decoded once.
func unescaped(segment, what string) (string, error) {
	value, err := url.PathUnescape(segment)
	if err != nil {
		return "", core.WrapError(core.CodeInvalid, what+" has a malformed percent escape", err)
	}
	return value, nil
}

// PathParams returns the values of a path parameter that lists at most most values with commas between, each as PathParam does.
func PathParams(r *http.Request, name, what string, most int) ([]string, error) {
	list := strings.Split(chi.URLParam(r, name), ",")
	if len(list) > most {
		return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("the path lists %d values of %s, more than %d", len(list), what, most))
	}
	for i, given := range list {
		value, err := unescaped(given, what)
		if err != nil {
			return nil, err
		}
		if err := core.ValidID(what, value); err != nil {
			return nil, err
		}
		list[i] = value
	}
	return list, nil
}

// serveMissing serves a request whose path has no route.
func (h *Router) serveMissing(w http.ResponseWriter, r *http.Request) {
	for _, answer := range h.redirects {
		if answer(w, r) {
			return
		}
	}
	h.ServeUnrouted(w, r)
}

// ServeUnrouted serves a request without a route: by the Override of Wildcards, else 405 if the path has other methods, else 404.
func (h *Router) ServeUnrouted(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	override := h.override(path)
	if allowed := h.allowed(path); len(allowed) > 0 && (override == nil || !h.owned(path)) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		Fail(w, r, &core.Error{
			Code: problem.CodeMethodNotAllowed, Message: "this path does not support this method",
			Hint: "use " + strings.Join(allowed, ", "),
		})
		return
	}
	if override != nil {
		override(w, r)
		return
	}
	if strings.HasSuffix(path, "/") && h.endsInParameter(r.Method, path+"-") {
		Fail(w, r, core.NewError(core.CodeInvalid, "the last segment of the path is empty"))
		return
	}
	Fail(w, r, &core.Error{
		Code: core.CodeNotFound, Message: "no resource has this path",
		Hint: "all paths are in " + h.cfg.BasePath + "/openapi.json",
	})
}

// override returns the handler for a path without a route, nil if the response is an error.
func (h *Router) override(path string) http.HandlerFunc {
	if h.wildcards == nil {
		return nil
	}
	return h.wildcards.Override(path)
}

// owned reports whether a pattern that begins with a parameter may match a path.
func (h *Router) owned(path string) bool { return h.wildcards != nil && h.wildcards.Owns(path) }

// routedMethods are the methods of all routes; HEAD is routed as GET.
var routedMethods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// trimSlash returns path without a final slash if its route's Parameters allow one: Spring's routes, which clients of
// Song and Maestro use, match both.
func (h *Router) trimSlash(path string) string {
	trimmed, ok := strings.CutSuffix(path, "/")
	if !ok {
		return path
	}
	for _, m := range routedMethods {
		if pattern, ok := strings.CutPrefix(h.mux.Find(chi.NewRouteContext(), m, trimmed), h.cfg.BasePath); ok && h.slashed[pattern] {
			return trimmed
		}
	}
	return path
}

// allowed lists the methods that are routed at path.
func (h *Router) allowed(path string) []string {
	path = h.trimSlash(path)
	var methods []string
	for _, m := range routedMethods {
		pattern := h.mux.Find(chi.NewRouteContext(), m, path)
		if pattern == "" || strings.HasPrefix(pattern[len(h.cfg.BasePath):], "/{") && !h.owned(path) {
			continue
		}
		methods = append(methods, m)
		if m == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	return methods
}

// preflightMethods lists the methods that a preflight allows at path: the routed ones or those of an
// override.
func (h *Router) preflightMethods(path string) []string {
	if methods := h.allowed(path); len(methods) > 0 || h.override(path) == nil {
		return methods
	}
	return []string{http.MethodGet, http.MethodHead, http.MethodPost}
}

// endsInParameter reports whether path is routed to a pattern whose last segment is a parameter.
func (h *Router) endsInParameter(method, path string) bool {
	return strings.HasSuffix(h.mux.Find(chi.NewRouteContext(), method, path), "}")
}
