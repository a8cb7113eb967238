package apitest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
)

// JobChange returns the change of a job to a state.
func JobChange(revision uint64, state core.JobState) core.JobChange {
	job := QueuedJob("job-1")
	started := Noon.Add(-10 * time.Second)
	job.State, job.StartedAt, job.ExpectedOrganizations = state, &started, new(0)
	if state.Final() {
		job.EndedAt, job.Totals = &Noon, core.Totals{Expected: 999, Fetched: 999}
	}
	return core.JobChange{Revision: revision, Job: &job}
}

// RunChange returns the change of an organization of a job to a number of records fetched.
func RunChange(revision uint64, organization string, fetched int64) core.JobChange {
	return core.JobChange{Revision: revision, Run: &core.OrganizationRun{
		Organization: organization, State: core.JobRunning, Totals: core.Totals{Expected: 100, Fetched: fetched},
	}}
}

// Changes is a job whose changes a test sends; closing it removes the job, an error ends the watch.
type Changes struct {
	there []core.JobChange
	Later chan core.JobChange
	Err   chan error
	// Gone is closed when a watch has ended.
	Gone chan struct{}
}

// NewChanges returns changes of which some are there.
func NewChanges(there ...core.JobChange) *Changes {
	return &Changes{there: there, Later: make(chan core.JobChange), Err: make(chan error), Gone: make(chan struct{})}
}

// Watch calls each with every change, from those that are there on, until ctx ends.
func (c *Changes) Watch(ctx context.Context, _ string, each func(core.JobChange) error) error {
	defer close(c.Gone)
	var highest uint64
	for _, ch := range c.there {
		highest = max(highest, ch.Revision)
		if err := each(ch); err != nil {
			return err
		}
	}
	if err := each(core.JobChange{Revision: highest}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-c.Err:
			return err
		case ch, ok := <-c.Later:
			if !ok {
				return nil
			}
			if err := each(ch); err != nil {
				return err
			}
		}
	}
}

// Event is one as a client reads it.
type Event struct {
	ID         uint64
	Name, Data string
}

// String returns the part of the data that distinguishes the events of these tests.
func (e Event) String() string {
	var d struct {
		Organization string
		State        core.JobState
		Totals       core.Totals
	}
	if err := json.Unmarshal([]byte(e.Data), &d); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s %s %s %d", e.ID, e.Name, d.Organization, d.State, d.Totals.Fetched)
}

// ReadEvents reads a stream as the WHATWG's parser does; comments are events without a name.
func ReadEvents(t *testing.T, body string) []Event {
	t.Helper()
	if body == "" {
		return nil
	}
	if !strings.HasSuffix(body, "\n\n") {
		t.Errorf("the stream ends within an event: %q", body)
	}
	var events []Event
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		var e Event
		for line := range strings.SplitSeq(block, "\n") {
			field, value, ok := strings.Cut(line, ": ")
			var err error
			switch {
			case !ok:
				err = fmt.Errorf("no field: %q", line)
			case field == "id":
				e.ID, err = strconv.ParseUint(value, 10, 64)
			case field == "event":
				e.Name = value
			case field == "data" || field == "":
				e.Data = value
			case field != "retry" || value != "2000":
				err = fmt.Errorf("field %q", line)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if e != (Event{}) {
			events = append(events, e)
		}
	}
	return events
}

// WantEvents compares the events of a body with those wanted, as Event.String writes them.
func WantEvents(t *testing.T, body string, want ...string) {
	t.Helper()
	var got []string
	for _, e := range ReadEvents(t, body) {
		if e.Name == "" {
			got = append(got, e.Data)
		} else {
			got = append(got, e.String())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events: %s", diff)
	}
}

// recorder is a ResponseRecorder that can be read while it is written.
type recorder struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (w *recorder) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseRecorder.Write(b)
}

// Stream is a request for events under way.
type Stream struct {
	W      *recorder
	Cancel context.CancelFunc
	Done   chan struct{}
}

// Open asks h for events; inside a bubble of synctest what was written can be read after synctest.Wait.
func Open(t *testing.T, h http.Handler, method, target string, header http.Header) *Stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, method, target, nil)
	maps.Copy(r.Header, header)
	s := &Stream{W: &recorder{ResponseRecorder: httptest.NewRecorder()}, Cancel: cancel, Done: make(chan struct{})}
	go func() {
		defer close(s.Done)
		h.ServeHTTP(s.W, r)
	}()
	return s
}

// Text returns what was written so far.
func (s *Stream) Text() string {
	s.W.mu.Lock()
	defer s.W.mu.Unlock()
	return s.W.Body.String()
}

// Ended reports whether the answer has ended.
func (s *Stream) Ended() bool {
	select {
	case <-s.Done:
		return true
	default:
		return false
	}
}

// Watching returns ports whose job changes as c says.
func Watching(c *Changes) *Ports {
	p := Working()
	p.WatchFn = c.Watch
	return p
}
