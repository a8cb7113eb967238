package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/core"
)

// step is one response of a scripted server.
type step struct {
	// want is the expected call, followed by its Last-Event-ID.
	want string
	// err is returned instead of a response.
	err         error
	status      int
	contentType string
	body        string
	// end is the error at the end of the body, io.EOF by default; errHangs for a body that no longer sends data.
	end error
	// after is the time since the previous call; checked when not zero.
	after time.Duration
}

var errHangs = errors.New("no longer sends data")

// script responds to calls in order. It runs in a synctest bubble, so that waiting takes no time.
type script struct {
	t     *testing.T
	steps []step
	last  time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	got := strings.TrimSpace(r.Method + " " + r.URL.Path + " " + r.Header.Get("Last-Event-ID"))
	if len(s.steps) == 0 {
		s.t.Errorf("unexpected call %s", got)
		return nil, errors.New("nothing is left of the script")
	}
	next := s.steps[0]
	s.steps = s.steps[1:]
	if got != next.want {
		s.t.Errorf("call %s, want %s", got, next.want)
	}
	if waited := time.Since(s.last); next.after != 0 && waited < next.after {
		s.t.Errorf("%s comes after %s, want %s or more", got, waited, next.after)
	}
	s.last = time.Now()
	if next.err != nil {
		return nil, next.err
	}
	resp := &http.Response{
		StatusCode: next.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Header: http.Header{},
		Body: &scriptBody{Reader: strings.NewReader(next.body), end: next.end, done: r.Context().Done()},
	}
	resp.Header.Set("Content-Type", next.contentType)
	return resp, nil
}

type scriptBody struct {
	io.Reader
	end  error
	done <-chan struct{}
}

func (b *scriptBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if !errors.Is(err, io.EOF) || b.end == nil {
		return n, err
	}
	if errors.Is(b.end, errHangs) {
		<-b.done
		return 0, context.Canceled
	}
	return 0, b.end
}

func (*scriptBody) Close() error { return nil }

func body(state string, fetched int) string {
	return fmt.Sprintf(`{"id":"j1","state":%q,"totals":{"fetched":%d},"organizations":[{"organization":"S1","state":%q,"totals":{"fetched":%d}}]}`,
		state, fetched, state, fetched)
}

func event(id int, name, data string) string {
	return fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", id, name, data)
}

func jobEvent(id int, state string, fetched int) string {
	return event(id, "job", fmt.Sprintf(`{"id":"j1","state":%q,"totals":{"fetched":%d}}`, state, fetched))
}

func rowEvent(id int, state string, fetched int) string {
	return event(id, "organization", fmt.Sprintf(`{"organization":"S1","state":%q,"totals":{"fetched":%d}}`, state, fetched))
}

// The calls of a watch and common responses.
const (
	events = "GET /jobs/j1/events"
	look   = "GET /jobs/j1"
)

func polls(state string, fetched int) step {
	return step{want: look, status: 200, contentType: "application/json", body: body(state, fetched)}
}

func streams(want, body string, end error) step {
	return step{want: want, status: 200, contentType: "text/event-stream", body: body, end: end}
}

func refuses(want string, status int, code, detail string) step {
	return step{
		want: want, status: status, contentType: "application/problem+json",
		body: fmt.Sprintf(`{"code":%q,"detail":%q}`, code, detail),
	}
}

// TestWatchJob: a watch continues until the job has ended, whatever happens to the stream of events, and passes on all events.
func TestWatchJob(t *testing.T) {
	t.Parallel()
	refused := &netError{syscall.ECONNREFUSED}
	for name, tt := range map[string]struct {
		steps []step
		want  []string
	}{
		"whole stream": {
			[]step{
				streams(events, ": hello\nretry: 2000\n\n"+rowEvent(1, "running", 1)+jobEvent(2, "running", 1)+rowEvent(3, "succeeded", 2)+
					jobEvent(4, "succeeded", 2)+event(4, "end", `{"state":"succeeded"}`), errHangs),
				polls("succeeded", 2),
			},
			[]string{"S1 running 1", "j1 running 1", "S1 succeeded 2", "j1 succeeded 2", "S1 succeeded 2", "j1 succeeded 2"},
		},
		"ended long ago": {
			[]step{{want: events, status: 204}, polls("succeeded", 2)},
			[]string{"S1 succeeded 2", "j1 succeeded 2"},
		},
		"unknown events": {
			[]step{
				streams(events, event(1, "later", "{}")+event(2, "job", "[")+event(3, "organization", "1")+"data: x\n\n"+
					jobEvent(4, "running", 1)+event(5, "end", "{}"), nil),
				polls("succeeded", 2),
			},
			[]string{"j1 running 1", "S1 succeeded 2", "j1 succeeded 2"},
		},
		"server stops": {
			[]step{
				streams(events, jobEvent(7, "running", 1), nil),
				{want: events + " 7", err: refused, after: 100 * time.Millisecond},
				{want: look, err: refused},
				{want: events + " 7", err: refused, after: 200 * time.Millisecond},
				{want: look, err: refused},
				streams(events+" 7", jobEvent(9, "succeeded", 2)+event(9, "end", "{}"), nil),
				polls("succeeded", 2),
			},
			[]string{
				"j1 running 1", "lost: tutti at http://tutti does not answer", "lost: tutti at http://tutti does not answer",
				"j1 succeeded 2", "S1 succeeded 2", "j1 succeeded 2",
			},
		},
		"server sends retry": {
			[]step{
				streams(events, "retry: 9000\n"+jobEvent(7, "running", 1), nil),
				{want: events + " 7", status: 204, after: 9 * time.Second},
				polls("succeeded", 2),
			},
			[]string{"j1 running 1", "S1 succeeded 2", "j1 succeeded 2"},
		},
		"stream is cut": {
			[]step{
				streams(events, jobEvent(7, "running", 1)+"id: 8\nevent: jo", io.ErrUnexpectedEOF),
				streams(events+" 7", jobEvent(8, "running", 2)+event(8, "end", "{}"), nil),
				polls("succeeded", 2),
			},
			[]string{"j1 running 1", "lost: tutti at http://tutti does not answer", "j1 running 2", "S1 succeeded 2", "j1 succeeded 2"},
		},
		"stream goes silent": {
			[]step{
				streams(events, jobEvent(7, "running", 1), errHangs),
				{want: events + " 7", status: 204, after: 20 * time.Second},
				polls("succeeded", 2),
			},
			[]string{"j1 running 1", "lost: tutti at http://tutti no longer sends data", "S1 succeeded 2", "j1 succeeded 2"},
		},
		"held back by a proxy": {
			[]step{
				streams(events, "", errHangs), polls("running", 1), streams(events, "", errHangs), polls("succeeded", 2),
			},
			[]string{"S1 running 1", "j1 running 1", "S1 succeeded 2", "j1 succeeded 2"},
		},
		"no stream at all": {
			[]step{
				refuses(events, 404, "not_found", "no resource has this path"), polls("running", 1),
				{want: look, err: refused, after: time.Second},
				polls("running", 2), polls("succeeded", 3),
			},
			[]string{
				"S1 running 1", "j1 running 1", "lost: tutti at http://tutti does not answer", "S1 running 2", "j1 running 2",
				"S1 succeeded 3", "j1 succeeded 3",
			},
		},
		"another content type": {
			[]step{{want: events, status: 200, contentType: "text/html", body: "<html>"}, polls("running", 1), polls("succeeded", 2)},
			[]string{"S1 running 1", "j1 running 1", "S1 succeeded 2", "j1 succeeded 2"},
		},
		"event too large": {
			[]step{
				streams(events, jobEvent(7, "running", 1)+"data: "+strings.Repeat("x", client.MaxEventBytes+1), nil),
				polls("succeeded", 2),
			},
			[]string{"j1 running 1", "S1 succeeded 2", "j1 succeeded 2"},
		},
		"overloaded": {
			[]step{
				refuses(events, 503, "overloaded", "too many streams"), polls("running", 1),
				{want: events, status: 204},
				polls("succeeded", 2),
			},
			[]string{"S1 running 1", "j1 running 1", "S1 succeeded 2", "j1 succeeded 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, script := scripted(t, tt.steps)
				var got []string
				job, err := c.WatchJob(t.Context(), "j1", func(e client.Event) error {
					got = append(got, describe(e))
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if job.State != core.JobSucceeded || len(job.Organizations) != 1 || len(job.Raw) == 0 {
					t.Errorf("ended as %+v", job)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				if len(script.steps) > 0 {
					t.Errorf("not asked for %+v", script.steps)
				}
			})
		})
	}
}

// scripted returns a Client whose calls go to a script.
func scripted(t *testing.T, steps []step) (*client.Client, *script) {
	t.Helper()
	s := &script{t: t, steps: steps, last: time.Now()}
	c, err := client.New(client.Config{
		Server: "http://tutti", HTTP: &http.Client{Transport: s}, IdleTimeout: 20 * time.Second, MaxOutage: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

type netError struct{ error }

func describe(e client.Event) string {
	switch {
	case e.Job != nil:
		return fmt.Sprintf("%s %s %d", e.Job.ID, e.Job.State, e.Job.Totals.Fetched)
	case e.Organization != nil:
		return fmt.Sprintf("%s %s %d", e.Organization.Organization, e.Organization.State, e.Organization.Totals.Fetched)
	default:
		return "lost: " + core.MessageOf(e.Lost)
	}
}

// TestWatchJobFails: permanent errors end a watch.
func TestWatchJobFails(t *testing.T) {
	t.Parallel()
	refused := &netError{syscall.ECONNREFUSED}
	const away = "check that it is running (tutti serve); set another address with --server or TUTTI_SERVER"
	for name, tt := range map[string]struct {
		steps         []step
		code          core.Code
		message, hint string
	}{
		"no such job": {
			[]step{refuses(events, 404, "not_found", "no such job"), refuses(look, 404, "not_found", "no such job")},
			core.CodeNotFound, "no such job", "",
		},
		"removed during the watch": {
			[]step{streams(events, jobEvent(1, "running", 1)+event(2, "end", "{}"), nil), refuses(look, 404, "not_found", "no such job")},
			core.CodeNotFound, "no such job", "",
		},
		"unreachable": {
			[]step{{want: events, err: refused}, {want: look, err: refused}},
			core.CodeUnavailable, "tutti at http://tutti does not answer", away,
		},
		"token refused": {
			[]step{refuses(events, 401, "unauthenticated", "a token is needed"), refuses(look, 401, "unauthenticated", "a token is needed")},
			core.CodeUnauthenticated, "a token is needed", "set a token with --token or TUTTI_TOKEN",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, script := scripted(t, tt.steps)
				_, err := c.WatchJob(t.Context(), "j1", func(client.Event) error { return nil })
				wantError(t, err, tt.code, tt.message, tt.hint)
				if len(script.steps) > 0 {
					t.Errorf("not asked for %+v", script.steps)
				}
			})
		})
	}
}

// TestWatchJobMaxOutage: a server that does not come back ends a watch after Config.MaxOutage, counted from the last data: here a
// keep-alive, long after the last event.
func TestWatchJobMaxOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		calls := 0
		c, err := client.New(client.Config{
			Server: "http://tutti", MaxOutage: time.Minute, HTTP: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				calls++
				if calls > 1 {
					return nil, &netError{syscall.ECONNREFUSED}
				}
				in, out := io.Pipe()
				go func() {
					_, _ = io.WriteString(out, jobEvent(1, "running", 1))
					for range 10 {
						time.Sleep(30 * time.Second)
						_, _ = io.WriteString(out, ": keep-alive\n\n")
					}
					_ = out.CloseWithError(io.ErrUnexpectedEOF)
				}()
				resp := &http.Response{StatusCode: 200, Request: r, Header: http.Header{}, Body: in}
				resp.Header.Set("Content-Type", "text/event-stream")
				return resp, nil
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.WatchJob(t.Context(), "j1", func(client.Event) error { return nil })
		wantError(t, err, core.CodeUnavailable, "tutti at http://tutti does not answer",
			"check that it is running (tutti serve); set another address with --server or TUTTI_SERVER")
		if took := time.Since(began); took < 6*time.Minute || took > 7*time.Minute {
			t.Errorf("given up after %s, want a minute after the last keep-alive at 5 m", took)
		}
		if !strings.HasPrefix(err.Error(), "waiting for job j1 for 1m") {
			t.Errorf("error %v", err)
		}
	})
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWatchJobStops: the callback's error and the end of the context end a watch at once.
func TestWatchJobStops(t *testing.T) {
	t.Parallel()
	enough := core.NewError(core.CodeUnavailable, "enough")
	for name, steps := range map[string][]step{
		"in the stream": {streams(events, jobEvent(1, "running", 1), errHangs)},
		"while looking": {refuses(events, 404, "not_found", ""), polls("running", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _ := scripted(t, steps)
				_, err := c.WatchJob(t.Context(), "j1", func(client.Event) error { return enough })
				if !errors.Is(err, enough) {
					t.Errorf("error %v, want the callback's", err)
				}
			})
		})
	}
	for name, steps := range map[string][]step{
		"context in the stream": {streams(events, jobEvent(1, "running", 1), errHangs)},
		"context in a pause":    {refuses(events, 404, "not_found", ""), polls("running", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _ := scripted(t, steps)
				ctx, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, errStop)
				defer cancel()
				_, err := c.WatchJob(ctx, "j1", func(client.Event) error { return nil })
				if !errors.Is(err, errStop) {
					t.Errorf("error %v, want the context's cause", err)
				}
			})
		})
	}
}

var errStop = errors.New("stop")
