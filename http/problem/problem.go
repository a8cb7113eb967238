package problem

import (
	"errors"
	"net/http"

	"tutti/internal/core"
)

// Codes of problems that exist only in HTTP, in addition to those of core.
const (
	CodeMethodNotAllowed core.Code = "method_not_allowed"
	CodeNotAcceptable    core.Code = "not_acceptable"
	CodeMisdirected      core.Code = "misdirected_request"
	CodeHeaderTooLarge   core.Code = "header_too_large"
	CodeNotUnderstood    core.Code = "not_understood"
	CodeAmbiguousType    core.Code = "ambiguous_document_type"
	CodeTooManyRequests  core.Code = "too_many_requests"
)

// ContentTypeProblem is the media type of a Problem.
const ContentTypeProblem = "application/problem+json"

// Problem is the body of every error (RFC 9457; CONTRACT section 0).
type Problem struct {
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
	*IndexMembers
	*MetadataMembers
	*AmbiguousType
	*GraphQLMembers
}

// completer is an error that completes its problem.
type completer interface {
	error
	Complete(p *Problem)
}

// New returns the problem of err. It contains only the message and hint of a core.Error, never its cause.
func New(err error, instance, requestID string) Problem {
	status, _ := meaning(core.CodeOf(err))
	if ErrorIDOf(err) == ErrorIDPayload {
		status = http.StatusUnprocessableEntity
	}
	p := Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: core.MessageOf(err),
		Instance: instance, Code: core.CodeOf(err), RequestID: requestID,
	}
	if e, ok := errors.AsType[*core.Error](err); ok {
		p.Hint = e.Hint
		if len(e.Violations) > 0 {
			p.Violations = e.Violations
		}
	}
	if e, ok := errors.AsType[completer](err); ok {
		e.Complete(&p)
	}
	return p
}

// meaning returns the HTTP status of a code, and its error id in Song.
func meaning(code core.Code) (status int, errorID string) {
	switch code {
	case core.CodeInvalid, CodeNotUnderstood:
		return http.StatusBadRequest, "malformed.parameter"
	case core.CodeUnsupported:
		return http.StatusBadRequest, "not.supported"
	case core.CodeUnauthenticated:
		return http.StatusUnauthorized, "unauthorized.token"
	case core.CodeForbidden:
		return http.StatusForbidden, "forbidden.token"
	case core.CodeNotFound, core.CodeAbsent:
		return http.StatusNotFound, "not.found"
	case CodeMethodNotAllowed:
		return http.StatusMethodNotAllowed, "method.not.allowed"
	case CodeNotAcceptable:
		return http.StatusNotAcceptable, "not.acceptable"
	case core.CodeConflict:
		return http.StatusConflict, "conflict"
	case CodeAmbiguousType:
		return http.StatusConflict, "unknown.error"
	case core.CodeTooLarge:
		return http.StatusRequestEntityTooLarge, "payload.too.large"
	case core.CodeUnsupportedMedia:
		return http.StatusUnsupportedMediaType, "unsupported.media.type"
	case CodeMisdirected:
		return http.StatusMisdirectedRequest, "misdirected.request"
	case CodeHeaderTooLarge:
		return http.StatusRequestHeaderFieldsTooLarge, "header.too.large"
	case core.CodeUpstream:
		return http.StatusBadGateway, "bad.gateway"
	case CodeTooManyRequests:
		return http.StatusTooManyRequests, "too.many.requests"
	case core.CodeOverloaded, core.CodeUnavailable, core.CodeIndexBlocked:
		return http.StatusServiceUnavailable, "service.unavailable"
	default:
		return http.StatusInternalServerError, "unknown.error"
	}
}

// Error ids that the response depends on.
const (
	ErrorIDPayload         = "payload.parsing"
	ErrorIDStudyMismatch   = "study.id.mismatch"
	ErrorIDAnalysisMissing = "analysis.id.not.found"
	ErrorIDFileMissing     = "file.not.found"
	ErrorIDQuery           = "illegal.query.parameter"
	ErrorIDFilter          = "illegal.filter.parameter"
)

// ErrorIDOf returns the error id that Song's clients know: the ErrorID of err, else the one of its code.
func ErrorIDOf(err error) string {
	if e, ok := errors.AsType[*core.Error](err); ok && e.ErrorID != "" {
		return e.ErrorID
	}
	_, errorID := meaning(core.CodeOf(err))
	return errorID
}
