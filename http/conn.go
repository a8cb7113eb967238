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

// problemListener makes connections on which such refusals are problems too (CONTRACT section 0).
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

// problemConn is a connection of a Server. Its Writes are made by one goroutine, that of the request in hand.
type problemConn struct {
	net.Conn
	// buffered is what is kept of an answer, nil where nothing is; rooms has room for it.
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

// problemConnOf returns the problemConn that a connection of net/http is, or that is below it; nil where there is none.
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

// An answer that is longer than one and no longer than the other is sent in one piece: net/http itself sends shorter ones so.
const (
	minBuffered = 3 << 10
	maxBuffered = 16 << 10
)

// Write replaces a refusal of net/http, which is one Write of its own, by a problem.
func (c *problemConn) Write(b []byte) (int, error) {
	if c.buffered != nil {
		*c.buffered = append(*c.buffered, b...)
		return len(b), nil
	}
	return writeProblem(c.Conn, b)
}

// startBuffering keeps what is written until release: net/http writes the head of an answer, and as much of its body as fits beside it, and
// then the rest. Sent together they cost each side one call of the system less.
func (c *problemConn) startBuffering() {
	room, kept := c.buffers.Get().(*[]byte)
	if !kept {
		room = new([]byte)
	}
	c.buffered = room
}

// flushBuffered writes what was kept. Where that fails a part may have been sent, so that nothing can follow: the connection is closed.
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

// CloseWrite lets net/http end its side first, so that the client reads the answer before the connection is reset.
func (c *problemConn) CloseWrite() error {
	if tcp, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return tcp.CloseWrite()
	}
	return nil
}

// isExpectationFailed tells net/http's answer to an Expect header other than 100-continue, the one refusal that it writes as an answer
// with a Date: a head of status 417, which no handler gives, and no body.
func isExpectationFailed(b []byte) bool {
	return (bytes.HasPrefix(b, []byte("HTTP/1.1 417 ")) || bytes.HasPrefix(b, []byte("HTTP/1.0 417 "))) &&
		bytes.HasSuffix(b, []byte("\r\n\r\n")) && bytes.Contains(b, []byte("\r\nContent-Length: 0\r\n"))
}

// standardErrorStatus returns the status of a refusal of net/http.
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

// standardErrorResponse is the whole answer to what net/http refuses.
func standardErrorResponse(status int) ([]byte, error) {
	e := &core.Error{Code: core.CodeInvalid, Message: "the request is malformed: its target, its headers or its framing"}
	switch status {
	case http.StatusExpectationFailed:
		e.Message, e.Hint = "the header Expect asks for what this server does not do", "leave it out, or send 100-continue"
	case http.StatusRequestHeaderFieldsTooLarge:
		e = &core.Error{Code: codeHeaderTooLarge, Message: fmt.Sprintf("the headers are over the limit of %d bytes", maxHeaderBytes)}
	}
	return errorResponse(status, e)
}

// errorResponse is a whole answer, head and body. The path is not known, so it has the members of every surface.
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
