package retry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/consumers/loop"
	"tutti/consumers/retry"
	"tutti/internal/core"
	"tutti/internal/tools/fakes"
)

// world has the ports of a Worker in memory.
type world struct {
	t *testing.T
	// letters are the ids of the dead letters, the newest first.
	letters []string
	// retried counts how often each was retried, in the order of the first.
	retried map[string]int
	order   []string
	fakes.Jobs
	// queued holds the messages that are delivered next, with their deliveries.
	queued chan message
	acked  atomic.Int64
	// retry and half are called before a page is retried and when the room of the queue is asked for.
	retry func(page int) (refused int, err error)
	half  func() bool
	// batches are how many are pending of a limit of 10, each time it is asked for, and 0 afterwards.
	batches []int
	// elsewhere is how often the repository is another process's.
	elsewhere int
	pages     int
}

func newWorld(t *testing.T, letters int) *world {
	w := &world{t: t, retried: map[string]int{}, queued: make(chan message, 10)}
	for i := range letters {
		w.letters = append(w.letters, fmt.Sprintf("%03d", letters-i))
	}
	return w
}

func request() core.Request {
	return core.Request{ID: "r", Kind: core.KindIndex, Scope: core.ScopeRetry, Repository: "song", Organization: "S1", Reason: core.ReasonRejected, JobID: "j", Cause: core.CauseREST}
}

// message is the Request of the job.
type message struct {
	*world
	deliveries int
}

func (m message) Request() core.Request     { return request() }
func (m message) Version() core.Version     { return 1 }
func (m message) Deliveries() int           { return m.deliveries }
func (m message) InProgress() error         { return nil }
func (m message) Ack(context.Context) error { m.acked.Add(1); return nil }

func (m message) Nak(delay time.Duration) error {
	time.AfterFunc(delay, func() { m.queued <- message{m.world, m.deliveries + 1} })
	return nil
}

func (w *world) Fetch(ctx context.Context, _, _ int, wait time.Duration) ([]core.Message, error) {
	select {
	case m := <-w.queued:
		return []core.Message{m}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(wait):
		return nil, nil
	}
}

// EachPage has pages of 10; a cursor is the last id of a page.
func (w *world) EachPage(_ context.Context, f core.DeadLetterFilter, each func([]core.DeadLetter, int, int, string) error) error {
	if f.Repository != "song" || f.Organization != "S1" || f.Reason != core.ReasonRejected || f.Limit < 100 {
		w.t.Errorf("pages of %+v", f)
	}
	left := w.letters
	for f.Cursor != "" && len(left) > 0 && left[0] >= f.Cursor {
		left = left[1:]
	}
	for len(left) > 0 {
		page := make([]core.DeadLetter, 0, 10)
		for _, id := range left[:min(10, len(left))] {
			page = append(page, core.DeadLetter{ID: id})
		}
		left = left[len(page):]
		if err := each(page, len(page), len(left), page[len(page)-1].ID); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) RetryPage(_ context.Context, letters []core.DeadLetter, organization, requestID string) (int, int, error) {
	if requestID != "r" || organization != "S1" {
		w.t.Errorf("request id %q, organization %q", requestID, organization)
	}
	w.pages++
	refused := 0
	if w.retry != nil {
		var err error
		if refused, err = w.retry(w.pages); err != nil {
			return 0, 0, err
		}
	}
	for _, l := range letters {
		if w.retried[l.ID]++; w.retried[l.ID] == 1 {
			w.order = append(w.order, l.ID)
		}
	}
	return len(letters) - refused, refused, nil
}

func (w *world) Elsewhere(_ context.Context, repository string) (bool, error) {
	if repository != "song" {
		w.t.Errorf("repository %q", repository)
	}
	w.elsewhere--
	return w.elsewhere >= 0, nil
}

func (w *world) Room(context.Context) (halfFull bool, batches, limit int, err error) {
	if len(w.batches) > 0 {
		batches, w.batches = w.batches[0], w.batches[1:]
	}
	return w.half != nil && w.half(), batches, 10, nil
}

// run runs a process until the message is acknowledged.
func (w *world) run() {
	stop := w.start()
	w.queued <- message{w, 1}
	for w.acked.Load() == 0 {
		time.Sleep(time.Second)
		synctest.Wait()
	}
	stop()
}

func (w *world) start() (stop func()) {
	p := loop.NewProcess(30 * time.Second)
	l := loop.New(p, nil, nil, loop.Config{
		Logger: slog.New(slog.DiscardHandler), AckWait: 30 * time.Second, MaxDeliver: 20, RetryBase: 100 * time.Millisecond, RetryMax: time.Minute,
	})
	worker := retry.New(l, retry.Config{Logger: slog.New(slog.DiscardHandler), Letters: w, Retrier: w, Jobs: w, Room: w})
	p.Start(func() { worker.Pull(w) })
	return func() {
		if err := p.Stop(context.WithoutCancel(w.t.Context())); err != nil {
			w.t.Error(err)
		}
	}
}

func (w *world) want(state core.JobState, text string, totals core.Totals) {
	w.t.Helper()
	job := w.All["j"]
	if job.State != state || job.Totals != totals {
		w.t.Errorf("the job is %s with %+v", job.State, job.Totals)
	}
	if e := job.Error; (e == nil) != (text == "") || e != nil && !strings.HasPrefix(e.Message, text) {
		w.t.Errorf("the job's error: %+v", e)
	}
	if job.IndexName != "" {
		w.t.Errorf("the job is of the index %s, which only those of one repository have", job.IndexName)
	}
	if job.State.Final() != (job.EndedAt != nil) || job.StartedAt == nil {
		w.t.Errorf("started %v, ended %v", job.StartedAt, job.EndedAt)
	}
}

// TestOutcomes: the job counts what it has retried and what cannot be, and says so in its state.
func TestOutcomes(t *testing.T) {
	for name, tt := range map[string]struct {
		letters int
		refused []int
		state   core.JobState
		text    string
		totals  core.Totals
	}{
		"none":           {0, nil, core.JobSucceeded, "", core.Totals{}},
		"all":            {25, nil, core.JobSucceeded, "", core.Totals{Expected: 25, Fetched: 25, Retried: 25}},
		"not all":        {25, []int{0, 3, 1}, core.JobPartial, "4 of 25 dead letters cannot be retried", core.Totals{Expected: 25, Fetched: 25, Retried: 21, Rejected: 4}},
		"none of them":   {12, []int{10, 2}, core.JobFailed, "12 of 12 dead letters cannot be retried", core.Totals{Expected: 12, Fetched: 12, Rejected: 12}},
		"exactly a page": {10, []int{0}, core.JobSucceeded, "", core.Totals{Expected: 10, Fetched: 10, Retried: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tt.letters)
				w.retry = func(page int) (int, error) {
					if page <= len(tt.refused) {
						return tt.refused[page-1], nil
					}
					return 0, nil
				}
				w.run()
				w.want(tt.state, tt.text, tt.totals)
				if len(w.order) != tt.letters {
					t.Errorf("%d retried", len(w.order))
				}
			})
		})
	}
}

// TestElsewhere: a retry of a repository that is not configured here, but in another process, is left to that process, and the job
// does not start.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 25)
		w.elsewhere = 3
		began := time.Now()
		w.run()
		w.want(core.JobSucceeded, "", core.Totals{Expected: 25, Fetched: 25, Retried: 25})
		if waited := w.All["j"].StartedAt.Sub(began); waited != 3*loop.BusyDelay {
			t.Errorf("the job started after %v", waited)
		}
	})
}

// TestCursor: after an error, and after a crash, the job goes on with the page that had not ended, and counts each page once.
func TestCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 95)
		w.retry = func(page int) (int, error) {
			if page%3 == 0 {
				return 0, core.NewError(core.CodeOverloaded, "the queue is full")
			}
			return 0, nil
		}
		w.run()
		w.want(core.JobSucceeded, "", core.Totals{Expected: 95, Fetched: 95, Retried: 95})
		if diff := cmp.Diff(w.letters, w.order); diff != "" {
			t.Error(diff)
		}
		for id, n := range w.retried {
			if n != 1 {
				t.Errorf("%s was retried %d times", id, n)
			}
		}
	})
}

// TestRemovedBetween: where a crash came after the last page was retried, and its dead letters were removed before the job went on, no page is
// left, and the job expects no more than it has read.
func TestRemovedBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 25)
		w.retry = func(page int) (int, error) {
			if page == 3 {
				w.letters = w.letters[:20]
				return 0, core.NewError(core.CodeUnavailable, "the process was killed")
			}
			return 0, nil
		}
		w.run()
		w.want(core.JobSucceeded, "", core.Totals{Expected: 20, Fetched: 20, Retried: 20})
	})
}

// TestCancel: a job that is cancelled in the middle retries nothing more, and keeps its counts; so does one that waits for the queue.
func TestCancel(t *testing.T) {
	for _, waits := range []bool{false, true} {
		t.Run(fmt.Sprint("waits ", waits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 95)
				cancel := func() {
					if _, err := w.Update(t.Context(), "j", func(j *core.Job) error {
						j.End(core.JobCancelled, &core.JobError{Code: core.JobErrorCancelled, Message: "cancelled on request"})
						return nil
					}); err != nil {
						t.Error(err)
					}
				}
				if waits {
					w.half = func() bool { return w.pages == 2 }
					time.AfterFunc(20*time.Minute, cancel)
				} else {
					w.retry = func(page int) (int, error) {
						if page == 3 {
							cancel()
						}
						return 0, nil
					}
				}
				w.run()
				w.want(core.JobCancelled, "cancelled on request", core.Totals{Expected: 95, Fetched: 20, Retried: 20})
				if pages := map[bool]int{false: 3, true: 2}[waits]; w.pages != pages {
					t.Errorf("%d pages were retried", w.pages)
				}
			})
		})
	}
}

// TestRoom: a job waits while the queue is more than half full, and then goes on.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 25)
		asked := 0
		w.half = func() bool { asked++; return asked < 500 }
		began := time.Now()
		w.run()
		w.want(core.JobSucceeded, "", core.Totals{Expected: 25, Fetched: 25, Retried: 25})
		if took := time.Since(began); took < 499*time.Second {
			t.Errorf("ended after %s", took)
		}
	})
}

// TestBatches: a job waits while more batches are pending than it lets be, at most half of the limit, as long as one ends each second.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		same := func(batches, checks int) []int { return slices.Repeat([]int{batches}, checks) } // 40 checks a second
		for _, test := range []struct {
			batches []int
			waits   time.Duration
		}{
			{[]int{5, 4, 0}, 0},
			{[]int{20, 10, 6, 5}, 75 * time.Millisecond},
			{append(same(9, 41), 5), time.Second},
			{append(append(same(9, 40), same(8, 40)...), 5), 2 * time.Second},
			{same(9, 3*41), 3 * time.Second}, // each of three pages
		} {
			w := newWorld(t, 25)
			w.batches = test.batches
			w.run()
			w.want(core.JobSucceeded, "", core.Totals{Expected: 25, Fetched: 25, Retried: 25})
			if took := w.All["j"].EndedAt.Sub(*w.All["j"].StartedAt); took != test.waits || len(w.batches) > 0 {
				t.Errorf("%v: ended after %s, want %s; %v left", test.batches, took, test.waits, w.batches)
			}
		}
	})
}

// TestStop: a process that stops leaves the job to the next one, which goes on where it was.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 95)
		at, goOn := make(chan struct{}), make(chan struct{})
		w.retry = func(page int) (int, error) {
			if page == 4 {
				close(at)
				<-goOn
			}
			return 0, nil
		}
		stop := w.start()
		w.queued <- message{w, 1}
		<-at
		done := make(chan struct{})
		go func() { stop(); close(done) }()
		synctest.Wait()
		close(goOn)
		<-done
		w.want(core.JobRunning, "", core.Totals{Expected: 95, Fetched: 40, Retried: 40})
		stop = w.start()
		for w.acked.Load() == 0 {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		stop()
		w.want(core.JobSucceeded, "", core.Totals{Expected: 95, Fetched: 95, Retried: 95})
		if diff := cmp.Diff(w.letters, w.order); diff != "" {
			t.Error(diff)
		}
	})
}

// TestTwoProcesses: a job that another process has continued is left to it.
func TestTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 95)
		w.retry = func(page int) (int, error) {
			if page == 2 {
				if _, err := w.Update(t.Context(), "j", func(j *core.Job) error {
					j.Cursor = w.letters[49]
					j.Totals = core.Totals{Expected: 95, Fetched: 50, Retried: 50}
					return nil
				}); err != nil {
					return 0, errors.New("updating the job")
				}
			}
			return 0, nil
		}
		w.run()
		w.want(core.JobSucceeded, "", core.Totals{Expected: 95, Fetched: 95, Retried: 95})
	})
}
