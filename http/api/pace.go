package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"tutti/http/server"
	"tutti/internal/core"
)

const (
	// bodyGrace is the maximum pause of a client within a body, and the lead it has over minBodyRate.
	bodyGrace = 10 * time.Second
	// minBodyRate is the average rate at which a client must send a body, in bytes per second.
	minBodyRate = 32 << 10
	// maxUnread is the largest unread body that is read before the response, so that its connection can be reused. net/http has the
	// same limit.
	maxUnread = 256 << 10
)

// errAbandoned is the error of reads after abandon.
var errAbandoned = errors.New("the rest of the body is not read")

// pacedBody is a request body whose reads have deadlines: bodyGrace after the last byte, and at most bodyGrace later than the same
// bytes would have taken at minBodyRate. An HTTP/1 connection is closed after the response unless the body was read to its end.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	metrics *Metrics
	// length is the number of remaining bytes, -1 if unknown.
	length int64
	// continues is true while the client waits for 100 Continue, which the first read sends.
	continues bool
	// streams is true for HTTP/2, where the client does not send the rest of a body after the response.
	streams bool
	// began is the time of the first read, and read the number of bytes read since.
	began time.Time
	read  int64
	// deadline is the deadline set last.
	deadline time.Time
	// responding is true once the response has begun.
	responding bool
	// err is the error that ended the body, io.EOF after all of it was read.
	err error
	// conn is nil for requests that did not come through a Server.
	conn *server.Conn
}

var _ io.ReadCloser = (*pacedBody)(nil)

func newPacedBody(w http.ResponseWriter, r *http.Request, metrics *Metrics) *pacedBody {
	return &pacedBody{
		ReadCloser: r.Body, control: http.NewResponseController(w), metrics: metrics,
		length: r.ContentLength, continues: r.Header.Get("Expect") != "", streams: r.ProtoMajor >= 2,
	}
}

// Read implements io.Reader. net/http clears the deadline at the end of a body.
func (b *pacedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	b.continues = false
	b.extend(time.Now())
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if b.length > 0 {
		b.length -= int64(n)
	}
	if b.err = err; err != nil {
		b.conn.Received()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.metrics.slowBody()
	}
	return n, err
}

// extend sets the deadline of the next read, if the writer supports deadlines (those of tests do not).
func (b *pacedBody) extend(now time.Time) {
	if b.began.IsZero() {
		b.began = now
	}
	deadline := b.began.Add(bodyGrace + time.Duration(float64(b.read)/minBodyRate*float64(time.Second)))
	if latest := now.Add(bodyGrace); deadline.After(latest) {
		deadline = latest
	}
	if deadline.Sub(b.deadline) >= bodyGrace/10 { // saves most calls
		b.deadline = deadline
		_ = b.control.SetReadDeadline(deadline)
	}
}

// ended reports whether no more of the body may be read.
func (b *pacedBody) ended() bool { return b.err != nil || b.streams || b.continues }

// beforeResponse prepares the connection for a response that begins before the whole body is read: a short rest is read now, as
// net/http does without a deadline; finish reads a long one after the response.
func (b *pacedBody) beforeResponse(header http.Header) {
	if b.responding {
		return
	}
	if b.respondUnread(); b.ended() {
		return
	}
	if b.length <= maxUnread {
		_, _ = io.CopyN(io.Discard, b, maxUnread+1)
	}
	if b.err != io.EOF { //nolint:errorlint // net/http returns io.EOF itself at the end of a body
		header.Set("Connection", "close")
	}
}

// respondUnread lets the response begin although the body is not read; finish reads the rest.
func (b *pacedBody) respondUnread() {
	b.responding = true
	if !b.ended() {
		b.err = b.control.EnableFullDuplex() // net/http then reads nothing before the response; fails for the writers of tests
	}
}

// abandon leaves the rest of the body unread; the connection is closed after the response.
func (b *pacedBody) abandon() {
	b.err = errAbandoned
	_ = b.control.SetReadDeadline(time.Unix(1, 0))
}

// finish ends a request. It reads up to n more bytes of the body, so that a client that sends its whole body before it reads receives
// the response: unread bytes would reset the connection.
func (b *pacedBody) finish(n int64) {
	if n > 0 && b.responding && !b.ended() {
		_ = b.control.Flush()
		_, _ = io.CopyN(io.Discard, b, n)
	}
	if b.err != io.EOF { //nolint:errorlint // as above
		b.abandon() // otherwise net/http continues reading
	}
}

// pace sets deadlines for receiving a request's body and for sending the end of its response. Handlers set those of what they write.
func pace(metrics *Metrics, maxBodyBytes int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// For what net/http sends after the handlers have returned; it clears the deadline for the next request.
			defer func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(LineTimeout)) }()
			conn := server.ConnOf(r.Context())
			if !hasBody(r) || r.ProtoMajor >= 2 {
				conn.Received()
			}
			if !hasBody(r) {
				next.ServeHTTP(w, r)
				return
			}
			body := newPacedBody(w, r, metrics)
			body.conn = conn
			left := int64(0) // stays 0 after a panic: the rest of the body is not read
			defer func() { body.finish(left) }()
			r.Body = body // r is the copy that identify made: net/http keeps the original body
			next.ServeHTTP(w, r)
			left = maxBodyBytes
		})
	}
}

// hasBody reports whether a request has or may have a body. In HTTP/2 a request without one has a Body, and ContentLength 0.
func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// bodyReadError is the error of a body that could not be read.
func bodyReadError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the body was sent too slowly",
			Hint: fmt.Sprintf("send at least %d KiB per second, without pauses over %s", minBodyRate>>10, bodyGrace), Err: err,
		}
	}
	return core.WrapError(core.CodeInvalid, "the body could not be read to its end", err)
}

// serveOverLimit serves only the monitoring routes on a connection over the connection limit.
func (c Config) serveOverLimit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := server.ConnOf(r.Context())
		if !conn.OverLimit() {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		body, _ := r.Body.(*pacedBody)
		if c.isMonitoring(r) {
			if body != nil {
				body.abandon()
			}
			conn.Protect()
			next.ServeHTTP(w, r)
			return
		}
		if body != nil {
			body.respondUnread() // a new connection may replace this one while the rest is drained
		}
		Fail(w, r, &core.Error{
			Code: core.CodeOverloaded, Message: "too many connections are open", Hint: "close unused connections, or retry later",
		})
	})
}
