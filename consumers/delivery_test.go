package consumers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestRepublishRefused: while the queue takes nothing, like a full one of several servers, failed Requests stay in flight
// and are retried: they are not delivered until the queue drops them, and block no other messages.
func TestRepublishRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 30)
		w.cfg.RecordsInFlight = 4
		var healthy atomic.Bool
		w.upstream.onRecord = func(_ context.Context, _, id string) error {
			if id < "A-0010" && !healthy.Load() {
				return unavailable("the repository answered 500")
			}
			return nil
		}
		var refused atomic.Int64
		w.onRepublish = func() error {
			refused.Add(1)
			return core.NewError(core.CodeOverloaded, "the queue is full")
		}
		p := w.boot(-1)
		for _, id := range idsOf("A", 30) {
			w.index("A", id)
		}
		time.Sleep(10 * time.Minute)
		if n := len(w.engine.live()); n != 20 {
			t.Errorf("%d documents, want those 20 that do not fail", n)
		}
		if n := refused.Load(); n < 10*100 {
			t.Errorf("%d tries to publish again", n)
		}
		if w.broker.size() != 10 || w.broker.mostDelivered() != maxDeliver/2 {
			t.Errorf("%d messages, delivered %d times", w.broker.size(), w.broker.mostDelivered())
		}
		healthy.Store(true)
		w.idle() // the queue is full all the same
		w.verify()
		eventually(t, "nothing in flight", func() bool { return p.c.InFlight() == 0 })
		if len(w.broker.dropped) > 0 {
			t.Errorf("given up: %v", w.broker.dropped)
		}
	})
}

// TestRepublishRefusedAtStop: a message that stayed in flight is released when its process stops.
func TestRepublishRefusedAtStop(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		w.upstream.onRecord = func(context.Context, string, string) error { return unavailable("the repository answered 500") }
		w.onRepublish = func() error { return core.NewError(core.CodeOverloaded, "the queue is full") }
		p := w.boot(-1)
		w.index("A", "A-0000")
		eventually(t, "its tenth delivery", func() bool { return w.broker.mostDelivered() == maxDeliver/2 })
		time.Sleep(time.Minute)
		if n := w.broker.available(); n != 0 {
			t.Errorf("%d messages are not in flight", n)
		}
		if err := p.stop(t, time.Minute); err != nil {
			t.Fatal(err)
		}
		if n := w.broker.available(); n != 1 {
			t.Errorf("%d messages were released, want 1", n)
		}
	})
}

// TestRepublishRefusedToMany: the number of messages that stay in flight is bounded; the others are redelivered.
func TestRepublishRefusedToMany(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 40)
		w.cfg.RecordsInFlight, w.cfg.RetryMax = 4, time.Hour
		var healthy atomic.Bool
		w.upstream.onRecord = func(context.Context, string, string) error {
			if healthy.Load() {
				return nil
			}
			return unavailable("the repository answered 500")
		}
		w.onRepublish = func() error { return core.NewError(core.CodeOverloaded, "the queue is full") }
		p := w.boot(-1)
		for _, id := range idsOf("A", 40) {
			w.index("A", id)
		}
		eventually(t, "deliveries after half of them", func() bool { return w.broker.mostDelivered() == maxDeliver/2+3 })
		if n := p.c.InFlight(); n < 16 || n > 16+2*4 {
			t.Errorf("%d messages and records are remembered", n)
		}
		healthy.Store(true)
		within(t, 10*time.Hour, "the end of all", func() bool { return w.broker.size() == 0 })
		w.verify()
		if len(w.broker.dropped) > 0 {
			t.Errorf("given up: %v", w.broker.dropped)
		}
	})
}

// mostDelivered returns the highest number of deliveries of a message.
func (b *broker) mostDelivered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := 0
	for _, e := range b.entries {
		most = max(most, e.deliveries)
	}
	return most
}
