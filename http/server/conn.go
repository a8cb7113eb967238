package server

import (
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"tutti/http/problem"
	"tutti/internal/core"
)

// HeaderRequestID identifies the request, in its log line and in its response.
const HeaderRequestID = "X-Request-Id"

// standardErrorHeaders are the headers of net/http's own error responses, which it writes before any handler is called: for a
// malformed escape in the target, an invalid header, headers over the limit. Their body is plain text, and net/http has no hook for
// them. Responses of handlers always have a Date as well. One error response differs (isExpectationFailed).
const standardErrorHeaders = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// problemListener returns connections on which these error responses are problems too (CONTRACT section 0).
type problemListener struct {
	net.Listener
	buffers *sync.Pool
	limits  *connLimits
}

// Accept waits for the next connection that the limits admit.
func (l problemListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &Conn{Conn: conn, buffers: l.buffers}
		if l.limits.admit(c) {
			return c, nil
		}
	}
}

// Conn is a connection of a Server. Only the goroutine of the request in flight writes to it.
type Conn struct {
	net.Conn
	// buffered holds the response while it is buffered, else nil; buffers is the pool it comes from.
	buffered *[]byte
	buffers  *sync.Pool
	// secure is true for the connection below TLS, where other goroutines write as well.
	secure bool

	limits *connLimits
	// address is the client that the connection counts for; overLimit is true for a connection over the limit.
	address   netip.Addr
	overLimit bool
	// limits.mu guards the fields below. listed is the connection's element in a list of limits; arriving that in limits.arriving
	// since the time since. probed is the time of its first monitoring request, else zero; gone is true once it is no longer counted.
	listed, arriving *list.Element
	since            time.Time
	probed           time.Time
	gone             bool
}

// Reset makes Close reset the connection.
func (c *Conn) Reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	if c.secure {
		_ = c.Close() // net/http would send the TLS close_notify
	}
}

// OverLimit reports whether the connection serves only monitoring. c may be nil.
func (c *Conn) OverLimit() bool { return c != nil && c.overLimit }

// Protect protects c, a connection over the limit, from replacement by a newer one for a while.
func (c *Conn) Protect() { c.limits.protect(c) }

// WriteOnce calls write, which writes a response of length bytes, and sends it by one system call if its size suits. flush flushes the
// response. c may be nil.
func (c *Conn) WriteOnce(length int, flush, write func()) {
	if c == nil || c.secure || length <= minBuffered || length > maxBuffered {
		write()
		return
	}
	c.startBuffering()
	defer func() {
		flush()
		c.flushBuffered()
	}()
	write()
}

// problemConnOf returns the Conn under a connection of net/http, nil for none.
func problemConnOf(conn net.Conn) *Conn {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = wrapped.NetConn()
	}
	c, _ := conn.(*Conn)
	return c
}

// Close closes the connection, which is no longer counted.
func (c *Conn) Close() error {
	c.limits.closed(c)
	return c.Conn.Close()
}

// Responses from minBuffered to maxBuffered bytes are sent in one write; net/http itself does so for shorter ones.
const (
	minBuffered = 3 << 10
	maxBuffered = 16 << 10
)

// Write replaces an error response of net/http, which is a single Write, by a problem.
func (c *Conn) Write(b []byte) (int, error) {
	if c.buffered != nil {
		*c.buffered = append(*c.buffered, b...)
		return len(b), nil
	}
	return writeProblem(c.Conn, b)
}

// startBuffering buffers writes until flushBuffered: net/http writes the head of a response with the start of its body, and then the
// rest. One write saves each side a system call.
func (c *Conn) startBuffering() {
	room, kept := c.buffers.Get().(*[]byte)
	if !kept {
		room = new([]byte)
	}
	c.buffered = room
}

// flushBuffered writes the buffered response. On an error, part of it may have been sent, so the connection is closed.
func (c *Conn) flushBuffered() {
	room := c.buffered
	c.buffered = nil
	if len(*room) > 0 {
		if _, err := c.Conn.Write(*room); err != nil {
			_ = c.Close()
		}
	}
	*room = (*room)[:0]
	c.buffers.Put(room)
}

// CloseWrite lets net/http close its side first, so that the client reads the response before the connection is reset.
func (c *Conn) CloseWrite() error {
	if tcp, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return tcp.CloseWrite()
	}
	return nil
}

// isExpectationFailed reports whether b is net/http's response to an Expect header other than 100-continue, its only error response
// with a Date: status 417, which no handler uses, and no body.
func isExpectationFailed(b []byte) bool {
	return (bytes.HasPrefix(b, []byte("HTTP/1.1 417 ")) || bytes.HasPrefix(b, []byte("HTTP/1.0 417 "))) &&
		bytes.HasSuffix(b, []byte("\r\n\r\n")) && bytes.Contains(b, []byte("\r\nContent-Length: 0\r\n"))
}

// standardErrorStatus returns the status of an error response of net/http; false for anything else.
func standardErrorStatus(b []byte) (int, bool) {
	if isExpectationFailed(b) {
		return http.StatusExpectationFailed, true
	}
	rest, ok := bytes.CutPrefix(b, []byte("HTTP/1.1 "))
	if !ok || len(rest) < 4 {
		return 0, false
	}
	line, _, ok := bytes.Cut(rest, []byte("\r\n"))
	if !ok || len(line) < 3 || !bytes.HasPrefix(rest[len(line):], []byte(standardErrorHeaders)) {
		return 0, false
	}
	status, err := strconv.Atoi(string(line[:3]))
	return status, err == nil && status >= 400
}

// standardErrorResponse returns the problem response that replaces an error response of net/http.
func standardErrorResponse(status int) ([]byte, error) {
	e := &core.Error{Code: core.CodeInvalid, Message: "the request is malformed: its target, its headers or its framing"}
	switch status {
	case http.StatusExpectationFailed:
		e.Message, e.Hint = "the server does not support this Expect header", "leave it out, or send 100-continue"
	case http.StatusRequestHeaderFieldsTooLarge:
		e = &core.Error{Code: problem.CodeHeaderTooLarge, Message: fmt.Sprintf("the headers are over the limit of %d bytes", maxHeaderBytes)}
	}
	return errorResponse(status, e)
}

// errorResponse returns a whole response, head and body. The path is unknown, so it has the members of every surface.
func errorResponse(status int, e *core.Error) ([]byte, error) {
	requestID := NewRequestID()
	p := problem.New(e, "/", requestID).WithIndexMembers()
	p.Status, p.Title = status, http.StatusText(status)
	p = p.WithMetadataMembers(problem.ErrorIDOf(e), "/", time.Now())
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s: %s\r\nConnection: close\r\n\r\n",
		status, p.Title, problem.ContentTypeProblem, len(body), HeaderRequestID, requestID)
	return append([]byte(head), body...), nil
}

type connKey struct{}

// withConn stores a connection for ConnOf.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, problemConnOf(conn))
}

// ConnOf returns the connection of a request, nil for one that did not come through a Server.
func ConnOf(ctx context.Context) *Conn {
	conn, _ := ctx.Value(connKey{}).(*Conn)
	return conn
}

// NewRequestID returns a new X-Request-Id.
func NewRequestID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}
