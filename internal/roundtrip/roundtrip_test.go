package roundtrip_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/roundtrip"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dialer counts the connections opened, the connections still open and the writes to them.
type dialer struct{ opened, open, writes atomic.Int64 }

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.opened.Add(1)
	d.open.Add(1)
	return &counted{Conn: c, d: d}, nil
}

type counted struct {
	net.Conn
	once sync.Once
	d    *dialer
}

func (c *counted) SyscallConn() (syscall.RawConn, error) { return c.Conn.(syscall.Conn).SyscallConn() }

func (c *counted) Write(p []byte) (int, error) {
	c.d.writes.Add(1)
	return c.Conn.Write(p)
}

func (c *counted) Close() error {
	c.once.Do(func() { c.d.open.Add(-1) })
	return c.Conn.Close()
}

func transport(t *testing.T, cfg roundtrip.Config) (*roundtrip.Transport, *dialer) {
	t.Helper()
	d := new(dialer)
	cfg.Dial = d.dial
	if cfg.Fallback == nil {
		cfg.Fallback = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("unexpected request to the fallback")
		}}
	}
	x := roundtrip.New(cfg)
	t.Cleanup(func() {
		x.Close()
		if n := d.open.Load(); n != 0 {
			t.Errorf("%d connections left open", n)
		}
	})
	return x, d
}

// newRequest returns a request that may be sent twice.
func newRequest(ctx context.Context, t *testing.T, address, text string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Idempotency-Key"] = nil
	if text != "" { // of a type that net/http does not know
		req.GetBody = func() (io.ReadCloser, error) {
			return io.NopCloser(io.LimitReader(strings.NewReader(text), 1<<30)), nil
		}
		req.Body, _ = req.GetBody()
	}
	return req
}

// send sends a request and returns the status and body of the response.
func send(t *testing.T, x http.RoundTripper, req *http.Request) string {
	t.Helper()
	res, err := x.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(res.StatusCode, " ", string(text))
}

func echo(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if r.URL.Query().Has("none") {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if r.URL.Query().Has("last") {
		w.Header().Set("Connection", "close")
	}
	if r.URL.Query().Has("early") {
		w.WriteHeader(http.StatusEarlyHints)
	}
	_, key := r.Header["Idempotency-Key"]
	fmt.Fprintf(w, "%s %s %t %s %s", r.Method, r.URL.Path, key, r.Header.Get("X-A"), text)
	if r.URL.Query().Has("chunks") {
		w.(http.Flusher).Flush()
		fmt.Fprint(w, strings.Repeat("x", 1<<20))
	}
}

// TestSameAsHTTPTransport: responses equal those of http.Transport, and sequential requests share one connection.
func TestSameAsHTTPTransport(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	usual := &http.Transport{}
	defer usual.CloseIdleConnections()
	x, d := transport(t, roundtrip.Config{})
	asked := int64(0)
	for _, query := range []string{"", "?none", "?early", "?chunks", ""} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut} {
			for _, text := range []string{"", "hello", strings.Repeat("y", 1<<20)} {
				make := func() *http.Request {
					req := newRequest(t.Context(), t, server.URL+"/p/a%2Fth"+query, text)
					req.Method = method
					req.Header.Set("X-A", "b")
					return req
				}
				if got, want := send(t, x, make()), send(t, usual, make()); got != want {
					t.Errorf("%s %s of %d bytes: %.80q, want %.80q", method, query, len(text), got, want)
				}
				if asked++; d.writes.Load() != asked {
					t.Fatalf("%s of %d bytes was written in parts", method, len(text))
				}
			}
		}
	}
	if n := d.opened.Load(); n != 1 {
		t.Errorf("%d connections were opened for one request after another", n)
	}
	send(t, x, newRequest(t.Context(), t, server.URL+"?last", ""))
	if n := d.open.Load(); n != 0 {
		t.Errorf("a connection that the server closes is kept")
	}
	send(t, x, newRequest(t.Context(), t, server.URL, ""))
	if n := d.opened.Load(); n != 2 {
		t.Errorf("%d connections were opened", n)
	}
}

// TestFallback: unsupported requests go to the fallback.
func TestFallback(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	other := new(dialer)
	proxied := false
	x, own := transport(t, roundtrip.Config{Fallback: &http.Transport{
		DialContext: other.dial, DisableKeepAlives: true,
		Proxy: func(*http.Request) (*url.URL, error) {
			if proxied {
				return url.Parse(server.URL)
			}
			return nil, nil
		},
	}})
	for name, change := range map[string]func(req *http.Request){
		"not repeatable":    func(req *http.Request) { delete(req.Header, "Idempotency-Key") },
		"long":              func(req *http.Request) { *req = *newRequest(t.Context(), t, server.URL, strings.Repeat("x", 1<<20+1)) },
		"of unknown length": func(req *http.Request) { req.ContentLength = -1 },
		"read once":         func(req *http.Request) { req.GetBody = nil },
		"chunked":           func(req *http.Request) { req.TransferEncoding = []string{"chunked"} },
		"close":             func(req *http.Request) { req.Close = true },
		"expecting":         func(req *http.Request) { req.Header.Set("Expect", "100-continue") },
		"upgrading":         func(req *http.Request) { req.Header.Set("Upgrade", "websocket") },
		"with a trailer":    func(req *http.Request) { req.Trailer = http.Header{"X-Sum": nil} },
		"behind a proxy":    func(*http.Request) { proxied = true },
	} {
		proxied = false
		req := newRequest(t.Context(), t, server.URL, "hello")
		change(req)
		before := other.opened.Load()
		if got := send(t, x, req); !strings.HasPrefix(got, "200 POST") {
			t.Errorf("%s: %q", name, got)
		}
		if own.opened.Load() != 0 || other.opened.Load() == before {
			t.Errorf("%s: not sent by the fallback", name)
		}
	}
}

// TestClosedByTheServer: a request on a kept connection that the server closed is sent again once, on a new connection.
func TestClosedByTheServer(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	server.Config.IdleTimeout = 50 * time.Millisecond
	server.Start()
	defer server.Close()
	x, d := transport(t, roundtrip.Config{})
	send(t, x, newRequest(t.Context(), t, server.URL, "a"))
	time.Sleep(300 * time.Millisecond)
	if got := send(t, x, newRequest(t.Context(), t, server.URL+"/p", "hello")); got != "200 POST /p false  hello" || d.opened.Load() != 2 {
		t.Errorf("%q on %d connections", got, d.opened.Load())
	}
	server.CloseClientConnections()
	server.Listener.Close()
	if _, err := x.RoundTrip(newRequest(t.Context(), t, server.URL, "hello")); err == nil || d.opened.Load() != 2 {
		t.Errorf("%v without a server", err)
	}
}

const resetText = "reset"

// rawServer starts a server that responds to the nth request with the nth text, and to later requests with the last one. An empty text
// closes the connection.
func rawServer(t *testing.T, texts ...string) (address string, asked *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked = new(atomic.Int64)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					text := texts[min(int(asked.Add(1)), len(texts))-1]
					if tcp, ok := c.(*net.TCPConn); ok && text == resetText {
						_ = tcp.SetLinger(0)
					}
					if text == "" || text == resetText {
						return
					}
					if _, err := io.WriteString(c, text); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return "http://" + l.Addr().String(), asked
}

// TestMalformedResponses: malformed responses are errors; the request is not repeated and the connection not kept.
func TestMalformedResponses(t *testing.T) {
	for name, text := range map[string]string{
		"none":           "",
		"not HTTP":       "hello?\r\n\r\n",
		"endless header": "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
		"bad length":     "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
	} {
		address, asked := rawServer(t, text)
		x, d := transport(t, roundtrip.Config{})
		if res, err := x.RoundTrip(newRequest(t.Context(), t, address, "hello")); err == nil {
			t.Errorf("%s: %s", name, res.Status)
			res.Body.Close()
		}
		if asked.Load() != 1 || d.open.Load() != 0 {
			t.Errorf("%s: asked %d times, %d connections are open", name, asked.Load(), d.open.Load())
		}
	}
	address, _ := rawServer(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello")
	x, d := transport(t, roundtrip.Config{})
	if got := send(t, x, newRequest(t.Context(), t, address, "")); got != "200 he" || d.open.Load() != 0 {
		t.Errorf("more than Content-Length: %q, %d connections are open", got, d.open.Load())
	}
}

// TestContextEnds: the end of the context ends a request in every phase and closes its connection.
func TestContextEnds(t *testing.T) {
	for name, text := range map[string]string{
		"before the head": "HTTP/1.1", "within the body": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
	} {
		for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
			address, asked := rawServer(t, text)
			x, d := transport(t, roundtrip.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			if errors.Is(ended, context.DeadlineExceeded) {
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			}
			defer cancel()
			go func() {
				for asked.Load() == 0 {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(10 * time.Millisecond)
				if errors.Is(ended, context.Canceled) {
					cancel()
				}
			}()
			res, err := x.RoundTrip(newRequest(ctx, t, address, "hello"))
			if err == nil {
				_, err = io.ReadAll(res.Body)
				if _, again := res.Body.Read(make([]byte, 1)); !errors.Is(again, ended) {
					t.Errorf("%s: the next read returned %v", name, again)
				}
				res.Body.Close()
			}
			if !errors.Is(err, ended) || d.open.Load() != 0 {
				t.Errorf("%s: %v, %d connections are open", name, err, d.open.Load())
			}
			if _, err := x.RoundTrip(newRequest(ctx, t, address, "hello")); !errors.Is(err, ended) || d.opened.Load() != 1 {
				t.Errorf("%s: after the end %v, %d connections were opened", name, err, d.opened.Load())
			}
		}
	}
}

// TestTruncatedBody: a truncated body is an error, and closing a body early closes the connection.
func TestTruncatedBody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	x, d := transport(t, roundtrip.Config{})
	res, err := x.RoundTrip(newRequest(t.Context(), t, server.URL, ""))
	if err == nil {
		_, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) || d.open.Load() != 0 {
		t.Errorf("cut: %v, %d connections are open", err, d.open.Load())
	}
	long := httptest.NewServer(http.HandlerFunc(echo))
	defer long.Close()
	res, err = x.RoundTrip(newRequest(t.Context(), t, long.URL+"?chunks", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || d.open.Load() != 0 {
		t.Errorf("closed: %v, %d connections are open", err, d.open.Load())
	}
	if n, err := res.Body.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a closed body returned %d bytes and %v", n, err)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // the client below does not trust the certificate
	server.StartTLS()
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	x, d := transport(t, roundtrip.Config{TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}})
	for range 3 {
		if got := send(t, x, newRequest(t.Context(), t, server.URL, "hello")); got != "200 POST / false  hello" {
			t.Errorf("got %q", got)
		}
	}
	if d.opened.Load() != 1 {
		t.Errorf("%d connections were opened", d.opened.Load())
	}
	stranger, d := transport(t, roundtrip.Config{})
	if _, err := stranger.RoundTrip(newRequest(t.Context(), t, server.URL, "hello")); err == nil || d.open.Load() != 0 {
		t.Errorf("an untrusted server: %v, %d connections are open", err, d.open.Load())
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	slow, d := transport(t, roundtrip.Config{TLSTimeout: 50 * time.Millisecond})
	if _, err := slow.RoundTrip(newRequest(t.Context(), t, "https://"+silent.Addr().String(), "")); !errors.Is(err, context.DeadlineExceeded) || d.open.Load() != 0 {
		t.Errorf("no TLS handshake: %v, %d connections are open", err, d.open.Load())
	}
}

// TestIdle: at most Config.Idle connections are kept, for at most IdleTimeout.
func TestIdle(t *testing.T) {
	here, done := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		here <- struct{}{}
		<-done
	}))
	defer server.Close()
	x, d := transport(t, roundtrip.Config{Idle: 3, IdleTimeout: 200 * time.Millisecond})
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { send(t, x, newRequest(t.Context(), t, server.URL, "")) })
	}
	for range 5 {
		<-here
	}
	close(done)
	all.Wait()
	if n := d.open.Load(); n != 3 {
		t.Errorf("%d connections are kept", n)
	}
	for until := time.Now().Add(10 * time.Second); d.open.Load() > 0 && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := d.open.Load(); n != 0 {
		t.Errorf("%d connections are still open", n)
	}
}

// TestConcurrent: concurrent requests get their own responses.
func TestConcurrent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	x, d := transport(t, roundtrip.Config{Idle: 8, IdleTimeout: 5 * time.Millisecond})
	var all sync.WaitGroup
	for who := range 8 {
		all.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				text := fmt.Sprint(who, "-", i)
				if i%7 == 0 {
					go cancel()
				}
				res, err := x.RoundTrip(newRequest(ctx, t, server.URL, text))
				var got bytes.Buffer
				if err == nil {
					_, err = got.ReadFrom(res.Body)
					res.Body.Close()
				}
				if want := "POST / false  " + text; err == nil && got.String() != want || err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("got %q and %v, want %q", got.String(), err, want)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if n := d.opened.Load(); n > 600 {
		t.Errorf("%d connections were opened", n)
	}
}

// TestClosed: requests after Close are answered on connections that are not kept.
func TestClosed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	x, d := transport(t, roundtrip.Config{})
	send(t, x, newRequest(t.Context(), t, server.URL, ""))
	x.Close()
	send(t, x, newRequest(t.Context(), t, server.URL, ""))
	if d.opened.Load() != 2 || d.open.Load() != 0 {
		t.Errorf("%d connections were opened, %d are open", d.opened.Load(), d.open.Load())
	}
}

// TestConnectionRefused: a refused connection is returned as it is.
func TestConnectionRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	x, _ := transport(t, roundtrip.Config{})
	var refused *net.OpError
	if _, err := x.RoundTrip(newRequest(t.Context(), t, "http://"+l.Addr().String(), "hello")); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}

const okResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestRepeatedOnce: on a reused connection only a request that got no response at all is sent again.
func TestRepeatedOnce(t *testing.T) {
	address, asked := rawServer(t, okResponse, "hello?\r\n\r\n")
	x, _ := transport(t, roundtrip.Config{})
	send(t, x, newRequest(t.Context(), t, address, "a"))
	if res, err := x.RoundTrip(newRequest(t.Context(), t, address, "b")); err == nil || asked.Load() != 2 {
		t.Errorf("%v, asked %d times", res, asked.Load())
	}
	for _, end := range []string{"", resetText} {
		address, asked = rawServer(t, okResponse, end, okResponse)
		x, d := transport(t, roundtrip.Config{})
		if send(t, x, newRequest(t.Context(), t, address, "a")); d.open.Load() != 1 {
			t.Fatal("no connection was kept")
		}
		if got := send(t, x, newRequest(t.Context(), t, address, "b")); got != "200 ok" || asked.Load() != 3 {
			t.Errorf("%q: %s, asked %d times", end, got, asked.Load())
		}
	}
	address, asked = rawServer(t, okResponse, "HTTP/1.1")
	x, _ = transport(t, roundtrip.Config{})
	send(t, x, newRequest(t.Context(), t, address, "a"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if res, err := x.RoundTrip(newRequest(ctx, t, address, "b")); !errors.Is(err, context.DeadlineExceeded) || asked.Load() != 2 {
		t.Errorf("given up: %v, %v, asked %d times", res, err, asked.Load())
	}
}

// TestUnsolicitedBytes: unsolicited bytes are not taken for the response of the next request.
func TestUnsolicitedBytes(t *testing.T) {
	for _, late := range []string{okResponse, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "?"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served, say, said := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(served)
			for n := range 2 {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", n)
				if n == 0 {
					<-say
					_, _ = io.WriteString(c, late)
					close(said)
				}
			}
		}()
		x, d := transport(t, roundtrip.Config{})
		address := "http://" + l.Addr().String()
		if got := send(t, x, newRequest(t.Context(), t, address, "")); got != "200 0" || d.open.Load() != 1 {
			t.Errorf("%q, and %d connections are kept", got, d.open.Load())
		}
		close(say)
		<-said
		if got := send(t, x, newRequest(t.Context(), t, address, "")); got != "200 1" || d.opened.Load() != 2 {
			t.Errorf("after the unsolicited %q the response is %q, on %d connections", late, got, d.opened.Load())
		}
		<-served
		l.Close()
	}
}

// TestSwitchingProtocols: 101 Switching Protocols is a final response, 103 Early Hints is not.
func TestSwitchingProtocols(t *testing.T) {
	address, _ := rawServer(t, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n\r\n")
	x, _ := transport(t, roundtrip.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	res, err := x.RoundTrip(newRequest(ctx, t, address, ""))
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", res, err)
	}
	res.Body.Close()
}

// TestOneServerPerConnection: a connection is reused only for its own scheme, host and port.
func TestOneServerPerConnection(t *testing.T) {
	first, _ := rawServer(t, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")
	second, _ := rawServer(t, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2")
	x, d := transport(t, roundtrip.Config{})
	for range 3 {
		for address, want := range map[string]string{first: "200 1", second: "200 2"} {
			if got := send(t, x, newRequest(t.Context(), t, address, "")); got != want {
				t.Errorf("%s returned %q", address, got)
			}
		}
	}
	secure := strings.Replace(first, "http", "https", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if res, err := x.RoundTrip(newRequest(ctx, t, secure, "")); err == nil {
		t.Errorf("a server without TLS returned %s", res.Status)
	}
	if d.opened.Load() != 3 {
		t.Errorf("%d connections were opened", d.opened.Load())
	}
}

// TestBodiesAreClosed: RoundTrip closes the request's body on success and on failure.
func TestBodiesAreClosed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	x, _ := transport(t, roundtrip.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ctx := range map[string]context.Context{"sent": t.Context(), "given up": ended} {
		closed := false
		req := newRequest(ctx, t, server.URL, "hello")
		req.Body = &closeRecorder{req.Body, &closed}
		if res, err := x.RoundTrip(req); err == nil {
			res.Body.Close()
		}
		if !closed {
			t.Errorf("%s: the body is open", name)
		}
	}
	server.Close()
	closed := false
	req := newRequest(t.Context(), t, server.URL, "hello")
	req.Body = &closeRecorder{req.Body, &closed}
	if _, err := x.RoundTrip(req); err == nil || !closed {
		t.Errorf("refused connection: %v, the body is closed: %t", err, closed)
	}
}

type closeRecorder struct {
	io.ReadCloser
	closed *bool
}

func (n *closeRecorder) Close() error {
	*n.closed = true
	return n.ReadCloser.Close()
}
