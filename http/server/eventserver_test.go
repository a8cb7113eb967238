package server_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/http/server"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

func TestJobEventsEndWhenTheClientIsGone(t *testing.T) {
	var log bytes.Buffer
	c := apitest.NewChanges(apitest.JobChange(1, core.JobRunning))
	s := server.New(apitest.NewHandler(t, apitest.Watching(c), api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}), server.Config{})
	if err := s.Start(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	readJob(ctx, t, s.Addr().String(), "1 job  running 0")
	cancel()
	<-c.Gone
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "err=") {
		t.Errorf("a client that goes is no error: %s", &log)
	}
}

// readJob opens a stream, waits for its first event and returns the rest to be read.
func readJob(ctx context.Context, t *testing.T, addr, want string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/jobs/job-1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	var got []byte
	for one := make([]byte, 1); !bytes.HasSuffix(got, []byte("\"organizationStates\":{}}\n\n")); got = append(got, one[0]) {
		if _, err := res.Body.Read(one); err != nil {
			t.Fatal(err)
		}
	}
	apitest.WantEvents(t, string(got), want)
	return res
}

// TestStopEndsStreams: a stream that would go on for ever does not hold up a stop, and ends as one that is to be opened
// again.
func TestStopEndsStreams(t *testing.T) {
	var log bytes.Buffer
	c := apitest.NewChanges(apitest.JobChange(1, core.JobRunning))
	s := server.New(apitest.NewHandler(t, apitest.Watching(c), api.Config{}), server.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.Start(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	res := readJob(t.Context(), t, s.Addr().String(), "1 job  running 0")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", &log)
	}
	var rest bytes.Buffer
	if _, err := rest.ReadFrom(res.Body); err != nil || rest.Len() > 0 {
		t.Errorf("after the stop: %q, %v", &rest, err)
	}
	<-c.Gone
}

// TestStopEndsStreamsThatHaveNotBegun: the client gets an empty stream, since an EventSource would not come back after an
// error.
func TestStopEndsStreamsThatHaveNotBegun(t *testing.T) {
	asked := make(chan struct{})
	p := apitest.Working()
	p.WatchFn = func(ctx context.Context, _ string, _ func(core.JobChange) error) error {
		close(asked)
		<-ctx.Done()
		return ctx.Err()
	}
	s, addr := apitest.Start(t, p, api.Config{})
	type answer struct {
		res  *http.Response
		body []byte
	}
	answered := make(chan answer, 1)
	go func() {
		res, body := apitest.Wire(t, addr, "GET /jobs/j/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answered <- answer{res, body}
	}()
	<-asked
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	a := <-answered
	if a.res.StatusCode != 200 || a.res.Header.Get("Content-Type") != "text/event-stream" || string(a.body) != "retry: 2000\n\n" {
		t.Errorf("got %d %q", a.res.StatusCode, a.body)
	}
}
