package consumers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
)

var (
	errBlocked = core.NewError(core.CodeIndexBlocked, "the index is closed")
	errDown    = unavailable("the index does not answer")
)

// TestPause: while the index takes no writes nothing is pulled, and the reason is shown; afterwards the index converges.
func TestPause(t *testing.T) {
	for _, fault := range []error{errBlocked, errDown} {
		t.Run(core.MessageOf(fault), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 10)
				w.upstream.fill("B", 300)
				p := w.boot(-1)
				synctest.Wait()
				if n := len(p.c.Paused()); n != 0 {
					t.Fatalf("paused: %v", p.c.Paused())
				}
				w.engine.setDown(fault)
				w.index("A", "A-0000")
				job := w.run("B", false)
				eventually(t, "the pause", func() bool { return len(p.c.Paused()) == 1 })
				time.Sleep(200 * time.Millisecond) // earlier deliveries are requeued or wait
				if got := p.c.Paused()[0]; got.Repository != "song" || got.Reason != core.MessageOf(fault) || !got.Index {
					t.Errorf("paused: %+v", got)
				}
				asked, pages := w.upstream.requestsFor(""), len(w.upstream.pageCalls())
				_, given := w.broker.counts()
				for range 100 {
					for id := range w.upstream.model() {
						if id[0] == 'A' {
							w.index("A", id)
						}
					}
				}
				time.Sleep(time.Minute)
				if _, now := w.broker.counts(); now != given {
					t.Errorf("%d messages were pulled while paused", now-given)
				}
				if w.upstream.requestsFor("") != asked || len(w.upstream.pageCalls()) != pages {
					t.Error("the upstream was asked while paused")
				}
				w.engine.setDown(nil)
				w.ended(w.job(job), core.JobSucceeded, "")
				w.verify()
				if len(p.c.Paused()) != 0 {
					t.Errorf("still paused: %v", p.c.Paused())
				}
				if n := w.upstream.requestsFor(""); n > 30 { // 1,000 triggers for 10 records
					t.Errorf("%d fetches", n)
				}
				if n := len(w.store.dead()); n != 0 {
					t.Errorf("%d dead letters", n)
				}
			})
		})
	}
}

// TestPauseEndsFetch: a fetch that waits when the index goes down must not take messages afterwards.
func TestPauseEndsFetch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 3)
		p := w.boot(-1)
		w.index("A", "A-0000")
		w.idle()
		synctest.Wait() // all pulls wait
		w.engine.setDown(errBlocked)
		w.index("A", "A-0001")
		eventually(t, "the pause", func() bool { return len(p.c.Paused()) == 1 })
		_, given := w.broker.counts()
		synctest.Wait()
		w.index("A", "A-0002")
		w.run("A", false)
		synctest.Wait()
		if _, now := w.broker.counts(); now != given {
			t.Errorf("%d messages were pulled", now-given)
		}
		w.engine.setDown(nil)
		w.idle()
		w.verify()
	})
}

// TestPrepare: the index is prepared once, before anything is pulled, with retries until that succeeds.
func TestPrepare(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 3)
		w.engine.setDown(errDown)
		p := w.make(-1)
		if got := p.c.Paused(); len(got) != 1 || got[0].Reason != "the first check of the index has not ended" {
			t.Errorf("before the first check: %v", got)
		}
		w.index("A", "A-0000")
		p.c.Start()
		p.c.Start() // once only
		time.Sleep(10 * time.Second)
		if fetches, _ := w.broker.counts(); fetches != 0 {
			t.Error("pulled before the index was there")
		}
		if got := p.c.Paused(); len(got) != 1 || got[0].Reason != errDown.Error() {
			t.Errorf("paused: %v", got)
		}
		prepared := w.engine.prepared
		if prepared < 4 || prepared > 20 {
			t.Errorf("asked %d times in 10 s", prepared)
		}
		w.engine.setDown(nil)
		w.idle()
		w.engine.setDown(errBlocked)
		w.index("A", "A-0001")
		eventually(t, "the pause", func() bool { return len(p.c.Paused()) == 1 })
		w.engine.setDown(nil)
		w.idle()
		if w.engine.prepared != prepared+1 || w.engine.checks == 0 {
			t.Errorf("prepared %d times, checked %d times", w.engine.prepared, w.engine.checks)
		}
	})
}

// TestFlappingIndex: the index goes down and up repeatedly under load.
func TestFlappingIndex(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 500)
		w.upstream.fill("B", 200)
		n := 0
		w.engine.hold = func(context.Context, core.Batch) error {
			w.engine.mu.Lock()
			defer w.engine.mu.Unlock()
			switch n++; n % 5 {
			case 1:
				return errBlocked
			case 3:
				return errDown
			default:
				return nil
			}
		}
		w.boot(-1)
		id := w.run("", false)
		for id := range w.upstream.model() {
			if id[0] == 'B' {
				w.index("B", id)
			}
		}
		w.ended(w.job(id), core.JobSucceeded, "")
		w.verify()
	})
}

// TestQueueDown: failed fetches are retried with backoff.
func TestQueueDown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 300)
		failures := 0
		w.onPublish = func(core.Request) error {
			if failures++; failures%3 != 0 {
				return unavailable("the queue does not answer")
			}
			return nil
		}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.verify()
		if n := len(w.upstream.pageCalls()); n != 4 {
			t.Errorf("%d pages were read", n)
		}
	})
}
