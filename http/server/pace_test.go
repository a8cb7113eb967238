package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"tutti/http/api"
	"tutti/http/server"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
	"tutti/internal/tools/testkit"
)

func newPipes() *pipes { return &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})} }

// dial returns the client's side of a new connection, once it is accepted or the listener closed.
func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	select {
	case p.accepted <- server:
	case <-p.closed:
	}
	return client
}

// servePipes serves p in a bubble until stop.
func servePipes(t *testing.T, p *apitest.Ports, cfg api.Config) (l *pipes, stop func()) {
	t.Helper()
	l = newPipes()
	s := server.New(apitest.NewHandler(t, p, cfg), server.Config{})
	s.Serve(l)
	return l, func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// holding are ports whose jobs and notifications are taken.
func holding() *apitest.Ports {
	p := apitest.Working()
	p.GetFn = func(id string) (core.Job, error) { return apitest.QueuedJob(id), nil }
	return p
}

// TestHalfSentRequestsEnd: a request that is not sent to its end is answered and its connection closed, on any route, with or
// without a token, whether or not a handler reads the body.
func TestHalfSentRequestsEnd(t *testing.T) {
	const host = " HTTP/1.1\r\nHost: localhost\r\n"
	for name, tt := range map[string]struct {
		request string
		// every is sent again each five seconds.
		every  string
		status int
		within time.Duration
	}{
		"a method that the route does not have": {request: "POST /jobs" + host + "Content-Length: 100\r\n\r\nabc", status: 405, within: 11 * time.Second},
		"a body that is read":                   {request: "POST " + apitest.RepositoryPath + host + "Content-Length: 100\r\n\r\n{  ", status: 400, within: 11 * time.Second},
		"a large one that is read":              {request: "POST /notifications/song.ca" + host + "Content-Length: 1000000\r\n\r\n{  ", status: 400, within: 11 * time.Second},
		"chunks that are read":                  {request: "POST " + apitest.RepositoryPath + host + "Transfer-Encoding: chunked\r\n\r\n3\r\n{  \r\n", status: 400, within: 11 * time.Second},
		"chunks that are not":                   {request: "POST /jobs" + host + "Transfer-Encoding: chunked\r\n\r\n3\r\n{  \r\n", status: 405, within: 11 * time.Second},
		"no route":                              {request: "POST /nothing/at/all" + host + "Content-Length: 100\r\n\r\nabc", status: 404, within: 11 * time.Second},
		"another host":                          {request: "POST /jobs HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 100\r\n\r\nabc", status: 421, within: 11 * time.Second},
		"a body of a GET":                       {request: "GET /ping" + host + "Content-Length: 100\r\n\r\nabc", status: 200, within: 11 * time.Second},
		"a body of another's handler":           {request: "GET /metrics" + host + "Content-Length: 100\r\n\r\nabc", status: 200, within: 11 * time.Second},
		"too large":                             {request: "POST /jobs" + host + "Content-Length: 100000000\r\n\r\nabc", status: 413, within: 11 * time.Second},
		"large and not read":                    {request: "POST /jobs" + host + "Content-Length: 1000000\r\n\r\nabc", status: 405, within: 11 * time.Second},
		"HTTP/1.0":                              {request: "POST /jobs HTTP/1.0\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc", status: 405, within: 11 * time.Second},
		"continued":                             {request: "POST /jobs" + host + "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n", status: 405, within: 11 * time.Second},
		"a trickle that is read":                {request: "POST " + apitest.RepositoryPath + host + "Content-Length: 100\r\n\r\n{", every: " ", status: 400, within: 11 * time.Second},
		"a trickle that is not":                 {request: "POST /jobs" + host + "Content-Length: 100\r\n\r\n{", every: " ", status: 405, within: 11 * time.Second},
		"a trickle of a large one":              {request: "POST /jobs" + host + "Content-Length: 1000000\r\n\r\n{", every: " ", status: 405, within: 11 * time.Second},
		"a wait behind much": {
			request: "POST /notifications/song.ca" + host + "Content-Length: 5000000\r\n\r\n" + strings.Repeat(" ", 4<<20), status: 400, within: 11 * time.Second,
		},
		"a trickle behind much": {
			request: "POST /notifications/song.ca" + host + "Content-Length: 5000000\r\n\r\n" + strings.Repeat(" ", 1<<20), every: " ", status: 400, within: 43 * time.Second,
		},
		"headers": {request: "POST /jobs" + host, within: 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, stop := servePipes(t, holding(), api.Config{CheckHost: true})
				defer stop()
				conn := l.dial()
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					if _, err := io.WriteString(conn, tt.request); err != nil || tt.every == "" {
						return
					}
					for {
						time.Sleep(5 * time.Second)
						if _, err := io.WriteString(conn, tt.every); err != nil {
							return
						}
					}
				}()
				defer func() { <-sent }()
				defer func() { _ = conn.Close() }()
				began := time.Now()
				_ = conn.SetReadDeadline(began.Add(10 * time.Minute))
				got, err := io.ReadAll(conn)
				if err != nil {
					t.Fatalf("the connection is open after %s: %v", time.Since(began), err)
				}
				if d := time.Since(began); d > tt.within {
					t.Errorf("the connection was closed after %s", d)
				}
				if want := fmt.Sprintf(" %d ", tt.status); tt.status != 0 && !strings.Contains(string(got[:min(len(got), 15)]), want) {
					t.Errorf("answered with %.300s", got)
				}
			})
		})
	}
}

// TestUnreadAnswersEnd: the connection of a client that takes nothing of its answer is closed, whatever the answer is.
func TestUnreadAnswersEnd(t *testing.T) {
	for _, target := range []string{"/ping", "/ready", "/metrics", "/openapi.json", "/api-docs/", "/jobs", "/jobs/j", "/nothing", "/isAlive"} {
		t.Run(target, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg := prometheus.NewRegistry()
				reg.MustRegister(collectors.NewGoCollector())
				l, stop := servePipes(t, holding().Measured(reg), api.Config{})
				defer stop()
				conn := l.dial()
				defer func() { _ = conn.Close() }()
				if _, err := io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				_ = conn.SetReadDeadline(time.Now().Add(time.Second))
				if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
					t.Errorf("the connection is open: %d bytes, %v", len(got), err)
				}
			})
		})
	}
}

// tooSlow is the hint for a body that is sent too slowly.
const tooSlow = "send at least 32 KiB per second, without pauses over 10s"

// TestSlowBodies: a client may be slow, down to a rate.
func TestSlowBodies(t *testing.T) {
	for name, tt := range map[string]struct {
		rate   int
		target string
		status int
	}{
		"taken":          {33 << 10, "/notifications/song.ca", 202},
		"too slow":       {20 << 10, "/notifications/song.ca", 400},
		"refused":        {33 << 10, "/jobs", 405},
		"refused slowly": {20 << 10, "/jobs", 405},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, stop := servePipes(t, holding(), api.Config{})
				defer stop()
				conn := l.dial()
				sent := make(chan error, 1)
				go func() {
					const size = 2 << 20
					_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", tt.target, size)
					for n := 0; err == nil && n < size; n += tt.rate {
						time.Sleep(time.Second)
						_, err = conn.Write([]byte(strings.Repeat("1", min(tt.rate, size-n))))
					}
					sent <- err
				}()
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != tt.status {
					t.Errorf("got %d %s: %v", res.StatusCode, body, err)
				}
				if tt.status == 400 && (!strings.Contains(string(body), "sent too slowly") || !strings.Contains(string(body), tooSlow)) {
					t.Errorf("got %s", body)
				}
				if err := <-sent; (err == nil) != (tt.rate > 32<<10) {
					t.Errorf("sending ended with %v", err)
				}
				_ = conn.Close()
			})
		})
	}
}

// TestConnectionsSurviveUnreadBodies: a short body that a route does not read, and that is there, does not cost its connection.
func TestConnectionsSurviveUnreadBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, stop := servePipes(t, holding(), api.Config{})
		defer stop()
		conn := l.dial()
		defer func() { _ = conn.Close() }()
		reader := bufio.NewReader(conn)
		began := time.Now()
		for _, request := range []string{
			"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
			"POST /jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
			"GET /ping HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000),
			"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n",
		} {
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil || res.Close {
				t.Errorf("%.20s: closed is %t: %v", request, res.Close, err)
			}
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("it took %s", d)
		}
	})
}

// TestStreamsOutliveTheirRequest: the deadline of a request does not end an answer that goes on.
func TestStreamsOutliveTheirRequest(t *testing.T) {
	for name, request := range map[string]string{
		"no body": "\r\n",
		"a body":  "Content-Length: 3\r\n\r\nabc",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := apitest.NewChanges(apitest.JobChange(1, core.JobRunning))
				l, stop := servePipes(t, apitest.Watching(c), api.Config{})
				defer stop()
				conn := l.dial()
				if _, err := io.WriteString(conn, "GET /jobs/job-1/events HTTP/1.1\r\nHost: localhost\r\n"+request); err != nil {
					t.Fatal(err)
				}
				go func() {
					time.Sleep(5 * time.Minute)
					c.Later <- apitest.JobChange(2, core.JobSucceeded)
				}()
				got, err := io.ReadAll(conn) // until the idle timeout, where the connection is kept
				if !strings.Contains(string(got), "event: end") {
					t.Errorf("the stream ended early: %.300s, %v", got, err)
				}
				_ = conn.Close()
			})
		})
	}
}

// TestRefusedBodiesAreDrained: a client that sends its body whole before it reads gets the answer, not a reset.
func TestRefusedBodiesAreDrained(t *testing.T) {
	_, addr := apitest.Start(t, apitest.Working(), api.Config{MaxBodyBytes: 8 << 20})
	for name, tt := range map[string]struct {
		request string
		size    int
		status  int
	}{
		"not read":       {"POST /jobs", 6 << 20, 405},
		"over the limit": {"POST " + apitest.RepositoryPath, 8<<20 + 1, 413},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(testkit.HangLimit))
			if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s",
				tt.request, tt.size, strings.Repeat(" ", tt.size)); err != nil {
				t.Fatalf("sending: %v", err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != tt.status || !res.Close {
				t.Errorf("got %d, close is %t: %s, %v", res.StatusCode, res.Close, body, err)
			}
		})
	}
}
