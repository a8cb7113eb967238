package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"tutti/internal/core"
)

// Protocols as TLS names them (RFC 7301, RFC 9113).
const (
	protocolHTTP1 = "http/1.1"
	protocolHTTP2 = "h2"
)

// tlsListener returns connections on which TLS has been negotiated, in the order in which they are ready: net/http receives a *tls.Conn
// for HTTP/2, and for HTTP/1 a connection on which its error responses are problems.
type tlsListener struct {
	net.Listener
	config  *tls.Config
	ready   chan negotiated
	cancel  context.CancelFunc
	stopped <-chan struct{}
	work    sync.WaitGroup
}

// negotiated is a connection, or the error of the listener below.
type negotiated struct {
	conn net.Conn
	err  error
}

func newTLSListener(below net.Listener, config *tls.Config) *tlsListener {
	ctx, cancel := context.WithCancel(context.Background())
	l := &tlsListener{Listener: below, config: config, ready: make(chan negotiated), cancel: cancel, stopped: ctx.Done()}
	l.work.Go(func() { l.accept(ctx) })
	return l
}

// Accept waits for the next connection.
func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case n := <-l.ready:
		return n.conn, n.err
	case <-l.stopped:
		return nil, net.ErrClosed
	}
}

// Close closes the listener below and the connections that are not ready, and waits for their goroutines.
func (l *tlsListener) Close() error {
	err := l.Listener.Close()
	l.cancel()
	l.work.Wait()
	return err
}

// accept accepts connections. It passes errors to net/http, which backs off after a temporary one.
func (l *tlsListener) accept(ctx context.Context) {
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			l.work.Go(func() { l.negotiate(ctx, conn) })
			continue
		}
		if !l.deliver(ctx, negotiated{err: err}) || errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

func (l *tlsListener) deliver(ctx context.Context, n negotiated) bool {
	select {
	case l.ready <- n:
		return true
	case <-ctx.Done():
		return false
	}
}

// negotiate performs the handshake on a connection, within the timeout for a request's header.
func (l *tlsListener) negotiate(ctx context.Context, conn net.Conn) {
	if c, ours := conn.(*Conn); ours {
		c.secure = true
	}
	secured := tls.Server(conn, l.config)
	within, cancel := context.WithTimeout(ctx, readHeaderTimeout)
	defer cancel()
	if err := secured.HandshakeContext(within); err != nil {
		answerPlainHTTP(err)
		_ = conn.Close()
		return
	}
	var ready net.Conn = secured
	if secured.ConnectionState().NegotiatedProtocol != protocolHTTP2 {
		ready = &tlsConn{secured}
	}
	if !l.deliver(ctx, negotiated{conn: ready}) {
		_ = conn.Close()
	}
}

// answerPlainHTTP sends an error response to a client that sent plain HTTP, which the record header of the failed handshake shows.
func answerPlainHTTP(err error) {
	e, ok := errors.AsType[tls.RecordHeaderError](err)
	if !ok || e.Conn == nil || e.RecordHeader[0] < 'A' || e.RecordHeader[0] > 'Z' {
		return
	}
	answer, err := errorResponse(http.StatusBadRequest, &core.Error{
		Code: core.CodeInvalid, Message: "the request is not encrypted", Hint: "this port speaks HTTPS: begin the address with https://",
	})
	if err == nil {
		_, _ = e.Conn.Write(answer)
	}
}

// tlsConn is a TLS connection with HTTP/1. It hides the *tls.Conn from net/http, so that the plain text passes through Write before
// it is encrypted.
type tlsConn struct{ *tls.Conn }

// Write replaces an error response of net/http by a problem.
func (c *tlsConn) Write(b []byte) (int, error) { return writeProblem(c.Conn, b) }

// writeProblem writes b, or a problem if b is an error response of net/http, which is a single Write.
func writeProblem(w io.Writer, b []byte) (int, error) {
	status, ok := standardErrorStatus(b)
	if !ok {
		return w.Write(b)
	}
	answer, err := standardErrorResponse(status)
	if err != nil {
		return w.Write(b)
	}
	if _, err := w.Write(answer); err != nil {
		return 0, err
	}
	return len(b), nil
}
