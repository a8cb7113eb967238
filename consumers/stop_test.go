package consumers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tutti/consumers"
	"tutti/internal/core"
)

func TestStopWithoutStart(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.make(-1)
		if err := p.c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		p.c.Start()
		if err := p.c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestStopFinishesInFlight: Stop pulls no more and waits for the work in flight.
func TestStopFinishesInFlight(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		w.upstream.latency = time.Second
		p := w.boot(-1)
		w.index("A", "A-0000")
		synctest.Wait()
		stopped := make(chan error)
		go func() { stopped <- p.stop(t, time.Minute) }()
		synctest.Wait()
		w.index("A", "A-0001")
		began := time.Now()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("took %s", took)
		}
		if len(w.engine.live()) != 1 || w.broker.size() != 1 || w.broker.available() != 1 {
			t.Errorf("index %v, queue %s", w.engine.live(), w.broker)
		}
	})
}

// TestStopRequeues: what does not end in time, and what waits for the index, is in the queue again at once.
func TestStopRequeues(t *testing.T) {
	tests := []struct {
		name  string
		start func(w *world)
		late  bool
	}{
		{"an upstream that hangs", func(w *world) {
			w.upstream.onRecord = func(ctx context.Context, _, _ string) error {
				<-ctx.Done()
				return ctx.Err()
			}
			w.upstream.onPage = func(ctx context.Context, _ pageCall) error {
				<-ctx.Done()
				return ctx.Err()
			}
		}, true},
		{"an index that hangs", func(w *world) {
			w.engine.hold = func(ctx context.Context, _ core.Batch) error {
				<-ctx.Done()
				return ctx.Err()
			}
		}, true},
		{"an index that is down", func(w *world) { w.engine.setDown(errDown) }, false},
		{"an index that is blocked", func(w *world) { w.engine.setDown(errBlocked) }, false},
		{"an upstream that is down", func(w *world) {
			w.upstream.onRecord = func(context.Context, string, string) error { return unavailable("no") }
			w.upstream.onPage = func(context.Context, pageCall) error {
				return &core.Error{Code: core.CodeOverloaded, RetryAfter: time.Hour, Message: "later"}
			}
		}, false},
		{"an index that is busy", func(w *world) {
			w.engine.hold = func(context.Context, core.Batch) error {
				return &core.Error{Code: core.CodeOverloaded, RetryAfter: time.Hour, Message: "later"}
			}
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 300)
				p := w.boot(-1)
				synctest.Wait()
				tt.start(w)
				job := w.run("A", false)
				for i := range 50 {
					w.index("A", fmt.Sprintf("A-%04d", i))
					if i%10 == 0 {
						w.index("A", "A-0000")
					}
				}
				time.Sleep(300 * time.Millisecond)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := p.c.Stop(ctx)
				if tt.late != errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("stopping gave %v", err)
				}
				took := time.Since(began)
				if limit := 100 * time.Millisecond; !tt.late && took > limit || took > time.Second+limit {
					t.Errorf("took %s", took)
				}
				time.Sleep(200 * time.Millisecond) // the longest delay of these retries
				if pending, now := w.broker.size(), w.broker.available(); now != pending || now < 50 {
					t.Errorf("%d of %d messages are available:\n%s", now, pending, w.broker)
				}
				_ = p.stop(t, 0)
				w.engine.setDown(nil)
				w.engine.hold = nil
				w.upstream.onRecord, w.upstream.onPage = nil, nil
				w.boot(-1)
				w.ended(w.job(job), core.JobSucceeded, "")
				w.verify()
			})
		})
	}
}

// lateSource returns a message when its context ends.
type lateSource struct {
	consumers.Source
	m core.Message
}

func (s lateSource) Fetch(ctx context.Context, _, _ int, _ time.Duration) ([]core.Message, error) {
	<-ctx.Done()
	time.Sleep(time.Millisecond)
	return []core.Message{s.m}, nil
}

type lateMessage struct {
	core.Message
	given chan struct{}
}

func (lateMessage) Request() core.Request {
	return core.Request{Scope: core.ScopeRecord, Organization: "A", RecordID: "A-0000"}
}
func (lateMessage) Deliveries() int   { return 1 }
func (lateMessage) InProgress() error { return nil }
func (m lateMessage) Nak(time.Duration) error {
	time.Sleep(time.Millisecond)
	close(m.given)
	return nil
}

// TestStopWaitsForALateFetch: a message that arrives during Stop is requeued before Stop returns.
func TestStopWaitsForALateFetch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := &lateMessage{given: make(chan struct{})}
		p := w.make(-1)
		repo := p.repository()
		repo.Records = lateSource{m: m}
		c, err := consumers.New([]consumers.Repository{repo}, p.deps(), w.cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.Start()
		synctest.Wait()
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-m.given:
		default:
			t.Error("Stop returned while a message was in hand")
		}
	})
}

func TestNewRefuses(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.make(-1)
		lacking := p.deps()
		lacking.Cells = nil
		noProbe := p.repository()
		noProbe.Probe = nil
		for _, tt := range []struct {
			repos []consumers.Repository
			deps  consumers.Deps
			code  core.Code
			want  string
		}{
			{nil, lacking, core.CodeInternal, "making consumers: a dependency is missing"},
			{[]consumers.Repository{noProbe}, p.deps(), core.CodeInternal, "making consumers: repository song lacks a dependency"},
			{[]consumers.Repository{p.repository(), p.repository()}, p.deps(), core.CodeInvalid, "repository song is configured twice"},
		} {
			c, err := consumers.New(tt.repos, tt.deps, consumers.Config{})
			if c != nil || core.CodeOf(err) != tt.code || core.MessageOf(err) != tt.want {
				t.Errorf("got %v", err)
			}
		}
	})
}
