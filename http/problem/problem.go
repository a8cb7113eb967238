package problem

import (
	"errors"
	"net/http"

	"tutti/internal/core"
)

// Codes of problems that only a transport has, beside those of core.
const (
	CodeMethodNotAllowed core.Code = "method_not_allowed"
	CodeNotAcceptable    core.Code = "not_acceptable"
	CodeMisdirected      core.Code = "misdirected_request"
	CodeHeaderTooLarge   core.Code = "header_too_large"
	CodeNotUnderstood    core.Code = "not_understood"
	CodeAmbiguousType    core.Code = "ambiguous_document_type"
)

// ContentTypeProblem is the media type of a Problem.
const ContentTypeProblem = "application/problem+json"

// Problem is the body of every error (CONTRACT section 0, RFC 9457).
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

// New makes the problem of err. Only the message and hint of a core.Error are shown, never its cause.
func New(err error, instance, requestID string) Problem {
	status := statusOf(core.CodeOf(err))
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

// statusOf maps a code to its HTTP status.
func statusOf(code core.Code) int {
	switch code {
	case core.CodeInvalid, core.CodeUnsupported, CodeNotUnderstood:
		return http.StatusBadRequest
	case core.CodeUnauthenticated:
		return http.StatusUnauthorized
	case core.CodeForbidden:
		return http.StatusForbidden
	case core.CodeNotFound, core.CodeAbsent:
		return http.StatusNotFound
	case CodeMethodNotAllowed:
		return http.StatusMethodNotAllowed
	case CodeNotAcceptable:
		return http.StatusNotAcceptable
	case core.CodeConflict, CodeAmbiguousType:
		return http.StatusConflict
	case core.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case core.CodeUnsupportedMedia:
		return http.StatusUnsupportedMediaType
	case CodeMisdirected:
		return http.StatusMisdirectedRequest
	case CodeHeaderTooLarge:
		return http.StatusRequestHeaderFieldsTooLarge
	case core.CodeUpstream:
		return http.StatusBadGateway
	case core.CodeOverloaded, core.CodeUnavailable, core.CodeIndexBlocked:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// Error ids that this package gives, or decides by, itself.
const (
	errorIDParameter       = "malformed.parameter"
	ErrorIDPayload         = "payload.parsing"
	ErrorIDStudyMismatch   = "study.id.mismatch"
	ErrorIDAnalysisMissing = "analysis.id.not.found"
)

// ErrorIDOf names the fault as Song's clients know it: in the words of who found it, else by its code.
func ErrorIDOf(err error) string {
	if e, ok := errors.AsType[*core.Error](err); ok && e.ErrorID != "" {
		return e.ErrorID
	}
	switch core.CodeOf(err) {
	case core.CodeInvalid, CodeNotUnderstood:
		return errorIDParameter
	case core.CodeUnauthenticated:
		return "unauthorized.token"
	case core.CodeForbidden:
		return "forbidden.token"
	case core.CodeNotFound, core.CodeAbsent:
		return "not.found"
	case core.CodeConflict:
		return "conflict"
	case core.CodeTooLarge:
		return "payload.too.large"
	case core.CodeUnsupportedMedia:
		return "unsupported.media.type"
	case core.CodeUnsupported:
		return "not.supported"
	case core.CodeOverloaded, core.CodeUnavailable, core.CodeIndexBlocked:
		return "service.unavailable"
	case core.CodeUpstream:
		return "bad.gateway"
	case CodeMethodNotAllowed:
		return "method.not.allowed"
	case CodeNotAcceptable:
		return "not.acceptable"
	case CodeMisdirected:
		return "misdirected.request"
	case CodeHeaderTooLarge:
		return "header.too.large"
	default:
		return "unknown.error"
	}
}
