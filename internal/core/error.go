package core

import (
	"errors"
	"time"
)

// Code classifies an Error for programs. HTTP, GraphQL and the consumers decide only by Code, never by text.
type Code string

// Codes of Error. Each says what the receiver can do.
const (
	// CodeInvalid: the input is invalid; do not retry.
	CodeInvalid Code = "invalid"
	// CodeUnauthenticated: credentials are missing or invalid (signature, token).
	CodeUnauthenticated Code = "unauthenticated"
	// CodeForbidden: the caller is known but not permitted to do this.
	CodeForbidden Code = "forbidden"
	// CodeNotFound: the object does not exist in tutti (a repository, a job).
	CodeNotFound Code = "not_found"
	// CodeConflict: the state of the object does not permit the action, or a compare-and-swap failed.
	CodeConflict Code = "conflict"
	// CodeTooLarge: the input or a bulk body exceeds a limit; split it or give up.
	CodeTooLarge Code = "too_large"
	// CodeUnsupportedMedia: the content type of the body is not supported.
	CodeUnsupportedMedia Code = "unsupported_media_type"
	// CodeUnsupported: a known feature that this build or configuration does not provide.
	CodeUnsupported Code = "not_supported"
	// CodeOverloaded: retry later, more slowly (429, 503, a full stream).
	CodeOverloaded Code = "overloaded"
	// CodeUnavailable: no complete response (connection, timeout, truncated body, 5xx); retry.
	CodeUnavailable Code = "unavailable"
	// CodeAbsent: an upstream reports in its own error format that the record or the organization does not exist (CONTRACT
	// section 1). Never used for a proxy's 404.
	CodeAbsent Code = "absent"
	// CodeUpstream: an upstream response that a retry will not fix (other 4xx, a 404 that is not its own).
	CodeUpstream Code = "upstream_error"
	// CodeIndexBlocked: the index is missing, closed or blocked; the repository pauses until it is available.
	CodeIndexBlocked Code = "index_blocked"
	// CodeInternal: a bug or an internal failure of tutti.
	CodeInternal Code = "internal"
)

// Sentinels that an upstream client wraps in its Errors; for CodeAbsent they distinguish records from organizations.
var (
	// ErrRecordAbsent: the upstream reports that it has no such record.
	ErrRecordAbsent = errors.New("the upstream has no such record")
	// ErrOrganizationAbsent: the upstream reports that it has no such organization. Callers treat it as absent only if the
	// upstream's list of organizations omits it too.
	ErrOrganizationAbsent = errors.New("the upstream has no such organization")
	// ErrForeignNotFound: a 404 that is not in the upstream's own format, as a proxy returns while a service restarts. Its Error
	// has CodeUpstream, but the same call may succeed later: it counts as no answer.
	ErrForeignNotFound = errors.New("a 404 that is not the upstream's own")
	// ErrAskedTooMuch: the upstream does not return that much at once, and may return less. CodeUpstream.
	ErrAskedTooMuch = errors.New("the upstream does not return that much at once")
	// ErrRateLimited: the upstream takes no more calls for a while, however small. CodeOverloaded.
	ErrRateLimited = errors.New("too many calls to the upstream")
	// ErrOtherOrganization: the upstream reports that the record belongs to another organization. Its Error has CodeUpstream.
	ErrOtherOrganization = errors.New("the record belongs to another organization")
)

// Sentinels that an engine wraps in its Errors, for callers that need more than the code.
var (
	// ErrIndexMissing: the engine reports that there is no such index or alias. CodeIndexBlocked.
	ErrIndexMissing = errors.New("the engine has no such index")
	// ErrIndexForbidden: the engine rejected the credentials, or they lack a privilege. CodeIndexBlocked.
	ErrIndexForbidden = errors.New("the engine refused the credentials")
	// ErrIndexUnreachable: no connection, a broken connection, or no response in time, also if a gateway or the engine reports
	// that. CodeUnavailable or CodeOverloaded.
	ErrIndexUnreachable = errors.New("the engine was not reached")
	// ErrAliasIsIndex: the name of an alias is that of an index. CodeConflict.
	ErrAliasIsIndex = errors.New("an index has the name of the alias")
	// ErrAliasIsStream: the name of an alias is that of a data stream. CodeConflict.
	ErrAliasIsStream = errors.New("a data stream has the name of the alias")
	// ErrAliasSeveral: an alias stands for more than one index, as after a rollover. CodeConflict.
	ErrAliasSeveral = errors.New("the alias stands for more than one index")
	// ErrIndexUnsuitable: an index does not return documents as they were written. CodeConflict.
	ErrIndexUnsuitable = errors.New("the index does not keep documents as they are")
	// ErrMappingContradicts: the mapping file cannot be put into the index, which takes documents nevertheless. CodeConflict.
	ErrMappingContradicts = errors.New("the mapping file contradicts the index")
	// ErrMappingRefused: the engine refuses the mapping file; the index, which was made before, takes documents nevertheless. CodeInvalid.
	ErrMappingRefused = errors.New("the engine refuses the mapping file")
)

// ErrObjectAbsent is the error for an object that the storage does not have.
var ErrObjectAbsent = errors.New("the storage has no such object")

// Error is the error type of tutti. Message and Hint are safe to show to a client; Err is only for logs.
type Error struct {
	Code    Code
	Message string
	// Hint says how to fix the error, if that is known.
	Hint string
	// ErrorID is the error identifier that Song's clients expect (CONTRACT sections 7 and 8), "" elsewhere.
	ErrorID string
	// Violations are the validation errors of the request, if there are several.
	Violations []Violation
	// RetryAfter is how long the server asked to wait, zero if it did not.
	RetryAfter time.Duration
	// Err is the cause; its text never reaches a client.
	Err error
}

// Error returns the full text including the cause, for logs.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	if e.Message == "" {
		return e.Err.Error()
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NewError returns an Error without a cause. message is a short sentence without a final period.
func NewError(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// WrapError returns an Error with a cause. message says what was being done or what is wrong, safe to show.
func WrapError(code Code, message string, err error) *Error {
	return &Error{Code: code, Message: message, Err: err}
}

// CodeOf returns the code of the first Error in err's chain, CodeInternal if there is none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// MessageOf returns the displayable message of the first Error in err's chain, or a neutral sentence.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Message != "" {
		return e.Message
	}
	return "an internal error occurred"
}

// HintOf returns the hint of the first Error in err's chain, "" for none.
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}

// DisplayOf returns MessageOf followed by the hint, if there is one.
func DisplayOf(err error) string {
	if hint := HintOf(err); hint != "" {
		return MessageOf(err) + "; " + hint
	}
	return MessageOf(err)
}

// RetryAfterOf returns how long the server asked to wait, zero if it did not.
func RetryAfterOf(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// Retryable reports whether the same call may succeed later without a change by an operator.
func Retryable(err error) bool {
	switch CodeOf(err) {
	case CodeOverloaded, CodeUnavailable, CodeIndexBlocked:
		return true
	default:
		return false
	}
}

// Violation is one validation error of an analysis or of a registration.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) of the invalid value, "" for the whole document.
	Pointer string `json:"pointer"`
	// Message is safe to display.
	Message string `json:"message"`
	// Keyword is the violated JSON Schema keyword, or the name of the option.
	Keyword string `json:"keyword"`
	// Retryable is true if the same analysis may be valid later: an external service was unavailable.
	Retryable bool `json:"retryable,omitempty"`
}
