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
	// bodyGrace is how long a client may send nothing of a body, or less than it must.
	bodyGrace = 10 * time.Second
	// minBodyRate is how many bytes of a body a client must send in each second beyond that.
	minBodyRate = 32 << 10
	// maxUnread is the size up to which an unread body is received before the answer, so that its connection is kept. net/http
	// has the same bound.
	maxUnread = 256 << 10
)

// errAbandoned ends a body of which no more is read.
var errAbandoned = errors.New("the rest of the body is not read")

// pacedBody is the body of a request. Each read has a deadline, by which a client must send on: bodyGrace after the last byte,
// and bodyGrace after the body would have come this far at minBodyRate. An HTTP/1 connection on which a body was not read to its
// end is closed after the answer.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	metrics *Metrics
	// length is the number of bytes that are left, -1 where that is not known.
	length int64
	// continues is true while the client waits for 100 Continue, which the first read sends.
	continues bool
	// streams is true in HTTP/2, which leaves the rest of a body unsent after an answer.
	streams bool
	// began is when reading began, and read what was read since then.
	began time.Time
	read  int64
	// deadline is the last one that was set.
	deadline time.Time
	// answering is true once the answer has begun.
	answering bool
	// err is what the body ended with, io.EOF when it was read whole.
	err error
	// conn is nil for a request that no Server got.
	conn *server.Conn
}

var _ io.ReadCloser = (*pacedBody)(nil)

func newPacedBody(w http.ResponseWriter, r *http.Request, metrics *Metrics) *pacedBody {
	return &pacedBody{
		ReadCloser: r.Body, control: http.NewResponseController(w), metrics: metrics,
		length: r.ContentLength, continues: r.Header.Get("Expect") != "", streams: r.ProtoMajor >= 2,
	}
}

// Read implements io.Reader. net/http lifts the deadline at the end of a body.
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

// extend sets the deadline of the next read. A writer without deadlines (a test's) is read without.
func (b *pacedBody) extend(now time.Time) {
	if b.began.IsZero() {
		b.began = now
	}
	deadline := b.began.Add(bodyGrace + time.Duration(float64(b.read)/minBodyRate*float64(time.Second)))
	if latest := now.Add(bodyGrace); deadline.After(latest) {
		deadline = latest
	}
	if deadline.Sub(b.deadline) >= bodyGrace/10 { // not for each read
		b.deadline = deadline
		_ = b.control.SetReadDeadline(deadline)
	}
}

// ended reports whether nothing of the body may be read any more.
func (b *pacedBody) ended() bool { return b.err != nil || b.streams || b.continues }

// answer prepares the connection for an answer that begins before the body was read: a short rest is read first, as net/http
// itself would without a deadline. A long one is drained behind the answer.
func (b *pacedBody) answer(header http.Header) {
	if b.answering {
		return
	}
	if b.answerFirst(); b.ended() {
		return
	}
	if b.length <= maxUnread {
		_, _ = io.CopyN(io.Discard, b, maxUnread+1)
	}
	if b.err != io.EOF { //nolint:errorlint // net/http returns io.EOF itself at the end of a body
		header.Set("Connection", "close")
	}
}

// answerFirst makes the answer begin before any more of the body is read; finish drains the rest.
func (b *pacedBody) answerFirst() {
	b.answering = true
	if !b.ended() {
		b.err = b.control.EnableFullDuplex() // net/http reads nothing by itself before the answer; an error for the writer of a test
	}
}

// abandon leaves the rest of the body unread; the connection is closed after the answer.
func (b *pacedBody) abandon() {
	b.err = errAbandoned
	_ = b.control.SetReadDeadline(time.Unix(1, 0))
}

// finish ends a request. What is left of its body is read until its end, or n bytes, so that a client which sends all of it
// before it reads gets the answer: bytes that nobody reads reset the connection.
func (b *pacedBody) finish(n int64) {
	if n > 0 && b.answering && !b.ended() {
		_ = b.control.Flush()
		_, _ = io.CopyN(io.Discard, b, n)
	}
	if b.err != io.EOF { //nolint:errorlint // as above
		b.abandon() // net/http would go on reading
	}
}

// pace bounds how slowly the body of a request may be sent, and the end of an answer be taken. Handlers bound what they write
// themselves.
func pace(metrics *Metrics, maxBodyBytes int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// What net/http sends once the handlers have returned; it lifts the deadline for the next request.
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
			left := int64(0) // of an answer that was broken off nothing is left to read
			defer func() { body.finish(left) }()
			r.Body = body // of the copy of the request that identify made: net/http keeps the body itself
			next.ServeHTTP(w, r)
			left = maxBodyBytes
		})
	}
}

// hasBody reports whether a request has a body, or may have one. In HTTP/2, Body is set where there is none, and ContentLength is 0.
func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// bodyReadError is the error of a body that could not be read.
func bodyReadError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the body was sent too slowly",
			Hint: fmt.Sprintf("send at least %d KiB a second, and something in any %s", minBodyRate>>10, bodyGrace), Err: err,
		}
	}
	return core.WrapError(core.CodeInvalid, "the body could not be read to its end", err)
}

// reserve answers only what monitoring reads on a connection that is beyond a limit.
func (c Config) reserve(next http.Handler) http.Handler {
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
			conn.Keep()
			next.ServeHTTP(w, r)
			return
		}
		if body != nil {
			body.answerFirst() // a new connection may replace this one while the rest is drained
		}
		Fail(w, r, &core.Error{
			Code: core.CodeOverloaded, Message: "too many connections are open", Hint: "close those that are not used, or try again in a while",
		})
	})
}
