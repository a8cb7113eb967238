package consumers_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
)

// outages makes all calls to w's upstream fail while the returned flag is set, and runs wait an hour.
func outages(w *world) *atomic.Bool {
	w.giveUpAfter = time.Hour
	w.cfg.RetryMax = time.Minute
	down := new(atomic.Bool)
	fail := func() error {
		if down.Load() {
			return unavailable("the repository answered 503")
		}
		return nil
	}
	w.upstream.onPage = func(context.Context, pageCall) error { return fail() }
	w.upstream.onRecord = func(context.Context, string, string) error { return fail() }
	w.upstream.onList = fail
	return down
}

// paused waits until a job is paused with the reason.
func (w *world) paused(id string) core.Job {
	w.t.Helper()
	var job core.Job
	read := w.store.watch(id)
	eventually(w.t, "the pause of "+id, func() bool {
		job, _ = read()
		return job.State == core.JobPaused
	})
	if job.Pause == nil || job.Pause.Since.IsZero() || job.EndedAt != nil ||
		job.Pause.Reason != "waiting for the repository: the repository answered 503" {
		w.t.Errorf("%s is paused as %+v", id, job.Pause)
	}
	return job
}

// wantNoPause checks that no trace of a pause is left in a job and its organizations.
func (w *world) wantNoPause(p *process, job core.Job) {
	w.t.Helper()
	if job.Pause != nil {
		w.t.Errorf("%s ended with %+v", job.ID, job.Pause)
	}
	runs, err := w.store.runs(job.ID)
	for _, run := range runs {
		if err != nil || run.PausedSince != nil || run.State == core.JobPaused {
			w.t.Errorf("%v, %+v", err, run)
		}
	}
	if got := p.c.Paused(); len(got) != 0 {
		w.t.Errorf("still paused: %+v", got)
	}
}

// TestOutage: a run whose repository stops answering at any point of it is paused, and succeeds once the repository answers,
// without dead letters or removals because of the outage.
func TestOutage(t *testing.T) {
	for name, begins := range map[string]func(w *world, begin func()){
		"list of organizations": func(_ *world, begin func()) { begin() },
		"page": func(w *world, begin func()) {
			w.upstream.says = func(c pageCall, total int) int {
				if c.n == 4 {
					begin()
				}
				return total
			}
		},
		"sweep": func(w *world, begin func()) {
			fail := w.upstream.onRecord
			w.upstream.onRecord = func(ctx context.Context, org, id string) error {
				begin()
				return fail(ctx, org, id)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				down := outages(w)
				w.upstream.fill("A", 500)
				w.upstream.fill("B", 300)
				w.seed("A", 3)
				begins(w, sync.OnceFunc(func() { down.Store(true) }))
				p := w.boot(-1)
				id := w.run("", false)
				w.paused(id)
				live, calls := len(w.engine.live()), len(w.upstream.pageCalls())
				got := p.c.Paused()
				if len(got) != 1 || got[0].Repository != "song" || !strings.Contains(got[0].Reason, "503") || got[0].Index {
					t.Errorf("paused: %+v", got)
				}
				w.index("A", "A-0000")
				time.Sleep(50 * time.Minute)
				if job := w.paused(id); time.Since(job.Pause.Since) < 50*time.Minute {
					t.Errorf("paused since %s", job.Pause.Since)
				}
				if n := len(w.upstream.pageCalls()) - calls; n > 120 { // half a minute to a minute apart
					t.Errorf("%d calls in 50 minutes", n)
				}
				if n := len(w.engine.live()); n != live {
					t.Errorf("%d documents, %d before the outage", n, live)
				}
				down.Store(false)
				job := w.job(id)
				w.ended(job, core.JobSucceeded, "")
				w.verify()
				if n := len(w.store.dead()); n != 0 || job.Totals.Removed != 3 {
					t.Errorf("%d dead letters, totals %+v", n, job.Totals)
				}
				w.wantNoPause(p, job)
			})
		})
	}
}

// TestOutageOfProxy: a run is paused while a proxy answers all calls with its own 404, from any point of it on, and succeeds once
// the repository answers. The records that are requested meanwhile are retried. Nothing is removed or made a dead letter.
func TestOutageOfProxy(t *testing.T) {
	for name, tt := range map[string]struct {
		calls int64 // answered before the outage
		org   string
		lasts time.Duration
	}{
		"list of organizations":    {0, "", 50 * time.Minute},
		"first page":               {1, "", 50 * time.Minute},
		"page":                     {4, "", 50 * time.Minute},
		"page, for a moment":       {4, "", 20 * time.Second},
		"page of one organization": {3, "A", 50 * time.Minute},
		"sweep":                    {10, "", 50 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				outages(w)
				w.upstream.fill("A", 500)
				w.upstream.fill("B", 300)
				w.seed("A", 3)
				var calls atomic.Int64
				var until atomic.Pointer[time.Time]
				fail := func() error {
					if calls.Add(1) > tt.calls {
						end := time.Now().Add(tt.lasts)
						until.CompareAndSwap(nil, &end)
					}
					if end := until.Load(); end != nil && time.Now().Before(*end) {
						return errForeignNotFound
					}
					return nil
				}
				w.upstream.onList = fail
				w.upstream.onPage = func(context.Context, pageCall) error { return fail() }
				w.upstream.onRecord = func(context.Context, string, string) error { return fail() }
				p := w.boot(-1)
				id := w.run(tt.org, false)
				eventually(t, "the outage", func() bool { return until.Load() != nil })
				live := len(w.engine.live())
				w.index("A", "A-0000")
				w.index("A", "A-old-0000")
				if tt.lasts > time.Minute {
					var job core.Job
					read := w.store.watch(id)
					eventually(t, "the pause", func() bool {
						job, _ = read()
						return job.State == core.JobPaused
					})
					if want := "waiting for the repository: the repository answered 404 with a page of HTML"; job.Pause.Reason != want {
						t.Errorf("paused as %q, want %q", job.Pause.Reason, want)
					}
					if got := p.c.Paused(); len(got) != 1 || !strings.Contains(got[0].Reason, "404") {
						t.Errorf("paused: %+v", got)
					}
					time.Sleep(time.Until(*until.Load()) - time.Second)
				}
				if n := len(w.engine.live()); n < live {
					t.Errorf("%d documents, %d before the outage", n, live)
				}
				job := w.job(id)
				w.ended(job, core.JobSucceeded, "")
				if tt.org == "" {
					w.verify()
				} else if n := len(w.engine.live()); n != 500 {
					t.Errorf("%d documents, want 500", n)
				}
				if dead := w.store.dead(); len(dead) != 0 {
					t.Errorf("dead letters: %+v", dead)
				}
				w.wantNoPause(p, job)
			})
		})
	}
}

// TestOutageGivesUp: a run fails after GiveUpAfter, all its organizations together, and has then removed nothing. The next run
// waits as long.
func TestOutageGivesUp(t *testing.T) {
	for _, org := range []string{"", "A"} {
		t.Run(org, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				down := outages(w)
				for _, org := range []string{"A", "B", "C", "D", "E", "F"} {
					w.upstream.fill(org, 200)
				}
				w.seed("A", 1)
				begin := sync.OnceFunc(func() { down.Store(true) })
				w.upstream.says = func(_ pageCall, total int) int {
					begin()
					return total
				}
				p := w.boot(-1)
				id := w.run(org, false)
				w.paused(id)
				time.Sleep(59 * time.Minute)
				w.paused(id)
				time.Sleep(5 * time.Minute)
				job := w.await(id)
				w.ended(job, core.JobFailed, "unavailable")
				if !has(job.Error.Message, "503", "upstream.giveUpAfter", "1h0m0s") {
					t.Errorf("message %q", job.Error.Message)
				}
				if _, kept := w.engine.live()["A-old-0000"]; !kept {
					t.Error("a failed run has swept")
				}
				w.wantNoPause(p, job)
				again := w.run(org, false)
				w.paused(again)
				time.Sleep(55 * time.Minute)
				w.paused(again)
				down.Store(false)
				w.ended(w.job(again), core.JobSucceeded, "")
				if got := w.engine.live(); org == "" {
					w.verify()
				} else if len(got) != 200 {
					t.Errorf("%d documents, want 200", len(got))
				}
			})
		})
	}
}

// TestOutageCancel: a paused job is cancelled at once and its Requests end.
func TestOutageCancel(t *testing.T) {
	for _, org := range []string{"", "A"} {
		t.Run(org, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				outages(w).Store(true)
				w.upstream.fill("A", 200)
				var calls atomic.Int64
				list, page := w.upstream.onList, w.upstream.onPage
				w.upstream.onList = func() error {
					calls.Add(1)
					return list()
				}
				w.upstream.onPage = func(ctx context.Context, c pageCall) error {
					calls.Add(1)
					return page(ctx, c)
				}
				p := w.boot(-1)
				id := w.run(org, false)
				w.paused(id)
				time.Sleep(30 * time.Minute)
				before := calls.Load()
				eventually(t, "a probe", func() bool { return calls.Load() > before }) // the next one is at least half a minute later
				job, err := p.c.Cancel(t.Context(), id)
				if err != nil || job.State != core.JobCancelled {
					t.Fatalf("%+v, %v", job, err)
				}
				began := time.Now()
				w.idle()
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("its requests ended after %s", took)
				}
				w.wantNoPause(p, w.await(id))
			})
		})
	}
}

// TestOutageRestart: a paused job stays paused while its process stops or crashes, also at the next one, which waits for the
// rest of the time and resumes it.
func TestOutageRestart(t *testing.T) {
	for name, tt := range map[string]struct {
		org     string
		recover bool
	}{
		"list recovers": {"", true}, "list fails": {"", false}, "page recovers": {"A", true}, "page fails": {"A", false},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				down := outages(w)
				down.Store(true)
				w.upstream.fill("A", 500)
				p := w.boot(-1)
				id := w.run(tt.org, false)
				since := w.paused(id).Pause.Since
				time.Sleep(40 * time.Minute)
				if err := p.stop(t, time.Minute); err != nil {
					t.Fatal(err)
				}
				if got := w.paused(id).Pause.Since; !got.Equal(since) {
					t.Errorf("paused since %s, before %s", got, since)
				}
				p = w.boot(-1)
				time.Sleep(10 * time.Minute)
				if got := w.paused(id).Pause.Since; !got.Equal(since) {
					t.Errorf("paused since %s, before %s", got, since)
				}
				state, code := core.JobFailed, "unavailable"
				if tt.recover {
					down.Store(false)
					state, code = core.JobSucceeded, ""
				}
				time.Sleep(13 * time.Minute)
				job := w.await(id)
				w.ended(job, state, code)
				w.wantNoPause(p, job)
				if tt.recover {
					w.verify()
				}
			})
		})
	}
}

// TestOutageOfOnePage: while a single page is not answered, its job is paused and the other organizations are read; the
// repository itself is not paused.
func TestOutageOfOnePage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		down := outages(w)
		w.upstream.fill("A", 300)
		w.upstream.fill("B", 5000)
		w.upstream.latency = 2 * time.Second
		w.upstream.onList = nil
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.org == "A" && down.Load() {
				return unavailable("the repository answered 503")
			}
			return nil
		}
		down.Store(true)
		p := w.boot(-1)
		id := w.run("", false)
		w.paused(id)
		for range 300 {
			time.Sleep(100 * time.Millisecond)
			if job, err := w.store.job(id); err != nil || job.State != core.JobPaused {
				t.Fatalf("%v, the job is %s while one of its pages waits", err, job.State)
			}
		}
		synctest.Wait()
		read := 0
		for document := range w.engine.live() {
			if strings.HasPrefix(document, "B") {
				read++
			}
		}
		if got := p.c.Paused(); read == 0 || len(got) != 0 {
			t.Errorf("%d documents of the other organization, paused: %+v", read, got)
		}
		down.Store(false)
		job := w.job(id)
		w.ended(job, core.JobSucceeded, "")
		w.wantNoPause(p, job)
		w.verify()
	})
}

// TestOutageOfRecord: an error of one record's own is not an outage: the record becomes a dead letter and the run is not
// paused.
func TestOutageOfRecord(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		outages(w)
		w.upstream.fill("A", 200)
		w.seed("A", 1)
		w.upstream.onRecord = func(context.Context, string, string) error {
			return core.NewError(core.CodeUpstream, "the repository answered 400")
		}
		p := w.boot(-1)
		job := w.job(w.run("A", false))
		w.ended(job, core.JobPartial, core.JobErrorRecordsRejected)
		if n := len(w.store.dead()); n != 1 || job.Totals.Removed != 0 {
			t.Errorf("%d dead letters, totals %+v", n, job.Totals)
		}
		w.wantNoPause(p, job)
	})
}
