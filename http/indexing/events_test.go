package indexing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

func TestJobEventsFromStartToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := apitest.NewChanges(apitest.JobChange(2, core.JobRunning), apitest.RunChange(3, "B", 10), apitest.RunChange(5, "A", 20))
		s := apitest.Open(t, apitest.NewHandler(t, apitest.Watching(c), api.Config{}), "GET", "/jobs/job-1/events", nil)
		synctest.Wait()
		there := []string{"3 organization B running 10", "5 organization A running 20", "5 job  running 30"}
		apitest.WantEvents(t, s.Text(), there...)
		if !s.W.Flushed || s.W.Code != 200 {
			t.Errorf("flushed: %t, status %d", s.W.Flushed, s.W.Code)
		}
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no",
		} {
			if got := s.W.Header().Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		c.Later <- apitest.RunChange(6, "A", 30)
		c.Later <- apitest.RunChange(7, "C", 1)
		c.Later <- apitest.RunChange(8, "A", 40)
		synctest.Wait()
		apitest.WantEvents(t, s.Text(), there...)
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		there = append(there, "7 organization C running 1", "8 organization A running 40", "8 job  running 51")
		apitest.WantEvents(t, s.Text(), there...)

		time.Sleep(time.Second) // silent for long: the next change is told at once
		c.Later <- apitest.JobChange(9, core.JobRunning)
		synctest.Wait()
		there = append(there, "9 job  running 51")
		apitest.WantEvents(t, s.Text(), there...)

		c.Later <- apitest.RunChange(10, "A", 41)
		c.Later <- apitest.JobChange(11, core.JobSucceeded)
		<-s.Done
		apitest.WantEvents(t, s.Text(), append(there,
			"10 organization A running 41", "11 job  succeeded 999", "11 end  succeeded 0")...)
		<-c.Gone
	})
}

func TestJobEventsDataIsTheJobsBody(t *testing.T) {
	job, runs := runningJob()
	synctest.Test(t, func(t *testing.T) {
		c := apitest.NewChanges(core.JobChange{Revision: 1, Job: &job}, core.JobChange{Revision: 2, Run: &runs[0]},
			core.JobChange{Revision: 3, Run: &runs[1]})
		p := apitest.Watching(c)
		p.GetFn = func(string) (core.Job, error) { return job, nil }
		p.OrganizationsFn = func(string) ([]core.OrganizationRun, error) { return runs, nil }
		h := apitest.NewHandler(t, p, api.Config{})
		var want map[string]any
		_, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs/job-1"})
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		s := apitest.Open(t, h, "GET", "/jobs/job-1/events", nil)
		close(c.Later)
		<-s.Done
		var rows []any
		for _, e := range apitest.ReadEvents(t, s.Text()) {
			var got map[string]any
			if err := json.Unmarshal([]byte(e.Data), &got); err != nil {
				t.Fatal(err)
			}
			switch e.Name {
			case indexing.EventOrganization:
				rows = append(rows, got)
			case indexing.EventJob:
				got["organizations"] = rows
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("body, events: %s", diff)
				}
			case indexing.EventEnd:
				if diff := cmp.Diff(map[string]any{"state": "running"}, got); diff != "" {
					t.Errorf("end: %s", diff)
				}
			}
		}
	})
}

func TestJobEventsAreNoMoreThanFourASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := apitest.NewChanges(apitest.JobChange(1, core.JobRunning))
		s := apitest.Open(t, apitest.NewHandler(t, apitest.Watching(c), api.Config{}), "GET", "/jobs/job-1/events", nil)
		synctest.Wait()
		for i := range 1000 { // ten seconds
			c.Later <- apitest.RunChange(uint64(i+2), string(rune('A'+i%2)), int64(i))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		count := map[string]int{}
		for _, e := range apitest.ReadEvents(t, s.Text()) {
			count[e.Name]++
		}
		// The first job is told at 0, the last batch at 10 s.
		if diff := cmp.Diff(map[string]int{"job": 41, "organization": 80}, count); diff != "" {
			t.Error(diff)
		}
		if got := s.Text(); !strings.Contains(got, `"fetched":999`) || !strings.Contains(got, `"fetched":998`) {
			t.Errorf("the newest states are missing: %s", got[len(got)-500:])
		}
		s.Cancel()
		<-s.Done
	})
}

func TestJobEventsKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := apitest.NewChanges(apitest.JobChange(1, core.JobRunning))
		s := apitest.Open(t, apitest.NewHandler(t, apitest.Watching(c), api.Config{}), "GET", "/jobs/job-1/events", nil)
		time.Sleep(14 * time.Second)
		c.Later <- apitest.JobChange(2, core.JobRunning)
		time.Sleep(14 * time.Second)
		synctest.Wait()
		apitest.WantEvents(t, s.Text(), "1 job  running 0", "2 job  running 0")
		time.Sleep(time.Second)
		synctest.Wait()
		apitest.WantEvents(t, s.Text(), "1 job  running 0", "2 job  running 0", "keep-alive")
		time.Sleep(15 * time.Second)
		synctest.Wait()
		apitest.WantEvents(t, s.Text(), "1 job  running 0", "2 job  running 0", "keep-alive", "keep-alive")
		s.Cancel()
		<-s.Done
	})
}

// TestJobSaysThatItIsPaused: a job of a repository that waits says why, on its route and, within 15 s, in its events.
func TestJobSaysThatItIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := apitest.Watching(apitest.NewChanges(apitest.JobChange(1, core.JobRunning)))
		repository := apitest.JobChange(1, core.JobRunning).Job.Repository
		var paused atomic.Pointer[[]core.Pause]
		paused.Store(&[]core.Pause{{Repository: "other", Reason: "another reason"}})
		p.PausedFn = func() []core.Pause { return *paused.Load() }
		h := apitest.NewHandler(t, p, api.Config{})
		s := apitest.Open(t, h, "GET", "/jobs/job-1/events", nil)
		synctest.Wait()
		wantPaused := func(want ...string) {
			t.Helper()
			var told []string
			for _, e := range apitest.ReadEvents(t, s.Text()) {
				if e.Name == indexing.EventJob {
					told = append(told, gjson.Get(e.Data, "paused").String())
				}
			}
			_, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/jobs/job-1"})
			if now := gjson.GetBytes(body, "paused"); now.String() != want[len(want)-1] || now.Exists() != (now.String() != "") {
				t.Errorf("GET: %s", body)
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Error(diff)
			}
		}
		wantPaused("")
		paused.Store(&[]core.Pause{{Repository: repository, Reason: "the mapping is wrong"}})
		time.Sleep(time.Minute)
		synctest.Wait()
		wantPaused("", "the mapping is wrong")
		paused.Store(&[]core.Pause{})
		time.Sleep(time.Minute)
		synctest.Wait()
		wantPaused("", "the mapping is wrong", "")
		s.Cancel()
		<-s.Done
	})
}

func TestJobEventsOfARemovedJobEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := apitest.NewChanges(apitest.JobChange(1, core.JobRunning))
		s := apitest.Open(t, apitest.NewHandler(t, apitest.Watching(c), api.Config{}), "GET", "/jobs/job-1/events", nil)
		synctest.Wait()
		c.Later <- apitest.RunChange(2, "A", 7)
		close(c.Later)
		<-s.Done
		apitest.WantEvents(t, s.Text(), "1 job  running 0", "2 organization A running 7", "2 job  running 7", "2 end  running 0")
	})
}

func TestJobEventsHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := apitest.NewChanges(apitest.JobChange(1, core.JobRunning))
		s := apitest.Open(t, apitest.NewHandler(t, apitest.Watching(c), api.Config{}), "HEAD", "/jobs/job-1/events", nil)
		<-s.Done
		<-c.Gone
		if s.W.Code != 200 || s.W.Body.Len() > 0 || s.W.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("got %d %s %v", s.W.Code, s.W.Body, s.W.Header())
		}
	})
}

func TestJobEventsRefuse(t *testing.T) {
	watch := func(err error) func(context.Context, string, func(core.JobChange) error) error {
		return func(context.Context, string, func(core.JobChange) error) error { return err }
	}
	for name, tt := range map[string]struct {
		watch      func(context.Context, string, func(core.JobChange) error) error
		target     string
		header     http.Header
		status     int
		code, text string
	}{
		"job not found": {
			watch(core.NewError(core.CodeNotFound, "there is no job j")), "/jobs/j/events", nil, 404, "not_found", "there is no job j",
		},
		"removed meanwhile": {watch(nil), "/jobs/j/events", nil, 404, "not_found", "job not found"},
		"no queue": {
			watch(core.NewError(core.CodeUnavailable, "the queue does not answer")), "/jobs/j/events", nil, 503, "unavailable", "does not answer",
		},
		"panic": {
			func(context.Context, string, func(core.JobChange) error) error { panic("secret") },
			"/jobs/j/events", nil, 500, "internal", "an internal error occurred",
		},
		"id":           {nil, "/jobs/%2E/events", nil, 400, "invalid", "relative path"},
		"no id":        {nil, "/jobs//events", nil, 400, "invalid", "id is empty"},
		"word":         {nil, "/jobs/j/events?lastEventId=x", nil, 400, "invalid", "lastEventId is not an id"},
		"negative":     {nil, "/jobs/j/events?lastEventId=-1", nil, 400, "invalid", "lastEventId is not an id"},
		"twice":        {nil, "/jobs/j/events?lastEventId=1&lastEventId=2", nil, 400, "invalid", "given 2 times"},
		"header":       {nil, "/jobs/j/events", http.Header{"Last-Event-Id": {"job-1"}}, 400, "invalid", "Last-Event-ID is not an id"},
		"header twice": {nil, "/jobs/j/events", http.Header{"Last-Event-Id": {"1", "2"}}, 400, "invalid", "Last-Event-ID is not an id"},
		"too large":    {nil, "/jobs/j/events?lastEventId=18446744073709551616", nil, 400, "invalid", "lastEventId is not an id"},
		"parameter":    {nil, "/jobs/j/events?last=1", nil, 400, "invalid", "unknown query parameter"},
		"JSON":         {nil, "/jobs/j/events", http.Header{"Accept": {"application/json"}}, 406, "not_acceptable", "text/event-stream"},
		"q=0":          {nil, "/jobs/j/events", http.Header{"Accept": {"*/*, text/event-stream;q=0"}}, 406, "not_acceptable", "text/event-stream"},
	} {
		t.Run(name, func(t *testing.T) {
			p := apitest.Working()
			p.WatchFn = tt.watch
			res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: tt.target, Header: tt.header})
			apitest.WantProblem(t, res, body, tt.status, tt.code, tt.text)
			if strings.Contains(string(body), "secret") {
				t.Errorf("the panic is shown: %s", body)
			}
		})
	}
}

func TestJobEventsAccept(t *testing.T) {
	for _, accept := range []string{"", "*/*", "text/*", "text/event-stream", "application/json;q=0.5, text/event-stream;charset=utf-8"} {
		t.Run(accept, func(t *testing.T) {
			c := apitest.NewChanges(apitest.JobChange(1, core.JobCancelled))
			res, body := apitest.Do(t, apitest.NewHandler(t, apitest.Watching(c), api.Config{}),
				apitest.Ask{Method: "GET", Target: "/jobs/job-1/events", Header: http.Header{"Accept": {accept}}})
			if res.StatusCode != 200 {
				t.Errorf("got %d", res.StatusCode)
			}
			apitest.WantEvents(t, string(body), "1 job  cancelled 999", "1 end  cancelled 0")
		})
	}
}

// TestJobEventsAreLoggedAtTheirEnd: the log has how long the stream was open and what broke it, the metric how long it
// took to begin.
func TestJobEventsAreLoggedAtTheirEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		reg := prometheus.NewRegistry()
		c := apitest.NewChanges(apitest.JobChange(1, core.JobRunning))
		h := apitest.NewHandler(t, apitest.Watching(c), api.Config{Metrics: api.NewMetrics(reg), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s := apitest.Open(t, h, "GET", "/jobs/job-1/events", nil)
		time.Sleep(20 * time.Second)
		if synctest.Wait(); log.Len() > 0 {
			t.Errorf("logged before the end: %s", &log)
		}
		c.Err <- core.NewError(core.CodeUnavailable, "the queue does not answer")
		<-s.Done
		apitest.WantEvents(t, s.Text(), "1 job  running 0", "keep-alive")
		for _, want := range []string{
			"duration=20s", "status=200", "route=/jobs/{id}/events", `err="watching a job: the queue does not answer"`,
			fmt.Sprintf("bytes=%d", s.W.Body.Len()),
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s is not in %s", want, &log)
			}
		}
		const metric = `tutti_http_request_duration_seconds_sum{code="200",method="GET",route="/jobs/{id}/events"} 0`
		if _, body := apitest.Do(t, apitest.NewHandler(t, apitest.Working().Measured(reg), api.Config{}), apitest.Ask{Method: "GET", Target: "/metrics"}); !strings.Contains(string(body), metric+"\n") {
			t.Errorf("the metric shows more than the beginning: %s", body)
		}
		if n, err := testutil.GatherAndCount(reg, "tutti_http_request_duration_seconds"); n != 1 || err != nil {
			t.Errorf("%d series, %v", n, err)
		}
	})
}

// stuckWriter is a connection whose client takes nothing any more after a while.
type stuckWriter struct {
	*httptest.ResponseRecorder
	deadline time.Time
	stuck    bool
}

func (w *stuckWriter) SetWriteDeadline(d time.Time) error { w.deadline = d; return nil }

func (w *stuckWriter) Write(b []byte) (int, error) {
	if !w.stuck {
		return w.ResponseRecorder.Write(b)
	}
	time.Sleep(time.Until(w.deadline))
	return 0, os.ErrDeadlineExceeded
}

func TestJobEventsGiveUpAClientThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := apitest.NewChanges(apitest.JobChange(1, core.JobRunning))
		h := apitest.NewHandler(t, apitest.Watching(c), api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		w := &stuckWriter{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/jobs/job-1/events", nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, r)
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		w.stuck = true
		began := time.Now()
		for i := range 10_000 { // the port never waits for the client
			c.Later <- apitest.RunChange(uint64(i+2), "A", int64(i))
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("the port waited %v", d)
		}
		<-done
		<-c.Gone
		if d := time.Since(began); d != 30*time.Second {
			t.Errorf("given up after %v", d)
		}
		if !strings.Contains(log.String(), "writing events: i/o timeout") {
			t.Errorf("logged: %s", &log)
		}
	})
}

func TestJobEventsOfManyOrganizationsAreWrittenInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there := []core.JobChange{apitest.JobChange(1, core.JobRunning)}
		for i := range 5000 {
			change := apitest.RunChange(uint64(i+2), strconv.Itoa(i), 1)
			change.Run.Error = &core.JobError{Code: "unavailable", Message: strings.Repeat("x", 1000)}
			there = append(there, change)
		}
		c := apitest.NewChanges(there...)
		h := apitest.NewHandler(t, apitest.Watching(c), api.Config{})
		w := &countingWriter{ResponseRecorder: httptest.NewRecorder()}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/jobs/job-1/events", nil))
		}()
		synctest.Wait()
		if events := apitest.ReadEvents(t, w.Body.String()); len(events) != 101 || events[100].String() != "5001 job  running 5000" {
			t.Errorf("%d events, last %v", len(events), events[len(events)-1])
		}
		if w.largest > 64<<10 || w.largest < 32<<10 {
			t.Errorf("%d bytes at a time", w.largest)
		}
		cancel()
		<-done
	})
}

type countingWriter struct {
	*httptest.ResponseRecorder
	largest int
}

func (w *countingWriter) Write(b []byte) (int, error) {
	w.largest = max(w.largest, len(b))
	return w.ResponseRecorder.Write(b)
}

func TestAClientThatGoesBeforeTheStreamBeginsIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := apitest.Working()
		p.WatchFn = func(ctx context.Context, _ string, _ func(core.JobChange) error) error {
			<-ctx.Done()
			return errors.New("reading: " + ctx.Err().Error())
		}
		h := apitest.NewHandler(t, p, api.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s := apitest.Open(t, h, "GET", "/jobs/job-1/events", nil)
		synctest.Wait()
		s.Cancel()
		<-s.Done
		if strings.Contains(log.String(), "ERROR") || s.W.Body.Len() > 0 {
			t.Errorf("%s\n%s", &log, s.W.Body)
		}
	})
}

// TestJobEventsOfManyOrganizations: of many organizations, some are sent, those that failed first, and each that was sent before it had
// ended is sent again when it has.
func TestJobEventsOfManyOrganizations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there := []core.JobChange{apitest.JobChange(1, core.JobRunning)}
		for i := range 300 {
			change := apitest.RunChange(uint64(i+2), fmt.Sprintf("S%03d", i), 1)
			if change.Run.State = core.JobQueued; i == 250 {
				change.Run.State = core.JobFailed
			}
			there = append(there, change)
		}
		c := apitest.NewChanges(there...)
		h := apitest.NewHandler(t, apitest.Watching(c), api.Config{})
		w := httptest.NewRecorder()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/jobs/job-1/events", nil))
		}()
		synctest.Wait()
		for i := range 300 {
			change := apitest.RunChange(uint64(i+400), fmt.Sprintf("S%03d", i), 2)
			change.Run.State = core.JobSucceeded
			if i == 299 {
				change.Run.State = core.JobFailed
			}
			c.Later <- change
		}
		time.Sleep(time.Second)
		synctest.Wait()
		cancel()
		<-done
		states := make(map[string]core.JobState)
		sent := 0
		for line := range strings.Lines(w.Body.String()) {
			data, is := strings.CutPrefix(line, `data: {"organization"`)
			if !is {
				continue
			}
			var row struct {
				Organization string
				State        core.JobState
			}
			if err := json.Unmarshal([]byte(`{"organization"`+data), &row); err != nil {
				t.Fatal(err)
			}
			states[row.Organization] = row.State
			sent++
		}
		for organization, state := range states {
			if !state.Final() {
				t.Errorf("%s is shown as %s for ever", organization, state)
			}
		}
		if sent > 300 || states["S299"] != core.JobFailed || states["S250"] == "" || states["S000"] != core.JobSucceeded {
			t.Errorf("%d events, %v", sent, states)
		}
		if !strings.Contains(w.Body.String(), `"organizationStates":{"failed":1,"queued":299}`) {
			t.Errorf("%s", w.Body)
		}
	})
}
