package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"tutti/internal/core"
)

// Sentinels in the Err of the *core.Error that this package returns.
var (
	// ErrTimeout: connecting, the headers, or one read of the body took longer than Config.Timeout.
	ErrTimeout = errors.New("no answer in time")
	// ErrCut: the answer ended before its JSON did.
	ErrCut = errors.New("answer cut short")
	// ErrMalformed: the answer is not JSON.
	ErrMalformed = errors.New("answer is not JSON")
	// ErrShape: the answer is JSON, but not what the protocol says.
	ErrShape = errors.New("answer of a wrong shape")
	// ErrTooLarge: one record, or another single value, is over the limit.
	ErrTooLarge = errors.New("answer over the size limit")
	// ErrRedirect: the upstream answered with a redirect, which is never followed.
	ErrRedirect = errors.New("redirected")
)

// StatusError is an answer with another status than 200. It is found in the chain of a *core.Error with errors.As.
type StatusError struct {
	Status int
	// Body is the start of the answer's body, at most 16 KiB. It is for the protocol's client to look into, and
	// never part of a message or a log line.
	Body []byte
}

// Error names the status alone.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d", e.Status) }

// Malformed makes the error of an answer that was read whole but does not follow the protocol: CodeUnavailable, since
// proxies answer so while a service restarts.
func Malformed(message string, err error) error {
	return core.WrapError(core.CodeUnavailable, message, err)
}

// statusError classifies an answer by its status (CONTRACT section 1, upstream calls). CodeAbsent is never given here:
// only the protocol's client knows the upstream's own words.
func statusError(status int, header http.Header, body []byte, now time.Time) *core.Error {
	e := &core.Error{Code: core.CodeUpstream, Err: &StatusError{Status: status, Body: body}}
	e.Message = fmt.Sprintf("the upstream answered with status %d", status)
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		e.Code = core.CodeOverloaded
		e.RetryAfter = retryAfter(header.Get("Retry-After"), now)
	case status >= http.StatusInternalServerError:
		e.Code = core.CodeUnavailable
		e.RetryAfter = retryAfter(header.Get("Retry-After"), now)
	case status == http.StatusRequestTimeout, status < http.StatusMultipleChoices:
		e.Code = core.CodeUnavailable
	case status < http.StatusBadRequest:
		e.Message = "the upstream answered with a redirect"
		e.Hint = "set the repository's url to where it redirects"
		e.Err = errors.Join(ErrRedirect, e.Err)
	case status == http.StatusNotFound: // unless the protocol's client finds the upstream's own words
		e.Err = errors.Join(core.ErrForeignNotFound, e.Err)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Hint = "check the repository's token, or its username and password"
	}
	return e
}

// retryAfter reads a Retry-After header: seconds or an HTTP date (RFC 9110, 10.2.3). Anything else, and a time that
// has passed, is zero.
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
