package alert_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
	"tutti/internal/report/alert"
)

// world is the queue that processes share, and one receiver.
type world struct {
	mu       sync.Mutex
	cells    map[string]cell
	revision uint64
	down     bool
	lose     bool       // the answer to the next write
	rivals   int        // the next writes that another process is ahead of
	cut      bool       // reading dead letters fails at the end
	jobs     []core.Job // the revision of the last change of a job is its position, from 1
	letters  []alert.Letter
	answers  []func(*http.Request) (*http.Response, error) // of the next requests; 200 after them
	bodies   []sent
	logs     bytes.Buffer
}

type cell struct {
	value    string
	revision uint64
}

// sent is one received message.
type sent struct {
	at       time.Duration  // since the start of the bubble
	ID       string         `json:"id"`
	Event    string         `json:"event"`
	Text     string         `json:"text"`
	Count    int            `json:"count"`
	Examples []alert.Event  `json:"examples"`
	Counts   map[string]int `json:"repositories"`
	header   http.Header
	raw      string
}

func newWorld() *world { return &world{cells: make(map[string]cell)} }

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a synctest bubble

func (w *world) Cell(_ context.Context, name string) (string, uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return "", 0, core.NewError(core.CodeUnavailable, "the queue does not answer")
	}
	return w.cells[name].value, w.cells[name].revision, nil
}

func (w *world) SetCell(_ context.Context, name, value string, revision uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return core.NewError(core.CodeUnavailable, "the queue does not answer")
	}
	if w.rivals > 0 {
		w.rivals--
		w.revision++
		w.cells[name] = cell{w.cells[name].value, w.revision}
	}
	if w.cells[name].revision != revision {
		return core.NewError(core.CodeConflict, "it was changed by another process")
	}
	w.revision++
	w.cells[name] = cell{value, w.revision}
	if value == "" {
		delete(w.cells, name)
	}
	if w.lose {
		w.lose = false
		return core.NewError(core.CodeUnavailable, "the queue does not answer")
	}
	return nil
}

// conflict makes the next n writes come after one of another process.
func (w *world) conflict(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rivals = n
}

// loseAnswer makes the next write succeed without an answer; losing reports whether it is still to come.
func (w *world) loseAnswer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose = true
}

func (w *world) losing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lose
}

func (w *world) LastRevision(context.Context) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return uint64(len(w.jobs)), nil
}

func (w *world) EachChangedAfter(_ context.Context, after uint64, each func(uint64, core.Job) error) error {
	w.mu.Lock()
	jobs := w.jobs
	w.mu.Unlock()
	last := make(map[string]int)
	for i, job := range jobs {
		last[job.ID] = i
	}
	for i, job := range jobs {
		if uint64(i) < after || last[job.ID] != i {
			continue
		}
		if err := each(uint64(i)+1, job); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) LastSequence(context.Context) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return uint64(len(w.letters)), nil
}

// EachAfter treats letters with the same First as replacing each other.
func (w *world) EachAfter(_ context.Context, after uint64, each func(alert.Letter)) (uint64, error) {
	w.mu.Lock()
	letters := w.letters
	w.mu.Unlock()
	last := make(map[uint64]uint64)
	for _, l := range letters {
		last[l.First] = l.Sequence
	}
	for _, l := range letters {
		if l.Sequence > after && last[l.First] == l.Sequence {
			each(l)
			after = l.Sequence
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return after, core.NewError(core.CodeUnavailable, "the connection was lost")
	}
	return after, nil
}

func (w *world) job(state core.JobState, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now().UTC()
	for range n {
		j := core.Job{ID: fmt.Sprintf("job-%d", len(w.jobs)+1), Repository: "song.a", State: state, EndedAt: &now}
		if state == core.JobFailed {
			j.Error = &core.JobError{Code: "upstream_error", Message: "the repository did not answer"}
		}
		w.jobs = append(w.jobs, j)
	}
}

// change appends a change of a job.
func (w *world) change(j core.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = append(w.jobs, j)
}

// letter stores a dead letter, the successor of the one with sequence first, 0 for a new one.
func (w *world) letter(repository string, first uint64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := alert.Letter{Sequence: uint64(len(w.letters)) + 1, First: first, StoredAt: time.Now().UTC(), Repository: repository}
	if first == 0 {
		l.First = l.Sequence
	}
	l.ID, l.Reason = fmt.Sprintf("letter-%d", l.First), "rejected"
	l.Read = func(context.Context) (core.DeadLetter, error) {
		if repository == "gone" {
			return core.DeadLetter{}, core.NewError(core.CodeNotFound, "no such dead letter")
		}
		return core.DeadLetter{
			ID: fmt.Sprintf("letter-%d", l.First), Repository: repository, Organization: "S1", RecordID: fmt.Sprintf("A%d", l.First), Reason: "rejected",
			Hint: "correct the record", JobID: "job-1",
		}, nil
	}
	w.letters = append(w.letters, l)
	return l.First
}

// RoundTrip is the receiver.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := sent{at: time.Since(epoch), header: r.Header, raw: string(body)}
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, err
	}
	w.bodies = append(w.bodies, s)
	if len(w.answers) > 0 {
		answer := w.answers[0]
		w.answers = w.answers[1:]
		return answer(r)
	}
	return answer(200)(r)
}

func answer(status int, header ...string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		r := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("said"))}
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r, nil
	}
}

func broken(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

// received returns the messages since the last call, once all is quiet.
func (w *world) received() []sent {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.bodies
	w.bodies = nil
	return all
}

// process starts a process for targets, json and every 5 minutes if not given; pauses may be nil.
func (w *world) process(t *testing.T, pauses func() []alert.Pause, targets ...alert.Target) *alert.Service {
	t.Helper()
	if pauses == nil {
		pauses = func() []alert.Pause { return nil }
	}
	if len(targets) == 0 {
		targets = []alert.Target{target}
	}
	s, err := alert.New(targets, alert.Deps{Cells: w, Jobs: w, Letters: w, Pauses: pauses}, alert.Config{
		HTTP: &http.Client{Transport: w}, Logger: slog.New(slog.NewTextHandler(&w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		PublicURL: "https://tutti.example.org", Sign: func(secret string, body []byte) string { return fmt.Sprintf("%s %d", secret, len(body)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start(t.Context())
	return s
}

var target = alert.Target{URL: "https://hooks.example.org/s3cret", Format: alert.FormatJSON, MinInterval: 5 * time.Minute}

func stop(t *testing.T, s *alert.Service) {
	t.Helper()
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// events returns the events and counts of messages, as in "job_failed 3".
func events(all []sent) string {
	var parts []string
	for _, s := range all {
		parts = append(parts, fmt.Sprintf("%s %d", s.Event, s.Count))
	}
	return strings.Join(parts, ", ")
}

// want fails the test unless exactly these messages have arrived since the last call.
func (w *world) want(t *testing.T, want string) []sent {
	t.Helper()
	all := w.received()
	if got := events(all); got != want {
		t.Fatalf("received %q, want %q\n%s", got, want, w.logs.String())
	}
	return all
}
