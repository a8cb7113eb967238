package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"tutti/internal/core"
)

// Sentinels in the Err of the *core.Error that this package returns.
var (
	// ErrTimeout: connecting, the headers, or one read of the body took longer than Config.Timeout.
	ErrTimeout error = timeoutError{}
	// ErrTruncated: the response ended, or its connection broke, before its JSON ended.
	ErrTruncated = errors.New("response truncated")
	// ErrMalformed: the response is not JSON.
	ErrMalformed = errors.New("response is not JSON")
	// ErrFormat: the response is JSON, but violates the protocol.
	ErrFormat = errors.New("unexpected response format")
	// ErrTooLarge: one record, or another single value, exceeds the limit.
	ErrTooLarge = errors.New("response over the size limit")
	// ErrRedirect: the upstream sent a redirect; redirects are not followed.
	ErrRedirect = errors.New("redirected")
)

// timeoutError is an os.ErrDeadlineExceeded.
type timeoutError struct{}

func (timeoutError) Error() string        { return "no answer in time" }
func (timeoutError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// StatusError is a response with a status other than 200. It is found in the chain of a *core.Error with errors.As.
type StatusError struct {
	Status int
	// Body is the start of the response's body, at most 16 KiB. The protocol's client interprets it; it must not be part of a
	// message or a log line.
	Body []byte
}

// Error returns only the status.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d", e.Status) }

// Refused returns the status of an error if the upstream has refused the request and would refuse it again: 4xx, but for a timeout and too
// many requests.
func Refused(err error) (status int, refused bool) {
	e, is := errors.AsType[*StatusError](err)
	if !is || e.Status/100 != 4 || e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests {
		return 0, false
	}
	return e.Status, true
}

// Malformed returns the error of a complete response that violates the protocol: CodeUnavailable, since proxies send such
// responses while a service restarts.
func Malformed(message string, err error) error {
	return core.WrapError(core.CodeUnavailable, message, err)
}

// FormatError returns the error of a complete response that is JSON, but not in the protocol's format.
func FormatError(what string) error {
	return Malformed("the upstream's "+what+" has an unexpected format", ErrFormat)
}

// statusError classifies a response by its status (CONTRACT section 1, upstream calls). It never returns CodeAbsent: only the
// protocol's client knows the upstream's error documents.
func statusError(status int, header http.Header, body []byte, now time.Time) *core.Error {
	e := &core.Error{Code: core.CodeUpstream, Err: &StatusError{Status: status, Body: body}}
	e.Message = fmt.Sprintf("the upstream answered with status %d", status)
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		e.Code = core.CodeOverloaded
		if status == http.StatusTooManyRequests {
			e.Err = errors.Join(core.ErrRateLimited, e.Err)
		}
		e.RetryAfter = retryAfter(header.Get("Retry-After"), now)
	case status >= http.StatusInternalServerError:
		e.Code = core.CodeUnavailable
		e.RetryAfter = retryAfter(header.Get("Retry-After"), now)
	case status == http.StatusRequestTimeout, status < http.StatusMultipleChoices:
		e.Code = core.CodeUnavailable
	case status < http.StatusBadRequest:
		e.Message = "the upstream answered with a redirect"
		e.Hint = "set the repository's url to the target of the redirect"
		e.Err = errors.Join(ErrRedirect, e.Err)
	case status == http.StatusNotFound: // unless the protocol's client recognizes the error document
		e.Err = errors.Join(core.ErrForeignNotFound, e.Err)
	case status == http.StatusRequestEntityTooLarge:
		e.Err = errors.Join(core.ErrAskedTooMuch, e.Err)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Hint = "check the repository's token, or its username and password"
	}
	return e
}

// retryAfter parses a Retry-After header: seconds or an HTTP date (RFC 9110, 10.2.3). It returns zero for anything else and for a
// time in the past.
func retryAfter(value string, now time.Time) time.Duration {
	const most = 24 * time.Hour
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(most/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), most)
}
