package consumers_test

import (
	"context"
	"testing"
	"time"
)

// TestRecordThatEndsTheProcess: a record that crashes the process each time it is requested is delivered until the limit,
// and affects no other record: long before that all others are done, whatever their order.
func TestRecordThatEndsTheProcess(t *testing.T) {
	for _, poison := range []string{"A-0000", "A-0017", "A-0039"} {
		t.Run(poison, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.broker.ackWait = 3 * time.Second
				w.upstream.fill("A", 40)
				w.upstream.latency = 5 * time.Millisecond
				var live *process
				w.upstream.onRecord = func(_ context.Context, _, id string) error {
					if id == poison {
						live.crash()
					}
					return nil
				}
				for id := range w.upstream.model() {
					w.index("A", id)
				}
				lives := 0
				for ; lives < 20; lives++ {
					live = w.make(-1)
					live.c.Start()
					select {
					case <-live.gone:
					case <-time.After(time.Minute):
						t.Fatalf("life %d: the record did not end the process", lives)
					}
					_ = live.stop(t, 0)
					if len(w.engine.live()) == 39 && w.broker.size() == 1 {
						break
					}
				}
				if lives > 14 {
					t.Errorf("the others were done after %d lives: %d documents, %d requests left", lives, len(w.engine.live()), w.broker.size())
				}
				for _, e := range w.broker.entries {
					if r := e.request(); r.RecordID != poison || e.deliveries != lives+1 {
						t.Errorf("%s was delivered %d times in %d lives", r.RecordID, e.deliveries, lives+1)
					}
				}
			})
		})
	}
}

// TestPageThatEndsTheProcess: the same for a page: the other organizations of the job are still read. Only that page is
// left, which may have two messages: its chain was reread, and published it anew.
func TestPageThatEndsTheProcess(t *testing.T) {
	for _, poison := range []pageCall{{org: "A", offset: 0}, {org: "D", offset: 9}} {
		t.Run(poison.org, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.broker.ackWait = 3 * time.Second
				w.pageSize = 10
				for _, org := range []string{"A", "B", "C", "D", "E", "F"} {
					w.upstream.fill(org, 30)
				}
				w.upstream.latency = 5 * time.Millisecond
				var live *process
				w.upstream.onPage = func(_ context.Context, c pageCall) error {
					if c.org == poison.org && c.offset == poison.offset {
						live.crash()
					}
					return nil
				}
				w.run("", false)
				others := func() int {
					n := 0
					for _, e := range w.broker.entries {
						if r := e.request(); r.Page == nil || r.Organization != poison.org || r.Page.Offset != poison.offset {
							n++
						}
					}
					return n
				}
				lives := 0
				for ; lives < 20; lives++ {
					live = w.make(-1)
					live.c.Start()
					select {
					case <-live.gone:
					case <-time.After(time.Minute):
						t.Fatalf("life %d: the page did not end the process", lives)
					}
					_ = live.stop(t, 0)
					if len(w.engine.live()) >= 150 && others() == 0 {
						break
					}
				}
				if lives > 8 {
					t.Errorf("the others were done after %d lives: %d documents, %d requests left", lives, len(w.engine.live()), others())
				}
			})
		})
	}
}

// TestSlowCell: the first messages of a process wait while the queue does not answer which of them ended the last process. No lock that a
// goroutine cannot leave is held during that time: fake time would stand still.
func TestSlowCell(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 10)
		w.cellTakes = 3 * time.Second
		for id := range w.upstream.model() {
			w.index("A", id)
		}
		w.boot(-1)
		w.idle()
		w.verify()
	})
}
