package api

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tutti/http/media"
	"tutti/http/problem"
	"tutti/internal/core"
)

// defaultRetryAfter is the Retry-After of an error that has none.
const defaultRetryAfter = 2 * time.Second

// Fail responds with the problem of err, and stores err for the request's log line.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	ex := exchangeOf(r.Context())
	ex.err = err
	p := problem.New(err, InstanceOf(r), ex.requestID)
	for _, extend := range ex.router.extensions {
		p = extend(p, r, err)
	}
	switch p.Status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", RetryAfter(core.RetryAfterOf(err)))
	case http.StatusUnauthorized, http.StatusForbidden:
		if challenge := challengeOf(err); challenge != "" {
			w.Header().Set(headerChallenge, ex.router.extendChallenge(r, challenge))
		}
	}
	for _, show := range ex.router.errorPages {
		if show(w, r, p) {
			return
		}
	}
	_ = writeJSONAs(w, p.Status, problem.ContentTypeProblem, p) // a problem can always be encoded
}

// NotAcceptable returns the error for a client that accepts none of the offered media types.
func NotAcceptable(offers []string) error {
	only := strings.Join(offers, " or ")
	if only == media.JSON {
		only = "JSON"
	}
	return &core.Error{
		Code: problem.CodeNotAcceptable, Message: "this path answers " + only + " only", Hint: "accept " + strings.Join(offers, " or "),
	}
}

// InstanceOf returns the escaped path of a request, the member instance of its problem.
func InstanceOf(r *http.Request) string {
	if p := r.URL.EscapedPath(); p != "" {
		return p
	}
	return "/"
}

// Below reports whether a request is for a path, given without the base path, or below it.
func (h *Router) Below(r *http.Request, path string) bool {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), h.cfg.BasePath+path)
	return ok && (rest == "" || rest[0] == '/')
}

// RetryAfter returns whole seconds, at least one.
func RetryAfter(d time.Duration) string {
	if d <= 0 {
		d = defaultRetryAfter
	}
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}
