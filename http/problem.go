package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
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
	codeHeaderTooLarge   core.Code = "header_too_large"
	codeNotUnderstood    core.Code = "not_understood"
	codeAmbiguousType    core.Code = "ambiguous_document_type"
)

const contentTypeProblem = "application/problem+json"

// defaultRetryAfter is the Retry-After of an error that has none.
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
	// Message repeats Detail on surfaces whose clients read this member; it is empty elsewhere.
	Message string `json:"message,omitempty"`
	// Violations are the errors of a body: []core.EventError for a notification, []core.Violation for an analysis or a
	// registration.
	Violations any `json:"violations,omitempty"`
	*indexFailure
	*metadataFailure
	*ambiguousType
	*graphQLFailure
}

// indexFailure is what a problem of /index has beside the others, for clients that know Maestro's answers.
type indexFailure struct {
	Successful bool   `json:"successful"`
	Details    string `json:"details"`
}

// newProblem makes the problem of err. Only the message and hint of a core.Error are shown, never its cause.
func newProblem(err error, instance, requestID string) problem {
	status := statusOf(core.CodeOf(err))
	if errorIDOf(err) == errorIDPayload {
		status = http.StatusUnprocessableEntity
	}
	p := problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: core.MessageOf(err),
		Instance: instance, Code: core.CodeOf(err), RequestID: requestID,
	}
	if e, ok := errors.AsType[*core.Error](err); ok {
		p.Hint = e.Hint
		if len(e.Violations) > 0 {
			p.Violations = e.Violations
		}
	}
	if e, ok := errors.AsType[*notUnderstoodError](err); ok {
		p.Violations = e.violations
	}
	if e, ok := errors.AsType[*ambiguousTypeError](err); ok {
		p.ambiguousType = &e.shared
	}
	return p
}

// withIndexMembers adds what /index has beside the others.
func (p problem) withIndexMembers() problem {
	details := p.Hint
	if details == "" {
		details = p.Detail
	}
	p.Message = p.Detail
	p.indexFailure = &indexFailure{Details: details}
	return p
}

// statusOf maps a code to its HTTP status.
func statusOf(code core.Code) int {
	switch code {
	case core.CodeInvalid, core.CodeUnsupported, codeNotUnderstood:
		return http.StatusBadRequest
	case core.CodeUnauthenticated:
		return http.StatusUnauthorized
	case core.CodeForbidden:
		return http.StatusForbidden
	case core.CodeNotFound, core.CodeAbsent:
		return http.StatusNotFound
	case codeMethodNotAllowed:
		return http.StatusMethodNotAllowed
	case codeNotAcceptable:
		return http.StatusNotAcceptable
	case core.CodeConflict, codeAmbiguousType:
		return http.StatusConflict
	case core.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case core.CodeUnsupportedMedia:
		return http.StatusUnsupportedMediaType
	case codeMisdirected:
		return http.StatusMisdirectedRequest
	case codeHeaderTooLarge:
		return http.StatusRequestHeaderFieldsTooLarge
	case core.CodeUpstream:
		return http.StatusBadGateway
	case core.CodeOverloaded, core.CodeUnavailable, core.CodeIndexBlocked:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// fail answers with the problem of err, and stores err for the request's log line.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	ex := exchangeOf(r.Context())
	ex.err = err
	p := newProblem(err, instanceOf(r), ex.requestID)
	switch {
	case h.isBelow(r, "/index"):
		p = p.withIndexMembers()
	case h.onMetadataSurface(r):
		p = p.withMetadataMembers(errorIDOf(err), requestURL(r), h.cfg.Now())
	case h.onGraphQLSurface(r):
		p = p.withGraphQLMembers(err)
	}
	switch p.Status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter(core.RetryAfterOf(err)))
	case http.StatusUnauthorized, http.StatusForbidden:
		if challenge := challengeOf(err); challenge != "" {
			w.Header().Set(headerChallenge, challenge)
		}
	}
	h.writeJSON(w, r, p.Status, contentTypeProblem, p)
}

// notAcceptable returns the error for a client that accepts none of the offered media types.
func notAcceptable(offers []string) error {
	only := strings.Join(offers, " or ")
	if only == contentTypeJSON {
		only = "JSON"
	}
	return &core.Error{
		Code: codeNotAcceptable, Message: "this path answers " + only + " only", Hint: "accept " + strings.Join(offers, " or "),
	}
}

func instanceOf(r *http.Request) string {
	if p := r.URL.EscapedPath(); p != "" {
		return p
	}
	return "/"
}

// isBelow reports whether the request is for a path, given without the base path, or below it.
func (h *Handler) isBelow(r *http.Request, path string) bool {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), h.cfg.BasePath+path)
	return ok && (rest == "" || rest[0] == '/')
}

// retryAfter returns whole seconds, at least one.
func retryAfter(d time.Duration) string {
	if d <= 0 {
		d = defaultRetryAfter
	}
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}

// writeJSON answers with body, with its length.
func (h *Handler) writeJSON(w http.ResponseWriter, r *http.Request, status int, contentType string, body any) {
	var encoded bytes.Buffer
	if err := encodeJSON(&encoded, body); err != nil {
		// A time out of range, which a problem does not have.
		h.fail(w, r, core.WrapError(core.CodeInternal, "the answer cannot be written as JSON", err))
		return
	}
	writeWhole(w, status, contentType, bytes.TrimSuffix(encoded.Bytes(), []byte("\n")))
}

// writeEncoded answers with a body that is JSON already, as it is.
func writeEncoded(w http.ResponseWriter, body []byte) {
	writeWhole(w, http.StatusOK, contentTypeJSON, body)
}

// writeWhole answers with a body, whose pieces follow on each other, with its length.
func writeWhole(w http.ResponseWriter, status int, contentType string, pieces ...[]byte) {
	length := 0
	for _, p := range pieces {
		length += len(p)
	}
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
	if rw, ours := w.(*responseWriter); ours && rw.conn != nil && !rw.conn.secure && length > minBuffered && length <= maxBuffered {
		rw.conn.startBuffering()
		defer func() {
			_ = http.NewResponseController(w).Flush()
			rw.conn.flushBuffered()
		}()
	}
	for _, p := range pieces {
		if writeChunks(w, p) != nil {
			// The client is gone.
			return
		}
	}
}

// writeChunks writes b with a write deadline for each listChunk: a client that stopped reading must not hold a goroutine and a body
// forever, and a slow one may continue. A writer without deadlines (in tests) is written to without.
func writeChunks(w http.ResponseWriter, b []byte) error {
	control := http.NewResponseController(w)
	for chunk := range slices.Chunk(b, listChunk) {
		_ = control.SetWriteDeadline(time.Now().Add(lineTimeout))
		if _, err := w.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// chunkWriter writes as writeChunks does.
type chunkWriter struct{ http.ResponseWriter }

// Write implements io.Writer.
func (w chunkWriter) Write(b []byte) (int, error) {
	if err := writeChunks(w.ResponseWriter, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// encodeJSON writes v as one line. It does not escape <, > and &: no response is read as HTML, and a document full of them would
// grow sixfold.
func encodeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
