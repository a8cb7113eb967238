package consumers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestSuperseded: a process whose page was redelivered to another consumer does not acknowledge the page's message, for the
// other consumer may be the next that fails.
func TestSuperseded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 30)
		w.pageSize = 20
		w.upstream.latency = 4 * time.Second
		w.bulk.MaxBodyAge = time.Minute
		first := w.boot(-1)
		job := w.run("A", false)
		eventually(t, "the first page in hand", func() bool { return len(w.upstream.pageCalls()) == 1 })
		back := first.cutOff()
		second := w.boot(-1)
		taken := false
		w.afterPublish = func(r core.Request) {
			if r.Scope == core.ScopePage && r.Page.Number == 1 && r.Page.Epoch == 1 && !taken {
				taken = true
				reconnect := second.cutOff() // it has published the next page, and not yet reported this one
				back()
				time.AfterFunc(2*time.Minute, reconnect)
			}
		}
		w.ended(w.awaitFor(job, time.Hour), core.JobSucceeded, "")
		if !taken {
			t.Error("the page was not given to the second process")
		}
		w.idle()
		w.verify()
	})
}

// TestSupersededWhileAdmitted: a page is reported while another process checks whether it has to be read. The message of
// this process then ends the list, as the first one may fail before it can.
func TestSupersededWhileAdmitted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 10)
		w.upstream.latency = 4 * time.Second
		w.bulk.MaxBodyAge = time.Minute
		first := w.boot(-1)
		job := w.run("A", false)
		eventually(t, "the page in hand", func() bool { return len(w.upstream.pageCalls()) == 1 })
		var done atomic.Bool
		w.afterUpdate = func(p *process, run core.OrganizationRun) {
			if p == first && run.AllPagesDone() && done.CompareAndSwap(false, true) {
				time.AfterFunc(time.Hour, first.cutOff()) // it cannot end the organization any more
			}
		}
		second := w.boot(-1)
		w.afterRead = func(p *process) {
			if p == second {
				eventually(t, "the page's end", done.Load)
			}
		}
		w.broker.redeliver(core.ClassPages)
		w.ended(w.awaitFor(job, 30*time.Minute), core.JobSucceeded, "")
		w.idle()
		w.verify()
	})
}

// TestEndTakenOver: of organizations that end together one ends their job; when it fails after its message is gone, the
// other one does.
func TestEndTakenOver(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, org := range []string{"A", "B"} {
			w.upstream.fill(org, 20)
			w.seed(org, 3) // something to sweep
		}
		w.upstream.latency = 10 * time.Millisecond
		w.listingTakes = time.Second // so that both have ended before one of them looks
		var sweeps atomic.Int64
		w.engine.onScan = func() {
			if sweeps.Add(1) > 1 {
				return
			}
			time.Sleep(time.Second) // until the others have come to the end as well
			w.broker.clear()        // as if their previous consumers had acknowledged them
			w.engine.setDown(unavailable("the index does not answer"))
			time.AfterFunc(time.Second, func() { w.engine.setDown(nil) })
		}
		w.boot(-1)
		w.ended(w.awaitFor(w.run("", true), time.Hour), core.JobSucceeded, "")
		if n := sweeps.Load(); n != 2 {
			t.Errorf("%d sweeps were begun, want the one that failed and the other's", n)
		}
		w.idle()
		w.verify()
	})
}

// TestSupersededRecord: a process that was disconnected from the queue until its message was redelivered neither requeues
// that message nor keeps it from being delivered.
func TestSupersededRecord(t *testing.T) {
	hangs := func(w *world) (second *process, release chan struct{}) {
		w.upstream.fill("A", 1)
		calls := 0
		release = make(chan struct{})
		w.upstream.onRecord = func(ctx context.Context, _, _ string) error {
			w.upstream.mu.Lock()
			calls++
			call := calls
			w.upstream.mu.Unlock()
			if call == 1 {
				<-release
				return unavailable("the repository answered 500")
			}
			if call == 2 {
				<-ctx.Done()
			}
			return nil
		}
		first := w.boot(-1)
		w.index("A", "A-0000")
		eventually(w.t, "the first call", func() bool { return w.broker.mostDelivered() == 1 })
		time.Sleep(time.Second)
		back := first.cutOff()
		first.full.Store(true)
		second = w.boot(-1)
		eventually(w.t, "the second delivery", func() bool { return w.broker.mostDelivered() == 2 })
		time.Sleep(3 * time.Second) // between two heartbeats
		back()
		return second, release
	}
	t.Run("its failure", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			second, release := hangs(w)
			close(release)
			time.Sleep(5 * time.Minute)
			if _, given := w.broker.counts(); given != 2 {
				t.Errorf("%d deliveries, want 2", given)
			}
			second.crash()
			w.boot(-1)
			w.idle()
			w.verify()
		})
	})
	t.Run("its heartbeat", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			second, release := hangs(w)
			defer close(release)
			second.crash()
			w.boot(-1)
			within(t, 2*w.broker.ackWait, "the third delivery", func() bool { return len(w.engine.live()) == 1 })
		})
	})
}

// TestParkedTwice: a message that is delivered again while it waits for its record is acknowledged after the record was processed for it.
func TestParkedTwice(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		var calls atomic.Int64
		w.upstream.onRecord = func(ctx context.Context, _, _ string) error {
			if calls.Add(1) == 1 {
				<-ctx.Done()
			}
			return nil
		}
		p := w.boot(-1)
		delivered := func(n int) func() bool {
			return func() bool { _, given := w.broker.counts(); return given == n }
		}
		w.index("A", "A-0000")
		eventually(t, "a call", func() bool { return calls.Load() == 1 })
		w.index("A", "A-0000")
		eventually(t, "a delivery that waits", delivered(2))
		w.broker.redeliver(core.ClassRecords)
		eventually(t, "another of the same message", delivered(3))
		time.Sleep(time.Second)
		if w.broker.size() != 1 {
			t.Error("the message was acknowledged before its record was processed")
		}
		p.crash()
		w.boot(-1)
		w.idle()
		w.verify()
	})
}

// TestLastDeliveryThroughAnOutage: a last delivery that fails after an outage of the queue is republished: it has no newer
// delivery, and would become a crash loop.
func TestLastDeliveryThroughAnOutage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		release, failed := make(chan struct{}), false
		w.upstream.onRecord = func(context.Context, string, string) error {
			if failed {
				return nil
			}
			failed = true
			<-release
			return unavailable("the repository answered 500")
		}
		w.index("A", "A-0000")
		for _, e := range w.broker.entries {
			e.deliveries = maxDeliver - 1
		}
		p := w.boot(-1)
		eventually(t, "the last delivery", func() bool { return w.broker.mostDelivered() == maxDeliver })
		back := p.cutOff()
		time.Sleep(w.broker.ackWait * 5 / 6)
		back()
		close(release)
		w.idle()
		w.verify()
		if len(w.broker.dropped) > 0 {
			t.Errorf("given up: %v", w.broker.dropped)
		}
	})
}
