// Package roundtrip sends HTTP/1.1 requests and reads their responses in the goroutine of the caller. An http.Transport hands each
// request to two goroutines of its connection; for responses that arrive within a millisecond that handover costs more than
// everything else. Unsupported requests go to Config.Fallback.
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
	// maxBodyBytes bounds the body of a request, in bytes: the whole body is written before the response is read.
	maxBodyBytes = 1 << 20
	// maxHeaderBytes bounds the header of a response, in bytes.
	maxHeaderBytes = 1 << 20
	// bufferSize is the size of a connection's read buffer, maxKeptBuffer that of the largest write buffer that is reused, in bytes.
	bufferSize    = 32 << 10
	maxKeptBuffer = 256 << 10
)

// Config configures a Transport. All fields but Fallback have a default.
type Config struct {
	// Dial opens a connection. Default: a net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is the configuration for https. Default: TLS 1.2 or later.
	TLS *tls.Config
	// TLSTimeout bounds a handshake. Default 10 s.
	TLSTimeout time.Duration
	// Idle is the number of idle connections that are kept for each server. Default 2.
	Idle int
	// IdleTimeout is how long an idle connection is kept. Default 90 s.
	IdleTimeout time.Duration
	// Fallback sends the requests that Transport does not support. Required.
	Fallback *http.Transport
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

// Transport is an http.RoundTripper for requests that may be sent twice: when the server closed a reused connection before it
// answered, the request is sent again on a new one. As for http.Transport, those are GET, HEAD and requests with an
// Idempotency-Key header; an empty one is not sent. Requests with a body that is long or of unknown length and requests through
// a proxy go to Config.Fallback.
type Transport struct {
	cfg Config

	mu   sync.Mutex
	idle map[string][]*conn
	// sweeping is set while a timer is running that closes expired connections.
	sweeping bool
	closed   bool
}

// New returns a Transport.
func New(cfg Config) *Transport {
	return &Transport{cfg: cfg.withDefaults(), idle: map[string][]*conn{}}
}

// RoundTrip sends a request. When its context ends, reading the response's body fails too.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.supports(req) {
		return t.cfg.Fallback.RoundTrip(req)
	}
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		closeBody(req)
		return nil, err
	}
	if c := t.takeIdle(keyOf(req)); c != nil {
		res, err := c.send(req)
		if err == nil || !c.closedByServer || ctx.Err() != nil {
			return res, err
		}
		if req, err = rewound(req); err != nil {
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

// supports reports whether Transport supports a request.
func (t *Transport) supports(req *http.Request) bool {
	if req.URL == nil || req.URL.Host == "" || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return false
	}
	if req.Body != nil && req.Body != http.NoBody && (req.ContentLength <= 0 || req.ContentLength > maxBodyBytes || req.GetBody == nil) {
		return false
	}
	_, marked := req.Header["Idempotency-Key"]
	if !marked && req.Method != http.MethodGet && req.Method != http.MethodHead {
		return false
	}
	if req.Close || len(req.TransferEncoding) > 0 || req.Trailer != nil || req.Header.Get("Expect") != "" || req.Header.Get("Upgrade") != "" {
		return false
	}
	if t.cfg.Fallback.Proxy != nil {
		proxy, err := t.cfg.Fallback.Proxy(req)
		return err == nil && proxy == nil
	}
	return true
}

// rewound returns a copy of a request whose body starts from its beginning.
func rewound(req *http.Request) (*http.Request, error) {
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
		port = req.URL.Scheme // net.Dial knows the ports of both names
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
	c.reader = bufio.NewReaderSize(&c.limit, bufferSize)
	c.limit.conn = raw
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

// takeIdle returns an idle connection, nil when there is none. Connections that the server closed or on which it sent unsolicited
// bytes are discarded.
func (t *Transport) takeIdle(key string) *conn {
	for {
		c := t.popIdle(key)
		if c == nil || c.reusable() {
			return c
		}
		_ = c.Close()
	}
}

// popIdle removes and returns the most recently used idle connection, nil when there is none.
func (t *Transport) popIdle(key string) *conn {
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

// putIdle keeps a connection for the next request, or closes it when enough are kept.
func (t *Transport) putIdle(c *conn) {
	t.mu.Lock()
	kept := t.idle[c.key]
	if t.closed || len(kept) >= t.cfg.Idle {
		t.mu.Unlock()
		_ = c.Close()
		return
	}
	defer t.mu.Unlock()
	c.idleSince = time.Now()
	t.idle[c.key] = append(kept, c)
	if !t.sweeping {
		t.sweeping = true
		time.AfterFunc(t.cfg.IdleTimeout, t.sweep)
	}
}

// sweep closes the connections that were idle for IdleTimeout.
func (t *Transport) sweep() {
	var ended []*conn
	defer func() { closeAll(ended) }() // outside of the lock: closing may block
	t.mu.Lock()
	defer t.mu.Unlock()
	next := time.Duration(-1)
	for key, kept := range t.idle {
		old := 0 // the oldest come first
		for old < len(kept) && time.Since(kept[old].idleSince) >= t.cfg.IdleTimeout {
			old++
		}
		ended = append(ended, kept[:old]...)
		if kept = append([]*conn(nil), kept[old:]...); len(kept) == 0 {
			delete(t.idle, key)
			continue
		}
		t.idle[key] = kept
		if left := t.cfg.IdleTimeout - time.Since(kept[0].idleSince); next < 0 || left < next {
			next = left
		}
	}
	if t.sweeping = next >= 0; t.sweeping {
		time.AfterFunc(next, t.sweep)
	}
}

// Close closes the idle connections, and each connection in use once its response was read. Later requests are answered on
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
	t.cfg.Fallback.CloseIdleConnections()
}

func closeAll(conns []*conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

// conn is a connection to a server. It serves one request at a time.
type conn struct {
	net.Conn
	transport *Transport
	key       string
	// socket is the connection's raw socket; nil when the connection has none.
	socket syscall.RawConn
	limit  limitedReader
	reader *bufio.Reader
	// request holds a request, so that its header and body are sent in one write.
	request bytes.Buffer
	// closedByServer is set when the server closed the connection before it sent any of the response.
	closedByServer bool
	idleSince      time.Time
}

// socketOf returns the raw socket of a connection, nil when it has none.
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

// reusable reports whether the server has neither sent anything since the last response nor closed the connection.
func (c *conn) reusable() bool { return c.socket == nil || nothingToRead(c.socket) }

// errHeaderTooLong is returned for a response whose header exceeds maxHeaderBytes.
var errHeaderTooLong = errors.New("the response header is longer than 1 MiB")

// limitedReader reads at most remaining bytes of a connection; a negative remaining means no limit.
type limitedReader struct {
	conn      net.Conn
	remaining int
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.remaining < 0 {
		return l.conn.Read(p)
	}
	if l.remaining == 0 {
		return 0, errHeaderTooLong
	}
	n, err := l.conn.Read(p[:min(len(p), l.remaining)])
	l.remaining -= n
	return n, err
}

// send sends a request and reads the response's header. The connection is closed or kept for reuse once the body was read.
func (c *conn) send(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	res, err := c.exchange(req)
	if err != nil {
		stop()
		_ = c.Close()
		return nil, contextError(ctx, err)
	}
	b := &body{
		ReadCloser: res.Body, conn: c, stop: stop, keepAlive: !res.Close,
		mapError: func(err error) error { return contextError(ctx, err) },
	}
	if res.Body == http.NoBody {
		b.finish(io.EOF)
		return res, nil
	}
	res.Body = b
	return res, nil
}

// exchange writes a request and reads the header of its response.
func (c *conn) exchange(req *http.Request) (*http.Response, error) {
	c.limit.remaining = maxHeaderBytes
	if c.request.Cap() > maxKeptBuffer {
		c.request = bytes.Buffer{}
	}
	c.request.Reset()
	if err := req.Write(&c.request); err != nil {
		return nil, err
	}
	if _, err := c.Write(c.request.Bytes()); err != nil {
		c.closedByServer = true
		return nil, err
	}
	if _, err := c.reader.Peek(1); err != nil {
		c.closedByServer = true
		return nil, err
	}
	res, err := http.ReadResponse(c.reader, req)
	for err == nil && res.StatusCode/100 == 1 && res.StatusCode != http.StatusSwitchingProtocols { // informational responses
		res, err = http.ReadResponse(c.reader, req)
	}
	c.limit.remaining = -1
	return res, err
}

// contextError returns the context's error when the context has ended, which closes the connection, otherwise err.
func contextError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// errBodyClosed is returned by reads of a closed body.
var errBodyClosed = errors.New("the body was closed")

// body is the body of a response. It must be used by one goroutine at a time.
type body struct {
	io.ReadCloser
	conn *conn
	stop func() bool
	// mapError maps a read error to the error that the caller sees.
	mapError  func(error) error
	keepAlive bool
	// err is the error of further reads once the connection was released or closed.
	err error
}

// Read reads the body. After the last byte the connection can be reused.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		b.finish(io.EOF)
	default:
		b.finish(b.mapError(err))
	}
	return n, b.err
}

// Close discards the rest of the body and closes the connection.
func (b *body) Close() error {
	if b.err == nil {
		b.finish(errBodyClosed)
	}
	return nil
}

// finish releases the connection for reuse after a complete response, and closes it otherwise.
func (b *body) finish(why error) {
	b.err = why
	if b.stop() && errors.Is(why, io.EOF) && b.keepAlive && b.conn.reader.Buffered() == 0 {
		b.conn.transport.putIdle(b.conn)
		return
	}
	_ = b.conn.Close()
}
