package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tutti/http/api"
	"tutti/http/server"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

func TestWhatTheServerItselfRefusesIsAProblem(t *testing.T) {
	_, addr := apitest.Start(t, apitest.Working(), api.Config{})
	for name, tt := range map[string]struct {
		raw    string
		status int
		code   string
	}{
		"malformed escape":        {"POST /index/repository/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "invalid"},
		"cut escape":              {"POST /index/repository/a%2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "invalid"},
		"cut UTF-8 escape":        {"POST /index/repository/%E0%A4%A HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "invalid"},
		"no host":                 {"GET /ping HTTP/1.1\r\n\r\n", 400, "invalid"},
		"bad header":              {"GET /ping HTTP/1.1\r\nHost: localhost\r\nbad header: x\r\n\r\n", 400, "invalid"},
		"garbage":                 {"\x16\x03\x01 hello\r\n\r\n", 400, "invalid"},
		"bad length":              {"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400, "invalid"},
		"large header":            {"GET /ping HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", 431, "header_too_large"},
		"unknown transfer coding": {"POST /jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: magic\r\n\r\n", 501, "invalid"},
		"expectation":             {"POST /index/repository/a HTTP/1.1\r\nHost: localhost\r\nExpect: foo\r\nContent-Length: 2\r\n\r\n{}", 417, "invalid"},
		"expectation of a GET":    {"GET /ping HTTP/1.1\r\nHost: localhost\r\nExpect: 200-ok\r\n\r\n", 417, "invalid"},
		"expectation of HTTP/1.0": {"GET /ping HTTP/1.0\r\nHost: localhost\r\nExpect: foo\r\n\r\n", 417, "invalid"},
		"unknown version":         {"GET /ping HTTP/3.7\r\nHost: localhost\r\n\r\n", 505, "invalid"},
		"options star":            {"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404, "not_found"},
		"raw control in the path": {"GET /jobs/a\x01b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := apitest.Wire(t, addr, tt.raw)
			p := apitest.WantProblem(t, res, body, tt.status, tt.code, "")
			if tt.status == 417 && (p.Detail != "the server does not support this Expect header" || p.Hint != "leave it out, or send 100-continue") {
				t.Errorf("got %q, hint %q", p.Detail, p.Hint)
			}
		})
	}
}

func TestExpectContinue(t *testing.T) {
	_, addr := apitest.Start(t, apitest.Working(), api.Config{})
	res, body := apitest.Wire(t, addr, "POST /index/repository/song.ca HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
	if res.StatusCode != 100 {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

func TestPathsArriveAsSent(t *testing.T) {
	p := apitest.Working()
	var mu sync.Mutex
	var ids []string
	p.GetFn = func(id string) (core.Job, error) {
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, id)
		return apitest.QueuedJob(id), nil
	}
	_, addr := apitest.Start(t, p, api.Config{})
	for path, want := range map[string]string{
		"/jobs/..%2F..%2Fping": "../../ping", "/jobs/a%252Fb": "a%2Fb", "/jobs/a+b%20c": "a+b c", "/jobs/%2Fa": "/a", "/jobs/a;b=c": "a;b=c",
		"http://localhost/jobs/absolute%2Fform": "absolute/form",
	} {
		res, body := apitest.Wire(t, addr, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if res.StatusCode != 200 || ids[len(ids)-1] != want {
			t.Errorf("%s: got %d %q, want %q\n%s", path, res.StatusCode, ids, want, body)
		}
	}
	for _, path := range []string{"/jobs/../ping", "//ping", "/./ping", "/ping/"} {
		res, body := apitest.Wire(t, addr, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		apitest.WantProblem(t, res, body, 404, "not_found", "no resource has this path")
	}
}

func TestHeadAnswersLikeGet(t *testing.T) {
	_, addr := apitest.Start(t, apitest.Working(), api.Config{})
	res, body := apitest.Wire(t, addr, "HEAD /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	if res.StatusCode != 200 || len(body) != 0 || res.ContentLength == 0 {
		t.Errorf("got %d, %d bytes of %d", res.StatusCode, len(body), res.ContentLength)
	}
}

func TestCutBodyIsNotAccepted(t *testing.T) {
	p := apitest.Working()
	p.RunFn = func(core.Scope, string, string, core.RunFlags, core.Cause, string) (core.Job, error) {
		t.Error("a run was asked for")
		return core.Job{}, nil
	}
	_, addr := apitest.Start(t, p, api.Config{})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "POST "+apitest.RepositoryPath+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	apitest.WantProblem(t, res, body, 400, "invalid", "could not be read to its end")
}

func TestStopWaitsForRequestsInHand(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	p := apitest.Working()
	p.GetFn = func(id string) (core.Job, error) {
		close(entered)
		<-release
		return apitest.QueuedJob(id), nil
	}
	s, addr := apitest.Start(t, p, api.Config{})
	answered := make(chan int, 1)
	go func() {
		res, _ := apitest.Wire(t, addr, "GET /jobs/j HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answered <- res.StatusCode
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(t.Context()) }()
	<-ctx.Done() // Stop has begun or is about to: either way the request in hand must be answered
	close(release)
	if status := <-answered; status != 200 {
		t.Errorf("got %d", status)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("a stopped server takes connections")
	}
}

// startLogged serves p without stopping it at the end, and returns a connection to it and what it logs.
func startLogged(t *testing.T, p *apitest.Ports) (*server.Server, net.Conn, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s := server.New(apitest.NewHandler(t, p, api.Config{}), server.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.Start(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return s, conn, &log
}

func TestStopCutsWhatDoesNotEnd(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	p := apitest.Working()
	p.GetFn = func(id string) (core.Job, error) {
		close(entered)
		<-release
		return apitest.QueuedJob(id), nil
	}
	s, conn, log := startLogged(t, p)
	defer close(release)
	if _, err := io.WriteString(conn, "GET /jobs/j HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(log.String(), "requests were cut at shutdown") {
		t.Errorf("logged: %s", log)
	}
}

// TestStopLeavesTimeForTheRest: a client that never ends its body takes half of the time and no more.
func TestStopLeavesTimeForTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := apitest.Working()
		p.RunFn = func(core.Scope, string, string, core.RunFlags, core.Cause, string) (core.Job, error) {
			t.Error("a run was asked for")
			return core.Job{}, nil
		}
		var log bytes.Buffer
		s := server.New(apitest.NewHandler(t, p, api.Config{}), server.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		listener := newPipes()
		s.Serve(listener)
		conn := listener.dial()
		defer conn.Close()
		// The server asks for the body only once a handler reads it.
		if _, err := io.WriteString(conn, "POST "+apitest.RepositoryPath+
			" HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		asked := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
		if _, err := io.ReadFull(conn, asked); err != nil || !strings.Contains(string(asked), " 100 ") {
			t.Fatalf("%q, %v", asked, err)
		}
		if _, err := io.WriteString(conn, "{   "); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		started := time.Now()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		if d := time.Since(started); d != time.Second {
			t.Errorf("took %v", d)
		}
		if !strings.Contains(log.String(), "requests were cut at shutdown") {
			t.Errorf("logged: %s", log.String())
		}
		if rest, err := io.ReadAll(conn); strings.Contains(string(rest), "202") {
			t.Errorf("a cut body was answered: %s, %v", rest, err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Errorf("a second stop: %v", err)
		}
	})
}

// TestDrain: a server that drains answers on open connections, which it then closes, and on new ones, until the delay is over.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 3 * time.Second
		s := server.New(apitest.NewHandler(t, apitest.Working(), api.Config{}), server.Config{})
		listener := newPipes()
		s.Serve(listener)
		ping := func(conn net.Conn) (closes bool) {
			t.Helper()
			if _, err := io.WriteString(conn, "GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
				t.Fatal(res.StatusCode, err)
			}
			return res.Close
		}
		open := listener.dial()
		defer open.Close()
		if ping(open) {
			t.Error("a connection is closed before the drain")
		}
		drained := make(chan time.Duration)
		began := time.Now()
		go func() {
			s.Drain(t.Context(), delay)
			drained <- time.Since(began)
		}()
		synctest.Wait()
		later := listener.dial()
		defer later.Close()
		if !ping(open) || !ping(later) {
			t.Error("a connection stays open amid the drain")
		}
		if took := <-drained; took != delay {
			t.Errorf("drained for %s", took)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// pipes is a listener of connections within the process, which a synctest bubble can wait for.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestStopClosesIdleConnections(t *testing.T) {
	s, conn, log := startLogged(t, apitest.Working())
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(res.Body); err != nil || res.Close {
		t.Fatalf("%v, not kept alive: %t", err, res.Close)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log)
	}
	if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is open: %v", err)
	}
}

func TestStartRefusesAnAddressInUse(t *testing.T) {
	_, addr := apitest.Start(t, apitest.Working(), api.Config{})
	s := server.New(apitest.NewHandler(t, apitest.Working(), api.Config{}), server.Config{})
	err := s.Start(t.Context(), addr)
	if core.CodeOf(err) != core.CodeInvalid || !strings.Contains(core.MessageOf(err), "listening on "+addr) ||
		core.HintOf(err) != "choose an address of this machine and a port that no other process uses" {
		t.Errorf("got %v", err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
