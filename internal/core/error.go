package core

import (
	"errors"
	"time"
)

// Code classifies an Error for machines. HTTP, GraphQL and the consumers decide by Code alone, never by text.
type Code string

// Codes of Error. Each names what the receiver can do about it.
const (
	// CodeInvalid: the input is wrong and stays wrong; do not retry.
	CodeInvalid Code = "invalid"
	// CodeUnauthenticated: who asks did not prove who they are (no or a bad signature, token).
	CodeUnauthenticated Code = "unauthenticated"
	// CodeForbidden: who asks is known and may not do this.
	CodeForbidden Code = "forbidden"
	// CodeNotFound: what was asked for does not exist in tutti (a repository, a job).
	CodeNotFound Code = "not_found"
	// CodeConflict: the state of the thing forbids the action, or a compare-and-set lost.
	CodeConflict Code = "conflict"
	// CodeTooLarge: the input or a bulk body is over a limit; split it or give up.
	CodeTooLarge Code = "too_large"
	// CodeUnsupportedMedia: the content type of the body is not understood.
	CodeUnsupportedMedia Code = "unsupported_media_type"
	// CodeUnsupported: a known feature that this build or configuration does not offer.
	CodeUnsupported Code = "not_supported"
	// CodeOverloaded: try again later, slower (429, 503, a full stream).
	CodeOverloaded Code = "overloaded"
	// CodeUnavailable: the other side did not answer in whole (connection, time-out, cut body, 5xx); try again.
	CodeUnavailable Code = "unavailable"
	// CodeAbsent: an upstream said in its own words that the record or the organization does not exist
	// (CONTRACT section 1). Never used for a proxy's 404.
	CodeAbsent Code = "absent"
	// CodeUpstream: an upstream answered something that no retry will mend (other 4xx, a 404 that is not its own).
	CodeUpstream Code = "upstream_error"
	// CodeIndexBlocked: the index is missing, closed or blocked; the repository pauses until it is back.
	CodeIndexBlocked Code = "index_blocked"
	// CodeInternal: a fault of tutti.
	CodeInternal Code = "internal"
)

// Sentinels that an upstream client wraps in its Errors, those of CodeAbsent so that the two are told apart.
var (
	// ErrRecordAbsent: the upstream says that it has no such record.
	ErrRecordAbsent = errors.New("the upstream has no such record")
	// ErrOrganizationAbsent: the upstream says that it has no such organization. It counts only when the upstream's
	// list of organizations omits it too.
	ErrOrganizationAbsent = errors.New("the upstream has no such organization")
	// ErrForeignNotFound: a 404 in words that are not the upstream's own, as a proxy answers while a service restarts. Its
	// Error is of CodeUpstream, and yet the same call may succeed later.
	ErrForeignNotFound = errors.New("a 404 that is not the upstream's own")
	// ErrOtherOrganization: the upstream says that the record belongs to another organization. Its Error is of
	// CodeUpstream.
	ErrOtherOrganization = errors.New("the record belongs to another organization")
)

// Sentinels that an engine wraps in its Errors, for those who must know more than the code.
var (
	// ErrIndexMissing: the engine says that it has no such index or alias. CodeIndexBlocked.
	ErrIndexMissing = errors.New("the engine has no such index")
	// ErrIndexForbidden: the engine refused the credentials, or what they may do. CodeIndexBlocked.
	ErrIndexForbidden = errors.New("the engine refused the credentials")
	// ErrIndexUnreachable: no connection, none that lasted, or no answer in time, also when a gateway or the engine itself
	// says so. CodeUnavailable or CodeOverloaded.
	ErrIndexUnreachable = errors.New("the engine was not reached")
)

// Error is the one error type of tutti. Message and Hint are safe to show to a client; Err is for logs alone.
type Error struct {
	Code    Code
	Message string
	// Hint says how to mend it, when that is known.
	Hint string
	// ErrorID names the fault as Song's clients know it (CONTRACT sections 7 and 8), "" elsewhere.
	ErrorID string
	// Violations are the single faults of what was sent, when there are several to tell.
	Violations []Violation
	// RetryAfter is how long the other side asked to wait, zero when it did not say.
	RetryAfter time.Duration
	// Err is the cause; its text never reaches a client.
	Err error
}

// Error returns the whole text, cause included, for logs.
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

// NewError makes an Error without a cause. message is a short sentence without a final period.
func NewError(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// WrapError makes an Error with a cause. message says what was being done or what is wrong, safe to show.
func WrapError(code Code, message string, err error) *Error {
	return &Error{Code: code, Message: message, Err: err}
}

// CodeOf returns the code of the first Error in err's chain, CodeInternal where there is none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// MessageOf returns the displayable message of the first Error in err's chain, and a neutral sentence otherwise.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Message != "" {
		return e.Message
	}
	return "an internal error occurred"
}

// HintOf returns how to mend the first Error in err's chain, empty when that is not known.
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}

// DisplayOf returns MessageOf with the hint behind it, where there is one.
func DisplayOf(err error) string {
	if hint := HintOf(err); hint != "" {
		return MessageOf(err) + "; " + hint
	}
	return MessageOf(err)
}

// RetryAfterOf returns how long the other side asked to wait, zero when it did not.
func RetryAfterOf(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// Retryable reports whether the same call may succeed later without anybody changing it.
func Retryable(err error) bool {
	switch CodeOf(err) {
	case CodeOverloaded, CodeUnavailable, CodeIndexBlocked:
		return true
	default:
		return false
	}
}
