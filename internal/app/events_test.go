package app_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// event is one server-sent event of a job.
type event struct {
	id   uint64
	name string
	data gjson.Result
}

// stream is an open stream of a job's events.
type stream struct {
	t      *testing.T
	body   io.Closer
	lines  *bufio.Scanner
	end    context.CancelFunc
	events []event
}

// follow opens the events of a job, after the event last unless that is 0, and fails the test unless the answer has a status. It returns nil
// unless that is 200.
func (w *world) follow(url, job string, last uint64, status int) *stream {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), wait)
	w.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/jobs/"+job+"/events", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if last != 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(last, 10))
	}
	client := http.Client{Transport: w.client.Transport} // whose timeout would end the stream
	resp, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != status {
		text, _ := io.ReadAll(resp.Body)
		w.t.Fatalf("events of job %s: status %d, want %d: %s", job, resp.StatusCode, status, text)
	}
	if status != http.StatusOK {
		return nil
	}
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		w.t.Errorf("content type %q", got)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &stream{t: w.t, body: resp.Body, lines: lines, end: cancel}
}

// next returns the next event; false at the end of the stream.
func (s *stream) next() (event, bool) {
	s.t.Helper()
	var e event
	for s.lines.Scan() {
		line := s.lines.Text()
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && e.name != "":
			s.check(e)
			s.events = append(s.events, e)
			return e, true
		case line == "" || name == "" || name == "retry":
		case name == "id":
			id, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				s.t.Errorf("the id %q is no number", value)
			}
			e.id = id
		case name == "event":
			e.name = value
		case name == "data" && gjson.Valid(value):
			e.data = gjson.Parse(value)
		default:
			s.t.Errorf("a line of a stream: %q", line)
		}
	}
	return e, false
}

// check checks that an event follows the events before.
func (s *stream) check(e event) {
	s.t.Helper()
	if n := len(s.events); n > 0 && (e.id < s.events[n-1].id || s.events[n-1].name == "end") {
		s.t.Errorf("event %+v follows %+v", e, s.events[n-1])
	}
	if e.name != "job" && e.name != "organization" && e.name != "end" {
		s.t.Errorf("event %+v is of no known kind", e)
	}
}

// until reads on until an event fits, and returns it.
func (s *stream) until(fits func(event) bool) event {
	s.t.Helper()
	for {
		e, ok := s.next()
		switch {
		case !ok:
			s.t.Fatalf("the stream ended (%v) before what was waited for: %+v", s.lines.Err(), s.events)
		case fits(e):
			return e
		}
	}
}

// rest reads to the end of the stream, which must come with an end event.
func (s *stream) rest() {
	s.t.Helper()
	s.until(func(e event) bool { return e.name == "end" })
	if e, more := s.next(); more || s.lines.Err() != nil {
		s.t.Errorf("after the end event: %+v, %v", e, s.lines.Err())
	}
	_ = s.body.Close()
}

// drop breaks the connection off and returns the id of the last event that came.
func (s *stream) drop() uint64 {
	s.end()
	_ = s.body.Close()
	return s.events[len(s.events)-1].id
}

// rows returns the newest state of each organization in the events.
func rows(events ...event) map[string]gjson.Result {
	newest := map[string]gjson.Result{}
	for _, e := range events {
		if e.name == "organization" {
			newest[e.data.Get("organization").String()] = e.data
		}
	}
	return newest
}

// wantSameAsJob compares the events of a stream, which ends with an end event, with the job's own answer.
func (w *world) wantSameAsJob(job string, events []event) {
	w.t.Helper()
	shown := w.job(job)
	reported := rows(events...)
	if n := len(shown.Get("organizations").Array()); n != len(reported) {
		w.t.Errorf("events of %d organizations, the job has %d", len(reported), n)
	}
	var sum core.Totals
	for _, row := range shown.Get("organizations").Array() {
		name := row.Get("organization").String()
		if reported[name].Raw != row.Raw {
			w.t.Errorf("the event of organization %s is %s, the job's answer %s", name, reported[name].Raw, row.Raw)
		}
		totals := reported[name].Get("totals")
		sum.Add(core.Totals{
			Expected: totals.Get("expected").Int(), Fetched: totals.Get("fetched").Int(), Indexed: totals.Get("indexed").Int(),
			Stale: totals.Get("stale").Int(), Removed: totals.Get("removed").Int(), Rejected: totals.Get("rejected").Int(),
			Retried: totals.Get("retried").Int(),
		})
	}
	last := slices.Clone(events)
	slices.Reverse(last)
	if len(last) < 2 || last[0].name != "end" || last[1].name != "job" {
		w.t.Fatalf("the last events: %+v", last[:min(len(last), 3)])
	}
	end, whole := last[0].data, last[1].data
	for _, member := range []string{"id", "scope", "repository", "indexName", "state", "cause", "queuedAt", "startedAt", "endedAt", "totals", "error", "organizationsTotal", "ratePerSecond"} {
		if whole.Get(member).Raw != shown.Get(member).Raw {
			w.t.Errorf("%s of the job is %s in the event, %s in its answer", member, whole.Get(member).Raw, shown.Get(member).Raw)
		}
	}
	if whole.Get("organizations").Exists() || end.Raw != `{"state":`+shown.Get("state").Raw+`}` {
		w.t.Errorf("the end: %s, %s", whole.Raw, end.Raw)
	}
	for member, n := range map[string]int64{
		"expected": sum.Expected, "fetched": sum.Fetched, "indexed": sum.Indexed, "removed": sum.Removed,
		"stale": sum.Stale, "rejected": sum.Rejected, "retried": sum.Retried,
	} {
		if got := shown.Get("totals." + member).Int(); got != n {
			w.t.Errorf("%s of the job is %d, the organizations' sum is %d", member, got, n)
		}
	}
}

// TestEvents: the stream of a running job has the progress of each organization and of the job; a stream that breaks is resumed by its
// last id, with only what changed since; nothing follows the end event.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{pageSize: 25})
	for i := range 4 {
		w.fill(fmt.Sprintf("S%d", i), 60)
	}
	w.put("S1", "bad", broken)
	release := make(chan struct{})
	w.song.Fail(testkit.Fault{Path: regexp.MustCompile(`/studies/S3/.*offset=[1-9]`), Times: 1, Release: release})
	job := w.startRun("", "")

	one := w.follow(w.url, job, 0, http.StatusOK)
	two := w.follow(w.url, job, 0, http.StatusOK)
	one.until(func(e event) bool {
		ended := 0
		for _, row := range rows(append(one.events, e)...) {
			if row.Get("totals.indexed").Int() >= 60 {
				ended++
			}
		}
		return e.name == "job" && ended == 3
	})
	last := one.events[len(one.events)-1]
	if last.data.Get("state").String() != "running" || last.data.Get("organizationsTotal").Int() != 4 ||
		last.data.Get("totals.indexed").Int() < 180 || last.data.Get("totals.rejected").Int() != 1 {
		t.Errorf("the job in its middle: %s", last.data.Raw)
	}
	from := one.drop()

	again := w.follow(w.url, job, from, http.StatusOK)
	again.until(func(e event) bool { return e.name == "job" })
	for name := range rows(again.events...) {
		if name != "S3" && rows(one.events...)[name].Get("state").String() == "succeeded" {
			t.Errorf("an event of %s, which has not changed: %+v", name, again.events)
		}
	}
	ahead := w.follow(w.url, job, from+1_000_000, http.StatusOK) // an id that no event has
	ahead.until(func(e event) bool { return e.name == "job" })
	if n := len(rows(ahead.events...)); n != 4 {
		t.Errorf("a client with a foreign id got events of %d organizations, want all 4", n)
	}
	close(release)
	for _, s := range []*stream{again, two, ahead} {
		s.rest()
	}
	w.wantSameAsJob(job, two.events)
	w.wantSameAsJob(job, ahead.events)
	w.wantSameAsJob(job, append(slices.Clone(one.events), again.events...))
	if state := w.job(job).Get("state").String(); state != string(core.JobPartial) {
		t.Errorf("the job ended %s", state)
	}

	end := again.events[len(again.events)-1].id
	for range 2 {
		w.follow(w.url, job, end, http.StatusNoContent)
	}
	w.follow(w.url, job, end+5, http.StatusNoContent)
	late := w.follow(w.url, job, 0, http.StatusOK) // all of it again
	late.rest()
	w.wantSameAsJob(job, late.events)
	behind := w.follow(w.url, job, from, http.StatusOK) // came back too late
	behind.rest()
	w.wantSameAsJob(job, append(slices.Clone(one.events), behind.events...))
}

// TestEventsRefuse: a stream that cannot be opened is answered with a problem.
func TestEventsRefuse(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.fill("S1", 5)
	if a := w.mustRequest(http.MethodGet, "/jobs/none/events", http.StatusNotFound); a.get("code").String() != "not_found" || a.get("detail").String() == "" {
		t.Errorf("events of no job: %s", a.raw)
	}
	job := w.run("S1", "", core.JobSucceeded).Get("id").String()
	a := w.mustRequest(http.MethodGet, "/jobs/"+job+"/events?lastEventId=x", http.StatusBadRequest)
	if a.get("detail").String() != "query parameter lastEventId is not an id issued by this server" {
		t.Errorf("a wrong id: %s", a.raw)
	}
	if a := w.mustRequest(http.MethodGet, "/jobs/"+job+"/events?lastEventId=1000000", http.StatusNoContent); len(a.raw) != 0 {
		t.Errorf("the end by query: %s", a.raw)
	}
}

// TestEventsCancelled: a job that is cancelled ends its streams, with its organizations as they are then.
func TestEventsCancelled(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{pageSize: 25})
	w.fill("S1", 60)
	w.fill("S2", 60)
	release := make(chan struct{})
	defer close(release)
	w.song.Fail(testkit.Fault{Path: pagesOf("S2"), Times: 1, Release: release})
	job := w.startRun("", "")
	s := w.follow(w.url, job, 0, http.StatusOK)
	s.until(func(e event) bool { return rows(s.events...)["S1"].Get("state").String() == "succeeded" })
	w.mustRequest(http.MethodDelete, "/jobs/"+job, http.StatusOK)
	s.rest()
	end := s.events[len(s.events)-1]
	if end.data.Get("state").String() != string(core.JobCancelled) || rows(s.events...)["S1"].Get("state").String() != "succeeded" {
		t.Errorf("the events of a cancelled job: %+v", s.events)
	}
}

// TestEventsElsewhere: a job may be followed at any process, whichever works on it, and one client may go on where another
// process stopped.
func TestEventsElsewhere(t *testing.T) {
	t.Parallel()
	p := startPair(t, settings{pageSize: 20})
	for i := range 4 {
		p.fill(fmt.Sprintf("S%d", i), 100)
	}
	release := make(chan struct{})
	p.song.Fail(testkit.Fault{Path: regexp.MustCompile(`/studies/S3/.*offset=[1-9]`), Times: 1, Release: release})
	job := p.startRun("", "")
	here, there := p.follow(p.url, job, 0, http.StatusOK), p.follow(p.second.URL(), job, 0, http.StatusOK)
	moving := p.follow(p.url, job, 0, http.StatusOK)
	moving.until(func(e event) bool {
		return e.name == "job" && rows(moving.events...)["S0"].Get("state").String() == "succeeded"
	})
	from := moving.drop()
	moved := p.follow(p.second.URL(), job, from, http.StatusOK) // ids are the same everywhere
	close(release)
	for _, s := range []*stream{here, there, moved} {
		s.rest()
	}
	p.wantSameAsJob(job, here.events)
	p.wantSameAsJob(job, there.events)
	p.wantSameAsJob(job, append(slices.Clone(moving.events), moved.events...))
	for _, url := range []string{p.url, p.second.URL()} {
		p.follow(url, job, there.events[len(there.events)-1].id, http.StatusNoContent)
	}
	p.awaitConverged(wait)
}

// TestEventsOfOther: when the process that runs a job stops, its streams end without an end event, and a client that resumes at another
// process gets the end of the job.
func TestEventsOfOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{pageSize: 20, queueURL: externalQueue(t), faulty: true, shutdownTimeout: 12 * time.Second})
	w.start()
	w.awaitPaused(false)
	for i := range 3 {
		w.fill(fmt.Sprintf("S%d", i), 100)
	}
	release := make(chan struct{})
	defer close(release)
	w.song.Fail(testkit.Fault{Path: regexp.MustCompile(`/studies/S2/.*offset=[1-9]`), Times: 1, Release: release})
	job := w.startRun("", "")
	before := w.follow(w.url, job, 0, http.StatusOK)
	before.until(func(e event) bool {
		return e.name == "job" && rows(before.events...)["S0"].Get("state").String() == "succeeded"
	})
	other := w.secondProcess().newApp()
	if err := other.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("stopping the other app: %v", err)
		}
	})
	w.stop() // requeues the page that it waits for
	for e, more := before.next(); more; e, more = before.next() {
		if e.name == "end" {
			t.Errorf("the stream of a process that stops ends as if the job had: %+v", e)
		}
	}
	w.app, w.url = other, other.URL()
	after := w.follow(w.url, job, before.events[len(before.events)-1].id, http.StatusOK)
	after.rest()
	w.wantSameAsJob(job, append(slices.Clone(before.events), after.events...))
	w.awaitConverged(wait)
}
