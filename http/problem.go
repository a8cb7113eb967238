package http

import (
	"encoding/json"
	"errors"
	"math"
	nethttp "net/http"
	"strconv"
	"strings"
	"time"

	"tutti/internal/core"
)

// Codes of problems that only a transport has, beside those of core.
const (
	codeMethodNotAllowed core.Code = "method_not_allowed"
	codeNotAcceptable    core.Code = "not_acceptable"
	codeMisdirected      core.Code = "misdirected_request"
	codeForbidden        core.Code = "forbidden"
	codeHeaderTooLarge   core.Code = "header_too_large"
)

const contentTypeProblem = "application/problem+json"

// defaultRetryAfter is told to a client when the other side did not say how long to wait.
const defaultRetryAfter = 2 * time.Second

// problem is the body of every error (CONTRACT section 0, RFC 9457).
type problem struct {
	Type      string    `json:"type"`
	Title     string    `json:"title"`
	Status    int       `json:"status"`
	Detail    string    `json:"detail"`
	Instance  string    `json:"instance"`
	Code      core.Code `json:"code"`
	Hint      string    `json:"hint,omitempty"`
	RequestID string    `json:"requestId"`
	*indexFailure
}

// indexFailure is what a problem of /index has beside the others, for clients that know Maestro's answers.
type indexFailure struct {
	Successful bool   `json:"successful"`
	Message    string `json:"message"`
	Details    string `json:"details"`
}

// newProblem makes the problem of err. Only the message and hint of a core.Error are shown, never its cause.
func newProblem(err error, instance, requestID string) problem {
	status := statusOf(core.CodeOf(err))
	p := problem{
		Type: "about:blank", Title: nethttp.StatusText(status), Status: status, Detail: core.MessageOf(err),
		Instance: instance, Code: core.CodeOf(err), RequestID: requestID,
	}
	if e, ok := errors.AsType[*core.Error](err); ok {
		p.Hint = e.Hint
	}
	return p
}

// onIndex adds what /index has beside the others.
func (p problem) onIndex() problem {
	details := p.Hint
	if details == "" {
		details = p.Detail
	}
	p.indexFailure = &indexFailure{Message: p.Detail, Details: details}
	return p
}

// statusOf maps a code to its HTTP status.
func statusOf(code core.Code) int {
	switch code {
	case core.CodeInvalid, core.CodeUnsupported:
		return nethttp.StatusBadRequest
	case codeForbidden:
		return nethttp.StatusForbidden
	case core.CodeNotFound, core.CodeAbsent:
		return nethttp.StatusNotFound
	case codeMethodNotAllowed:
		return nethttp.StatusMethodNotAllowed
	case codeNotAcceptable:
		return nethttp.StatusNotAcceptable
	case core.CodeConflict:
		return nethttp.StatusConflict
	case core.CodeTooLarge:
		return nethttp.StatusRequestEntityTooLarge
	case core.CodeUnsupportedMedia:
		return nethttp.StatusUnsupportedMediaType
	case codeMisdirected:
		return nethttp.StatusMisdirectedRequest
	case codeHeaderTooLarge:
		return nethttp.StatusRequestHeaderFieldsTooLarge
	case core.CodeUpstream:
		return nethttp.StatusBadGateway
	case core.CodeOverloaded, core.CodeUnavailable, core.CodeIndexBlocked:
		return nethttp.StatusServiceUnavailable
	default:
		return nethttp.StatusInternalServerError
	}
}

// fail answers with the problem of err, and keeps err for the request's line in the log.
func (h *Handler) fail(w nethttp.ResponseWriter, r *nethttp.Request, err error) {
	ex := exchangeOf(r.Context())
	ex.err = err
	p := newProblem(err, instanceOf(r), ex.requestID)
	if h.onIndexSurface(r) {
		p = p.onIndex()
	}
	if p.Status == nethttp.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter(core.RetryAfterOf(err)))
	}
	writeJSON(w, p.Status, contentTypeProblem, p)
}

func instanceOf(r *nethttp.Request) string {
	if p := r.URL.EscapedPath(); p != "" {
		return p
	}
	return "/"
}

// onIndexSurface tells whether the request is for /index or below it.
func (h *Handler) onIndexSurface(r *nethttp.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), h.cfg.BasePath+"/index")
	return ok && (rest == "" || rest[0] == '/')
}

// retryAfter gives whole seconds, at least one.
func retryAfter(d time.Duration) string {
	if d <= 0 {
		d = defaultRetryAfter
	}
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}

// writeJSON writes body with its length. What cannot be written has no reader any more.
func writeJSON(w nethttp.ResponseWriter, status int, contentType string, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		// Bodies are structs of this package, which always marshal; times out of range would be the exception.
		status, contentType = nethttp.StatusInternalServerError, contentTypeProblem
		b = []byte(`{"type":"about:blank","title":"Internal Server Error","status":500,` +
			`"detail":"the answer cannot be written as JSON","instance":"/","code":"internal","requestId":""}`)
	}
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
