package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/http/api"
	"tutti/http/server"
	"tutti/http/system"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
	"tutti/internal/tools/testkit"
)

const half = "POST " + apitest.RepositoryPath + " HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n"

// TestMonitoringBesideHalfSentRequests: while half-sent requests have all connections, and more are opened, probes are answered,
// other requests refused so that the client can read it.
func TestMonitoringBesideHalfSentRequests(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics := api.NewMetrics(reg)
	s := server.New(apitest.NewHandler(t, holding().Measured(reg), api.Config{Metrics: metrics}),
		server.Config{MaxConnections: 16, MaxConnectionsPerAddress: 17, Metrics: server.NewMetrics(reg)})
	if err := s.Start(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	addr := s.Addr().String()
	defer func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	}()
	for n := range 100 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(testkit.HangLimit))
		if _, err := io.WriteString(conn, half); err != nil {
			t.Fatal(err)
		}
		if n < 16 { // the handler reads the body
			asked := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
			if _, err := io.ReadFull(conn, asked); err != nil || !strings.Contains(string(asked), " 100 ") {
				t.Fatalf("%q, %v", asked, err)
			}
		}
	}
	for _, path := range []string{"/ping", "/ready", "/metrics"} {
		if res, body := apitest.Wire(t, addr, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); res.StatusCode != 200 || !res.Close {
			t.Errorf("%s got %d, close is %t: %s", path, res.StatusCode, res.Close, body)
		}
	}
	res, body := apitest.Wire(t, addr, "GET /jobs HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if p := apitest.WantProblem(t, res, body, 503, "overloaded", "too many connections are open"); p.Hint != "close unused connections, or retry later" {
		t.Errorf("hint %q", p.Hint)
	}
	if !res.Close || res.Header.Get("Retry-After") == "" {
		t.Errorf("headers %v, close is %t", res.Header, res.Close)
	}
	if res, _ := apitest.Wire(t, addr, "GET /ping HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf"); res.StatusCode != 200 {
		t.Errorf("half a probe got %d", res.StatusCode)
	}
	const counted = `
# HELP tutti_http_connections_refused_total Connections over a limit: they can request only /ping, /ready and /metrics.
# TYPE tutti_http_connections_refused_total counter
tutti_http_connections_refused_total{limit="address"} 0
tutti_http_connections_refused_total{limit="total"} 89
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(counted), "tutti_http_connections_refused_total"); err != nil {
		t.Error(err)
	}
}

// from is a connection of a client at an address.
type from struct {
	net.Conn
	address string
}

func (c from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.address), 1))
}

// crowd is a Server whose clients have addresses.
type crowd struct {
	*testing.T
	l *pipes
}

// ask opens a connection of a client at an address and sends a request.
func (c crowd) ask(address, request string) net.Conn {
	c.Helper()
	client, server := net.Pipe()
	c.l.accepted <- from{server, address}
	synctest.Wait()
	go func() { _, _ = io.WriteString(client, request) }()
	synctest.Wait()
	return client
}

// answer reads the status of an answer, 0 for a connection that was closed without one, -1 for none in a second.
func (c crowd) answer(conn net.Conn) int {
	c.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return -1
	case err != nil:
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

func (c crowd) want(what string, conn net.Conn, status int) {
	c.Helper()
	if got := c.answer(conn); got != status {
		c.Errorf("%s: got %d, want %d", what, got, status)
	}
}

func inCrowd(t *testing.T, p *apitest.Ports, cfg server.Config, test func(crowd)) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		s := server.New(apitest.NewHandler(t, p, api.Config{}), cfg)
		s.Serve(l)
		test(crowd{t, l})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

const (
	jobsOf = "GET /jobs HTTP/1.1\r\nHost: localhost\r\n\r\n"
	pingOf = "GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n"
)

// TestConnectionsPerAddress: half-sent requests from one address, or one network of IPv6, leave connections to others. Trusted
// proxies have no such limit.
func TestConnectionsPerAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}
	for name, tt := range map[string]struct {
		first, second, third string
		status               int
	}{
		"one address":             {"192.0.2.1", "192.0.2.1", "192.0.2.1", 503},
		"mapped":                  {"192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1", 503},
		"three addresses":         {"192.0.2.1", "192.0.2.2", "192.0.2.3", 200},
		"another address":         {"192.0.2.1", "192.0.2.1", "192.0.2.2", 200},
		"one network":             {"2001:db8::1", "2001:db8::2", "2001:db8:0:0:1::", 503},
		"another network":         {"2001:db8::1", "2001:db8::2", "2001:db8:0:1::", 200},
		"a proxy":                 {"10.9.0.1", "10.9.0.1", "10.9.0.1", 200},
		"another network's proxy": {"10.8.0.1", "10.8.0.1", "10.8.0.1", 503},
	} {
		t.Run(name, func(t *testing.T) {
			inCrowd(t, holding(), server.Config{MaxConnections: 9, MaxConnectionsPerAddress: 2, TrustedProxies: proxies}, func(c crowd) {
				idle := c.ask("198.51.100.1", jobsOf)
				c.want("one of another address", idle, 200)
				for _, address := range []string{tt.first, tt.second} {
					conn := c.ask(address, half)
					defer func() { _ = conn.Close() }()
					c.want("a half-sent request", conn, 100)
				}
				c.want("a further one", c.ask(tt.third, jobsOf), tt.status)
				c.want("a probe", c.ask(tt.third, pingOf), 200)
				go func() { _, _ = io.WriteString(idle, jobsOf) }()
				c.want("the one of another address again", idle, 200)
			})
		})
	}
}

// TestWaitingConnectionsAreReplaced: connections on which no request is in flight keep none from being opened.
func TestWaitingConnectionsAreReplaced(t *testing.T) {
	for name, cfg := range map[string]server.Config{
		"total":       {MaxConnections: 3, MaxConnectionsPerAddress: 3},
		"per address": {MaxConnections: 100, MaxConnectionsPerAddress: 3},
	} {
		t.Run(name, func(t *testing.T) {
			inCrowd(t, holding(), cfg, func(c crowd) {
				silent := c.ask("192.0.2.1", "")
				kept := c.ask("192.0.2.1", jobsOf)
				c.want("the first of a connection that is kept", kept, 200)
				headers := c.ask("192.0.2.1", "GET /jobs HTTP/1.1\r\nHost:")
				c.want("a fourth connection", c.ask("192.0.2.1", jobsOf), 200)
				c.want("one that has sent nothing", silent, 0)
				go func() { _, _ = io.WriteString(kept, jobsOf) }()
				c.want("the second on a connection that is kept", kept, 200)
				c.want("a fifth connection", c.ask("192.0.2.1", jobsOf), 200)
				c.want("one that has not sent its headers", headers, 0)
				c.want("a sixth connection", c.ask("192.0.2.1", jobsOf), 200)
			})
		})
	}
}

// TestConnectionsAreCountedUntilTheyEnd: those that were closed count no more, by either side.
func TestConnectionsAreCountedUntilTheyEnd(t *testing.T) {
	inCrowd(t, holding(), server.Config{MaxConnections: 2, MaxConnectionsPerAddress: 2}, func(c crowd) {
		for range 3 {
			first, second := c.ask("192.0.2.1", half), c.ask("192.0.2.1", half)
			c.want("a half-sent request", first, 100)
			c.want("a half-sent request", second, 100)
			c.want("one more", c.ask("192.0.2.1", jobsOf), 503)
			_ = first.Close()
			time.Sleep(time.Minute) // the server has ended both
			_ = second.Close()
			synctest.Wait()
		}
	})
}

// TestProbesInFlightAreNotReplaced: the newest connection beyond the limit replaces no probe that is being answered.
func TestProbesInFlightAreNotReplaced(t *testing.T) {
	p := holding()
	inCrowd(t, p, server.Config{MaxConnections: 1, MaxConnectionsPerAddress: 1}, func(c crowd) {
		answer := make(chan struct{})
		p.HealthFn = func() system.Health {
			<-answer
			return system.Health{}
		}
		stuck := c.ask("192.0.2.1", half)
		defer func() { _ = stuck.Close() }()
		c.want("a half-sent request", stuck, 100)
		probe := c.ask("192.0.2.1", "GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
		var last net.Conn
		for range 5 {
			last = c.ask("192.0.2.1", "GET")
			defer func() { _ = last.Close() }()
		}
		c.want("the last of those that send nothing", last, -1)
		second := c.ask("192.0.2.1", "GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
		c.want("one for which there is no connection", c.ask("192.0.2.1", pingOf), 0)
		close(answer)
		c.want("the first probe", probe, 200)
		c.want("the second probe", second, 200)
	})
}

// TestLateRequestsAreReplaced: at a limit a new connection takes the place of one whose request has been arriving for longer than a
// second: the oldest one of the same address or, at the limit of all, of the address that has the most.
func TestLateRequestsAreReplaced(t *testing.T) {
	const whole = "POST /notifications/song.ca HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
	for name, tt := range map[string]struct {
		cfg     server.Config
		open    []string // addresses that open connections, one after the other
		request string
		wait    time.Duration
		address string // of the new connection
		status  int
		victim  int // the connection that is closed, -1 for none
	}{
		"half a body":                {server.Config{MaxConnections: 9, MaxConnectionsPerAddress: 2}, []string{"192.0.2.1", "192.0.2.1"}, half, 2 * time.Second, "192.0.2.1", 200, 0},
		"half a header":              {server.Config{MaxConnections: 9, MaxConnectionsPerAddress: 2}, []string{"192.0.2.1", "192.0.2.1"}, "GET /jobs HTTP/1.1\r\nHo", 2 * time.Second, "192.0.2.1", 200, 0},
		"not late":                   {server.Config{MaxConnections: 9, MaxConnectionsPerAddress: 2}, []string{"192.0.2.1", "192.0.2.1"}, half, 0, "192.0.2.1", 503, -1},
		"of others":                  {server.Config{MaxConnections: 9, MaxConnectionsPerAddress: 1}, []string{"192.0.2.2", "192.0.2.1"}, half, 2 * time.Second, "192.0.2.1", 200, 1},
		"the most":                   {server.Config{MaxConnections: 3, MaxConnectionsPerAddress: 3}, []string{"192.0.2.2", "192.0.2.1", "192.0.2.1"}, half, 2 * time.Second, "192.0.2.3", 200, 1},
		"of one that has fewer":      {server.Config{MaxConnections: 2, MaxConnectionsPerAddress: 3}, []string{"192.0.2.2", "192.0.2.1"}, half, 2 * time.Second, "192.0.2.1", 200, 1},
		"a request that is served":   {server.Config{MaxConnections: 9, MaxConnectionsPerAddress: 2}, []string{"192.0.2.1", "192.0.2.1"}, whole, 2 * time.Second, "192.0.2.1", 503, -1},
		"served at the limit of all": {server.Config{MaxConnections: 2, MaxConnectionsPerAddress: 2}, []string{"192.0.2.1", "192.0.2.1"}, whole, 2 * time.Second, "192.0.2.2", 503, -1},
	} {
		t.Run(name, func(t *testing.T) {
			p := holding()
			inCrowd(t, p, tt.cfg, func(c crowd) {
				release := make(chan struct{})
				p.NotifyFn = func(string, []byte, string, string) (core.NotificationResult, error) {
					<-release
					return core.NotificationResult{}, nil
				}
				var conns []net.Conn
				for _, address := range tt.open {
					conn := c.ask(address, tt.request)
					defer func() { _ = conn.Close() }()
					if tt.request == half {
						c.want("a half-sent request", conn, 100)
					}
					conns = append(conns, conn)
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(tt.wait)
				c.want("the new one", c.ask(tt.address, jobsOf), tt.status)
				for n, conn := range conns {
					want := -1
					if n == tt.victim {
						want = 0
					}
					c.want(fmt.Sprintf("connection %d", n), conn, want)
				}
				close(release)
			})
		})
	}
}

// TestUnreadProbesAreReplaced: clients that do not read the answers to their probes do not keep others from theirs.
func TestUnreadProbesAreReplaced(t *testing.T) {
	for _, path := range []string{"/ping", "/ready", "/metrics"} {
		t.Run(path, func(t *testing.T) {
			inCrowd(t, holding(), server.Config{MaxConnections: 1, MaxConnectionsPerAddress: 1}, func(c crowd) {
				stuck := c.ask("192.0.2.1", half)
				defer func() { _ = stuck.Close() }()
				c.want("a half-sent request", stuck, 100)
				for range 3 {
					unread := c.ask("192.0.2.1", "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
					defer func() { _ = unread.Close() }()
				}
				synctest.Wait()
				time.Sleep(6 * time.Second)
				c.want("a probe", c.ask("192.0.2.1", pingOf), 200)
			})
		})
	}
}

// TestHalfAProbe: a probe beyond the limit is answered before its body is received.
func TestHalfAProbe(t *testing.T) {
	inCrowd(t, holding(), server.Config{MaxConnections: 1, MaxConnectionsPerAddress: 1}, func(c crowd) {
		stuck := c.ask("192.0.2.1", half)
		defer func() { _ = stuck.Close() }()
		c.want("a half-sent request", stuck, 100)
		began := time.Now()
		probe := c.ask("192.0.2.1", "GET /ping HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf")
		c.want("half a probe", probe, 200)
		if d := time.Since(began); d != 0 {
			t.Errorf("half a probe was answered after %s", d)
		}
	})
}

// TestOverloadAnswersAreRead: a client over the limit that sends its whole body before it reads gets the 503. The rest of a body that
// stops arriving keeps neither its connection for longer than 11 s nor a new connection from being opened.
func TestOverloadAnswersAreRead(t *testing.T) {
	const size = 4 << 20
	head := fmt.Sprintf("POST /notifications/song.ca HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", size)
	p := holding()
	inCrowd(t, p, server.Config{MaxConnections: 1, MaxConnectionsPerAddress: 1}, func(c crowd) {
		release := make(chan struct{})
		defer close(release)
		p.NotifyFn = func(string, []byte, string, string) (core.NotificationResult, error) {
			<-release
			return core.NotificationResult{}, nil
		}
		served := c.ask("192.0.2.1", "POST /notifications/song.ca HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
		defer func() { _ = served.Close() }()

		whole := c.ask("192.0.2.1", head)
		sent := make(chan error)
		go func() {
			_, err := io.WriteString(whole, strings.Repeat(" ", size))
			sent <- err
		}()
		c.want("a whole request", whole, 503)
		if err := <-sent; err != nil {
			t.Errorf("sending the body: %v", err)
		}
		_ = whole.Close()

		began := time.Now()
		half := c.ask("192.0.2.1", head+"{")
		c.want("half a request", half, 503)
		_ = half.SetReadDeadline(began.Add(time.Minute))
		if n, err := half.Read(make([]byte, 1)); err != io.EOF || time.Since(began) > 11*time.Second { //nolint:errorlint // as net.Pipe
			t.Errorf("half a request read %d bytes, %v after %s", n, err, time.Since(began))
		}
		began = time.Now()
		for range 3 {
			c.want("half a request", c.ask("192.0.2.1", head+"{"), 503)
		}
		c.want("a probe", c.ask("192.0.2.1", pingOf), 200)
		if d := time.Since(began); d != 0 {
			t.Errorf("the probe was answered after %s", d)
		}
		time.Sleep(time.Minute) // the server has closed them
	})
}

// silentReader is a body of which nothing is sent for a minute.
type silentReader struct{}

func (silentReader) Read([]byte) (int, error) {
	time.Sleep(time.Minute)
	return 0, io.EOF
}

// TestServedHTTP2IsNotReplaced: a connection of HTTP/2 is not replaced while one of its requests is served, with a body or without.
func TestServedHTTP2IsNotReplaced(t *testing.T) {
	files := newPair(t, time.Hour)
	trust := x509.NewCertPool()
	trust.AddCert(files.leaf(t))
	for name, tt := range map[string]struct {
		method, target string
		body           io.Reader
		answer         string
	}{
		"no body":     {http.MethodGet, "/ready", nil, "HTTP/2.0 200"},
		"half a body": {http.MethodPost, "/notifications/song.ca", silentReader{}, "HTTP/2.0 400"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				certificate, err := server.NewCertificate(t.Context(), files.certFile, files.keyFile, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				p, release := holding(), make(chan struct{})
				p.HealthFn = func() system.Health {
					<-release
					return system.Health{}
				}
				s := server.New(apitest.NewHandler(t, p, api.Config{}), server.Config{MaxConnections: 1, MaxConnectionsPerAddress: 1})
				s.UseTLS(certificate)
				l := newPipes()
				s.Serve(l)
				now := files.leaf(t).NotBefore.UTC // not the bubble's time
				client := func() *http.Client {
					return &http.Client{Transport: &http.Transport{
						ForceAttemptHTTP2: true,
						TLSClientConfig:   &tls.Config{RootCAs: trust, ServerName: "localhost", Time: now},
						DialContext: func(context.Context, string, string) (net.Conn, error) {
							client, server := net.Pipe()
							l.accepted <- from{server, "192.0.2.1"}
							return client, nil
						},
					}}
				}
				first, second := client(), client()
				answered := make(chan string)
				go func() {
					req, err := http.NewRequestWithContext(t.Context(), tt.method, "https://localhost"+tt.target, tt.body)
					if err != nil {
						t.Error(err)
					}
					res, err := first.Do(req)
					if err != nil {
						answered <- err.Error()
						return
					}
					_ = res.Body.Close()
					answered <- fmt.Sprint(res.Proto, " ", res.StatusCode)
				}()
				time.Sleep(2 * time.Second)
				res, err := second.Get("https://localhost/jobs")
				if err != nil || res.StatusCode != 503 {
					t.Errorf("the second connection got %v, %v", res, err)
				} else {
					_ = res.Body.Close()
				}
				close(release)
				if got := <-answered; got != tt.answer {
					t.Errorf("the first got %s", got)
				}
				first.CloseIdleConnections()
				second.CloseIdleConnections()
				if err := errors.Join(s.Stop(context.Background()), certificate.Stop(context.Background())); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
