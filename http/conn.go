package http

import (
	"bytes"
	"container/list"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"tutti/internal/core"
)

// standardErrorHeaders is what net/http writes behind the status line when it refuses a request before any handler sees it: a
// malformed escape in the target, a bad header, headers over the limit. Its body is plain text, and there is no hook;
// an answer of a handler always has a Date as well. One refusal differs (unmet).
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
		c := &problemConn{Conn: conn, buffers: l.buffers}
		if l.limits.admit(c) {
			return c, nil
		}
	}
}

// problemConn is a connection of a Server. Only the goroutine of the request in flight writes to it.
type problemConn struct {
	net.Conn
	// buffered holds the response while it is buffered, else nil; buffers is the pool it comes from.
	buffered *[]byte
	buffers  *sync.Pool
	// secure is true below TLS, where other goroutines write as well.
	secure bool

	limits *connLimits
	// address is what the connection is counted by; over is true for one beyond the limits.
	address netip.Addr
	over    bool
	// listed is its element in a list of limits, whose lock guards what follows; arriving is that in limits.arriving, with since
	// when. probed is when it got a request of
	// monitoring, the zero Time before; gone is true once it is not counted any more.
	listed, arriving *list.Element
	since            time.Time
	probed           time.Time
	gone             bool
}

// problemConnOf returns the problemConn under a connection of net/http, nil for none.
func problemConnOf(conn net.Conn) *problemConn {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = wrapped.NetConn()
	}
	c, _ := conn.(*problemConn)
	return c
}

// Close closes the connection, which is no longer counted.
func (c *problemConn) Close() error {
	c.limits.closed(c)
	return c.Conn.Close()
}

// Responses from minBuffered to maxBuffered bytes are sent in one write; net/http itself does so for shorter ones.
const (
	minBuffered = 3 << 10
	maxBuffered = 16 << 10
)

// Write replaces an error response of net/http, which is a single Write, by a problem.
func (c *problemConn) Write(b []byte) (int, error) {
	if c.buffered != nil {
		*c.buffered = append(*c.buffered, b...)
		return len(b), nil
	}
	return writeProblem(c.Conn, b)
}

// startBuffering buffers writes until flushBuffered: net/http writes the head of a response with the start of its body, and then the
// rest. One write saves each side a system call.
func (c *problemConn) startBuffering() {
	room, kept := c.buffers.Get().(*[]byte)
	if !kept {
		room = new([]byte)
	}
	c.buffered = room
}

// flushBuffered writes the buffered response. On an error, part of it may have been sent, so the connection is closed.
func (c *problemConn) flushBuffered() {
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
func (c *problemConn) CloseWrite() error {
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
		e = &core.Error{Code: codeHeaderTooLarge, Message: fmt.Sprintf("the headers are over the limit of %d bytes", maxHeaderBytes)}
	}
	return errorResponse(status, e)
}

// errorResponse returns a whole response, head and body. The path is unknown, so it has the members of every surface.
func errorResponse(status int, e *core.Error) ([]byte, error) {
	requestID := newRequestID()
	p := newProblem(e, "/", requestID).withIndexMembers()
	p.Status, p.Title = status, http.StatusText(status)
	p = p.withMetadataMembers(errorIDOf(e), "/", time.Now())
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s: %s\r\nConnection: close\r\n\r\n",
		status, p.Title, contentTypeProblem, len(body), headerRequestID, requestID)
	return append([]byte(head), body...), nil
}
