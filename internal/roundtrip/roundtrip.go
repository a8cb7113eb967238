// Package roundtrip sends HTTP/1.1 requests and reads their answers in the goroutine of the caller. A http.Transport hands each
// request to two goroutines of its connection and gets the answer from them, which takes longer and costs more than all else
// about a request that is answered within a millisecond. What is special it leaves to one of those.
package roundtrip

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

const (
	// maxBody is how long the body of a request may be, in bytes: it is written as a whole before any of the answer is read.
	maxBody = 1 << 20
	// maxHead bounds the head of an answer, in bytes.
	maxHead = 1 << 20
	// bufferSize is how much is read at once, keptBuffer how long a request may be whose room is kept for the next, in bytes.
	bufferSize = 32 << 10
	keptBuffer = 256 << 10
)

// Config says how servers are reached. All but Otherwise has a default.
type Config struct {
	// Dial opens a connection. Default: a net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is for addresses that begin with https. Default: Go's own.
	TLS *tls.Config
	// TLSTimeout bounds a handshake. Default 10 s.
	TLSTimeout time.Duration
	// Idle is how many connections to a server are kept for the next requests. Default 2.
	Idle int
	// IdleTimeout is how long they are. Default 90 s.
	IdleTimeout time.Duration
	// Otherwise takes the requests that Transport does not.
	Otherwise *http.Transport
}

func (c Config) withDefaults() Config {
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.TLSTimeout == 0 {
		c.TLSTimeout = 10 * time.Second
	}
	if c.Idle == 0 {
		c.Idle = http.DefaultMaxIdleConnsPerHost
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = 90 * time.Second
	}
	return c
}

// Transport is an http.RoundTripper. It takes requests that may be sent twice: the server may have closed a connection that was
// kept, which is noticed when there is no answer, and then the request is sent again on a new one. Those are GET, HEAD, and what has
// an Idempotency-Key, as for http.Transport: an empty one is not sent. Requests with a long body or a body of unknown length, and
// those to a server behind a proxy, go to Config.Otherwise.
type Transport struct {
	cfg Config

	mu   sync.Mutex
	idle map[string][]*conn
	// sweeping is set while a timer runs that closes what was idle for too long.
	sweeping bool
	closed   bool
}

// New makes a Transport.
func New(cfg Config) *Transport {
	return &Transport{cfg: cfg.withDefaults(), idle: map[string][]*conn{}}
}

// RoundTrip sends a request. The end of its context ends the reading of the answer's body too.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.takes(req) {
		return t.cfg.Otherwise.RoundTrip(req)
	}
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		closeBody(req)
		return nil, err
	}
	if c := t.take(keyOf(req)); c != nil {
		res, err := c.send(req)
		if err == nil || !c.gone || ctx.Err() != nil {
			return res, err
		}
		if req, err = again(req); err != nil {
			return nil, err
		}
	}
	c, err := t.dial(ctx, req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	return c.send(req)
}

// takes reports whether a request can be sent here.
func (t *Transport) takes(req *http.Request) bool {
	if req.URL == nil || req.URL.Host == "" || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return false
	}
	if req.Body != nil && req.Body != http.NoBody && (req.ContentLength <= 0 || req.ContentLength > maxBody || req.GetBody == nil) {
		return false
	}
	_, marked := req.Header["Idempotency-Key"]
	if !marked && req.Method != http.MethodGet && req.Method != http.MethodHead {
		return false
	}
	if req.Close || len(req.TransferEncoding) > 0 || req.Trailer != nil || req.Header.Get("Expect") != "" || req.Header.Get("Upgrade") != "" {
		return false
	}
	if t.cfg.Otherwise.Proxy != nil {
		proxy, err := t.cfg.Otherwise.Proxy(req)
		return err == nil && proxy == nil
	}
	return true
}

// again returns a request with its body from the start.
func again(req *http.Request) (*http.Request, error) {
	if req.GetBody == nil {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	fresh := req.WithContext(req.Context())
	fresh.Body = body
	return fresh, nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

func keyOf(req *http.Request) string { return req.URL.Scheme + "://" + req.URL.Host }

func addressOf(req *http.Request) string {
	port := req.URL.Port()
	if port == "" {
		port = req.URL.Scheme // a name of the port
	}
	return net.JoinHostPort(req.URL.Hostname(), port)
}

// dial opens a connection for a request.
func (t *Transport) dial(ctx context.Context, req *http.Request) (*conn, error) {
	opened, err := t.cfg.Dial(ctx, "tcp", addressOf(req))
	if err != nil {
		return nil, err
	}
	raw := opened
	if req.URL.Scheme == "https" {
		if raw, err = t.handshake(ctx, raw, req.URL.Hostname()); err != nil {
			return nil, err
		}
	}
	c := &conn{Conn: raw, transport: t, key: keyOf(req), socket: socketOf(opened)}
	c.from = bufio.NewReaderSize(&c.limited, bufferSize)
	c.limited.conn = raw
	return c, nil
}

func (t *Transport) handshake(ctx context.Context, raw net.Conn, host string) (net.Conn, error) {
	cfg := t.cfg.TLS.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	cfg.NextProtos = []string{"http/1.1"}
	within, cancel := context.WithTimeout(ctx, t.cfg.TLSTimeout)
	defer cancel()
	secure := tls.Client(raw, cfg)
	if err := secure.HandshakeContext(within); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return secure, nil
}

// take returns a connection that is idle, nil for none. Those that the server has closed, or on which it has said what nobody asked
// for, are none.
func (t *Transport) take(key string) *conn {
	for {
		c := t.last(key)
		if c == nil || c.quiet() {
			return c
		}
		_ = c.Close()
	}
}

// last returns the connection that was used last of those that are idle.
func (t *Transport) last(key string) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.idle[key]
	if len(kept) == 0 {
		return nil
	}
	c := kept[len(kept)-1]
	kept[len(kept)-1] = nil
	t.idle[key] = kept[:len(kept)-1]
	return c
}

// put keeps a connection for the next request.
func (t *Transport) put(c *conn) {
	t.mu.Lock()
	kept := t.idle[c.key]
	if t.closed || len(kept) >= t.cfg.Idle {
		t.mu.Unlock()
		_ = c.Close()
		return
	}
	defer t.mu.Unlock()
	c.since = time.Now()
	t.idle[c.key] = append(kept, c)
	if !t.sweeping {
		t.sweeping = true
		time.AfterFunc(t.cfg.IdleTimeout, t.sweep)
	}
}

// sweep closes the connections that nobody has used for too long.
func (t *Transport) sweep() {
	var ended []*conn
	defer func() { closeAll(ended) }() // which may take a while
	t.mu.Lock()
	defer t.mu.Unlock()
	next := time.Duration(-1)
	for key, kept := range t.idle {
		old := 0 // the last used is the last
		for old < len(kept) && time.Since(kept[old].since) >= t.cfg.IdleTimeout {
			old++
		}
		ended = append(ended, kept[:old]...)
		if kept = append([]*conn(nil), kept[old:]...); len(kept) == 0 {
			delete(t.idle, key)
			continue
		}
		t.idle[key] = kept
		if left := t.cfg.IdleTimeout - time.Since(kept[0].since); next < 0 || left < next {
			next = left
		}
	}
	if t.sweeping = next >= 0; t.sweeping {
		time.AfterFunc(next, t.sweep)
	}
}

// Close closes the connections that are idle, and each other one when its answer was read. Requests after it are answered on
// connections that are not kept.
func (t *Transport) Close() {
	var ended []*conn
	t.mu.Lock()
	t.closed = true
	for key, kept := range t.idle {
		ended = append(ended, kept...)
		delete(t.idle, key)
	}
	t.mu.Unlock()
	closeAll(ended)
	t.cfg.Otherwise.CloseIdleConnections()
}

func closeAll(conns []*conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

// conn is a connection to a server. One request is on it at a time.
type conn struct {
	net.Conn
	transport *Transport
	key       string
	// socket is what it is to the system; nil where that is not known.
	socket  syscall.RawConn
	limited limited
	from    *bufio.Reader
	// to takes a request, so that its head and its body are sent together.
	to bytes.Buffer
	// gone is set when the server had closed the connection before it answered any of the request.
	gone  bool
	since time.Time
}

// socketOf returns what a connection is to the system, nil where that is not to be had.
func socketOf(c net.Conn) syscall.RawConn {
	known, is := c.(syscall.Conn)
	if !is {
		return nil
	}
	socket, err := known.SyscallConn()
	if err != nil {
		return nil
	}
	return socket
}

// quiet reports whether nothing has come from the server since the last answer, and no end either.
func (c *conn) quiet() bool { return c.socket == nil || silent(c.socket) }

// errHead is what an answer with too long a head is.
var errHead = errors.New("the head of the answer is too long")

// limited reads no more of a connection than is left; less than nothing is no limit.
type limited struct {
	conn net.Conn
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return l.conn.Read(p)
	}
	if l.left == 0 {
		return 0, errHead
	}
	n, err := l.conn.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// send sends a request and reads the head of the answer. The connection is closed, or kept, when that of the body has been read.
func (c *conn) send(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	res, err := c.ask(req)
	if err != nil {
		stop()
		_ = c.Close()
		return nil, cause(ctx, err)
	}
	b := &body{
		ReadCloser: res.Body, conn: c, stop: stop, keep: !res.Close,
		cause: func(err error) error { return cause(ctx, err) },
	}
	if res.Body == http.NoBody {
		b.end(io.EOF)
		return res, nil
	}
	res.Body = b
	return res, nil
}

// ask writes a request and reads the head of its answer.
func (c *conn) ask(req *http.Request) (*http.Response, error) {
	c.limited.left = maxHead
	if c.to.Cap() > keptBuffer {
		c.to = bytes.Buffer{}
	}
	c.to.Reset()
	if err := req.Write(&c.to); err != nil {
		return nil, err
	}
	if _, err := c.Write(c.to.Bytes()); err != nil {
		c.gone = true
		return nil, err
	}
	if _, err := c.from.Peek(1); err != nil {
		c.gone = true
		return nil, err
	}
	res, err := http.ReadResponse(c.from, req)
	for err == nil && res.StatusCode/100 == 1 && res.StatusCode != http.StatusSwitchingProtocols { // what comes before an answer
		res, err = http.ReadResponse(c.from, req)
	}
	c.limited.left = -1
	return res, err
}

// cause returns the reason of an error: who ends the context has the connection closed.
func cause(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// errClosed is what is read of a body that was closed.
var errClosed = errors.New("the body was closed")

// body is the body of an answer. One goroutine reads and closes it.
type body struct {
	io.ReadCloser
	conn *conn
	stop func() bool
	// cause returns the reason of an error.
	cause func(error) error
	keep  bool
	// ended is what further reading gives, once the connection was given back or closed.
	ended error
}

// Read reads on. The connection is given back with the last byte.
func (b *body) Read(p []byte) (int, error) {
	if b.ended != nil {
		return 0, b.ended
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		b.end(io.EOF)
	default:
		b.end(b.cause(err))
	}
	return n, b.ended
}

// Close gives up what was not read, and the connection with it.
func (b *body) Close() error {
	if b.ended == nil {
		b.end(errClosed)
	}
	return nil
}

// end returns the connection back, or closes it when it is not known to be at the end of an answer.
func (b *body) end(why error) {
	b.ended = why
	if b.stop() && errors.Is(why, io.EOF) && b.keep && b.conn.from.Buffered() == 0 {
		b.conn.transport.put(b.conn)
		return
	}
	_ = b.conn.Close()
}
