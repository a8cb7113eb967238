package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/ingest"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// committedAt is when the changes were committed, before the relay sends them.
var committedAt = noon.Add(-time.Minute)

// outboxFake is an Outbox in memory.
type outboxFake struct {
	mu      sync.Mutex
	unsent  []datamodel.Change
	changed chan struct{}
	looks   int

	before func() error // before a look
	mark   func() error // before what was published is marked as sent
}

func newOutboxFake() *outboxFake { return &outboxFake{changed: make(chan struct{}, 1)} }

// commit adds changes, each "<id> <study>/<analysis>", and sends a notification when tell is true.
func (o *outboxFake) commit(tell bool, changes ...string) {
	o.mu.Lock()
	for _, text := range changes {
		id, record, _ := strings.Cut(text, " ")
		study, analysis, _ := strings.Cut(record, "/")
		o.unsent = append(o.unsent, datamodel.Change{ID: id, Study: study, AnalysisID: analysis, At: committedAt})
	}
	o.mu.Unlock()
	if tell {
		select {
		case o.changed <- struct{}{}:
		default:
		}
	}
}

func (o *outboxFake) Relay(
	ctx context.Context, limit int, publish func(context.Context, []datamodel.Change) []error,
) (int, error) {
	if o.before != nil {
		if err := o.before(); err != nil {
			return 0, err
		}
	}
	o.mu.Lock()
	o.looks++
	given := slices.Clone(o.unsent[:min(limit, len(o.unsent))])
	o.mu.Unlock()
	if len(given) == 0 {
		return 0, nil
	}
	errs := publish(ctx, given)
	if o.mark != nil {
		if err := o.mark(); err != nil {
			return len(given), err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, c := range given {
		if errs == nil || errs[i] == nil {
			o.unsent = slices.DeleteFunc(o.unsent, func(other datamodel.Change) bool { return other == c })
		}
	}
	return len(given), nil
}

func (o *outboxFake) Changed() <-chan struct{} { return o.changed }

// left returns the ids of the changes that are not sent.
func (o *outboxFake) left() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var ids []string
	for _, c := range o.unsent {
		ids = append(ids, c.ID)
	}
	return ids
}

func (o *outboxFake) lookedAt() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.looks
}

// relay starts a Relay of the repository local; the function stops it.
func relay(t *testing.T, w *world, o ingest.Outbox, cfg ingest.RelayConfig) (r *ingest.Relay, stop func()) {
	t.Helper()
	r, err := ingest.NewRelay(w.service, o, "local", cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Start()
	return r, func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func wantLeft(t *testing.T, o *outboxFake, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, o.left()); diff != "" {
		t.Errorf("left in the outbox (-want +got):\n%s", diff)
	}
}

func TestRelayMakesARequestOfAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := newWorld(t, nil), newOutboxFake()
		o.commit(false, "c1 S/A")
		_, stop := relay(t, w, o, ingest.RelayConfig{})
		defer stop()
		wantLeft(t, o)
		want := []core.Request{{
			ID: "c1", Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: "local", Organization: "S", RecordID: "A",
			Cause: core.CauseOutbox, ReceivedAt: committedAt.UTC(),
		}}
		if diff := cmp.Diff(want, w.requests()); diff != "" {
			t.Error(diff)
		}
		if at, err := w.service.LastNotification(t.Context(), "local"); err != nil || !at.Equal(noon) {
			t.Errorf("the last notification was at %v, %v", at, err)
		}
	})
}

func TestRelaySendsAtOnceWhatIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := newWorld(t, nil), newOutboxFake()
		_, stop := relay(t, w, o, ingest.RelayConfig{})
		defer stop()
		synctest.Wait()
		for i := range 5 {
			before := time.Now()
			o.commit(true, fmt.Sprintf("c%d S/A", i))
			wantLeft(t, o)
			if took := time.Since(before); took != 0 {
				t.Errorf("change %d waited for %v", i, took)
			}
		}
		if n := len(w.requests()); n != 5 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestRelayEmptiesTheOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := newWorld(t, nil), newOutboxFake()
		for i := range 1000 {
			o.commit(false, fmt.Sprintf("c%d S/A%d", i, i))
		}
		var mu sync.Mutex
		atOnce, most := 0, 0
		w.publish = func(core.Request) error {
			mu.Lock()
			atOnce++
			most = max(most, atOnce)
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			atOnce--
			mu.Unlock()
			return nil
		}
		begin := time.Now()
		_, stop := relay(t, w, o, ingest.RelayConfig{Limit: 64, Concurrency: 16})
		defer stop()
		time.Sleep(100 * time.Millisecond) // of the bubble's clock: 1,000 changes at 16 a millisecond are 63 ms
		wantLeft(t, o)
		if n := len(w.requests()); n != 1000 || most != 16 {
			t.Errorf("%d requests, %d at once, after %v", n, most, time.Since(begin))
		}
	})
}

func TestRelayFindsWhatAnotherProcessLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := newWorld(t, nil), newOutboxFake()
		_, stop := relay(t, w, o, ingest.RelayConfig{})
		defer stop()
		synctest.Wait()
		o.commit(false, "c1 S/A")
		wantLeft(t, o, "c1")
		time.Sleep(1250 * time.Millisecond)
		wantLeft(t, o)
		looks := o.lookedAt()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := o.lookedAt() - looks; n < 45 || n > 81 {
			t.Errorf("%d looks in a minute in which nothing happened, want about one a second", n)
		}
	})
}

func TestRelayTriesAgain(t *testing.T) {
	down := core.NewError(core.CodeUnavailable, "the queue does not answer")
	t.Run("a queue that does not answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			w, o := newWorld(t, nil), newOutboxFake()
			var tries atomic.Int64
			var up atomic.Bool
			w.publish = func(core.Request) error {
				if up.Load() {
					return nil
				}
				tries.Add(1)
				return down
			}
			for i := range 100 {
				o.commit(false, fmt.Sprintf("c%d S/A%d", i, i))
			}
			r, stop := relay(t, w, o, ingest.RelayConfig{Concurrency: 4, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			defer stop()
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := len(o.left()); n != 100 || len(w.letters.all()) != 0 {
				t.Errorf("%d changes left, letters %v", n, w.letters.all())
			}
			n := int(tries.Load())
			if looks := o.lookedAt(); looks < 12 || looks > 40 || n > 4*looks {
				t.Errorf("%d tries in %d looks in a minute, want pauses that grow to 5 s and few tries in a look", n, looks)
			}
			up.Store(true)
			wantError(t, r.Health(), core.CodeUnavailable, "changes are waiting to be sent: the queue does not answer")
			time.Sleep(5 * time.Second)
			wantLeft(t, o)
			if err := r.Health(); err != nil {
				t.Errorf("health after the outage: %v", err)
			}
			synctest.Wait()
			if got := strings.Count(log.String(), "level=WARN"); got != 1 || strings.Count(log.String(), "level=INFO") != 1 {
				t.Errorf("an outage is logged when it begins and when it ends, got:\n%s", log.String())
			}
		})
	})
	t.Run("a store that does not answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			w, o := newWorld(t, nil), newOutboxFake()
			o.commit(false, "c1 S/A")
			reasons := []string{"the store was restarted", "its certificate has expired", "the store was restarted", "its certificate has expired"}
			began := time.Now()
			o.before = func() error {
				if i := int(time.Since(began) / (5 * time.Second)); i < len(reasons) {
					return core.NewError(core.CodeUnavailable, reasons[i])
				}
				return nil
			}
			r, stop := relay(t, w, o, ingest.RelayConfig{Logger: slog.New(slog.NewTextHandler(&log, nil)), RetryMax: time.Second})
			defer stop()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			for _, reason := range reasons {
				wantError(t, r.Health(), core.CodeUnavailable, reason)
				time.Sleep(5 * time.Second)
				synctest.Wait()
			}
			wantLeft(t, o)
			if got := log.String(); strings.Count(got, "level=WARN") != 2 || strings.Count(got, "level=INFO") != 1 ||
				strings.Count(got, reasons[0]) != 1 || strings.Count(got, reasons[1]) != 1 {
				t.Errorf("each reason of an outage is logged once, and its end, got:\n%s", got)
			}
		})
	})
	t.Run("a store that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, o := newWorld(t, nil), newOutboxFake()
			var hangs atomic.Bool
			o.before = func() error {
				if hangs.Load() {
					time.Sleep(time.Minute)
				}
				return nil
			}
			r, stop := relay(t, w, o, ingest.RelayConfig{})
			defer stop()
			time.Sleep(time.Minute)
			if err := r.Health(); err != nil {
				t.Errorf("health of a relay with nothing to do: %v", err)
			}
			hangs.Store(true)
			time.Sleep(20 * time.Second)
			wantError(t, r.Health(), core.CodeUnavailable, "the outbox has not been read recently: the store or the queue does not answer")
			hangs.Store(false)
			time.Sleep(time.Minute)
			if err := r.Health(); err != nil {
				t.Errorf("health once the store answers: %v", err)
			}
		})
	})
	t.Run("what was published and could not be marked goes out under the same id", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, o := newWorld(t, nil), newOutboxFake()
			o.commit(false, "c1 S/A")
			n := 0
			o.mark = func() error {
				if n++; n < 3 {
					return down
				}
				return nil
			}
			_, stop := relay(t, w, o, ingest.RelayConfig{})
			defer stop()
			time.Sleep(time.Second)
			wantLeft(t, o)
			var ids []string
			for _, r := range w.requests() {
				ids = append(ids, r.ID)
			}
			if diff := cmp.Diff([]string{"c1", "c1", "c1"}, ids); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("a change that fails for itself holds up no other", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, o := newWorld(t, nil), newOutboxFake()
			w.publish = func(r core.Request) error {
				if r.RecordID == "bad" {
					return core.NewError(core.CodeInternal, "the queue refused")
				}
				return nil
			}
			o.commit(false, "c0 S/bad", "c1 S/A", "c2 S/B", "c3 S/C")
			_, stop := relay(t, w, o, ingest.RelayConfig{Limit: 2})
			defer stop()
			time.Sleep(time.Second)
			wantLeft(t, o, "c0")
		})
	})
}

func TestRelayKeepsWhatCanNeverBePublished(t *testing.T) {
	for name, tt := range map[string]struct {
		err  *core.Error
		hint string
	}{
		"an id that is too long": {nil, "id has 513 bytes, the limit is 512; fix the record's id in its repository"},
		"too large for the queue": {
			core.NewError(core.CodeTooLarge, "the message is too large"), "the message is too large; fix the record's id in its repository",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg := prometheus.NewRegistry()
				w, o := newWorld(t, func(c *ingest.Config) { c.Metrics = ingest.NewMetrics(reg) }), newOutboxFake()
				id := strings.Repeat("x", 513)
				w.publish = func(r core.Request) error {
					if r.RecordID != id {
						return nil
					}
					if tt.err != nil {
						return tt.err
					}
					return r.Validate()
				}
				var lettersUp atomic.Bool
				w.letters.put = func(core.DeadLetter) error {
					if lettersUp.Load() {
						return nil
					}
					return core.NewError(core.CodeUnavailable, "the queue does not answer")
				}
				o.commit(false, "c1 S/"+id, "c2 S/A")
				_, stop := relay(t, w, o, ingest.RelayConfig{Concurrency: 1, RetryMin: time.Second})
				defer stop()
				wantLeft(t, o, "c1", "c2")
				lettersUp.Store(true)
				time.Sleep(2 * time.Second)
				wantLeft(t, o)
				letters := w.letters.all()
				if len(letters) != 1 {
					t.Fatalf("letters %+v", letters)
				}
				want := core.DeadLetter{
					ID: letters[0].ID, Repository: "local", Organization: "S", RecordID: id, Reason: core.ReasonInvalidID,
					Hint: tt.hint, Attempts: 1, Request: &core.Request{
						ID: "c1", Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: "local", Organization: "S",
						RecordID: id, Cause: core.CauseOutbox, ReceivedAt: committedAt.UTC(),
					},
				}
				if diff := cmp.Diff(want, letters[0]); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{"index local/S/A"}, w.asked()); diff != "" {
					t.Error(diff)
				}
				wantMetrics := `
# HELP tutti_outbox_events_total Attempts to publish an event of the built-in repository's outbox, by result; failed ones are retried.
# TYPE tutti_outbox_events_total counter
tutti_outbox_events_total{result="dead_letter"} 1
tutti_outbox_events_total{result="failed"} 1
tutti_outbox_events_total{result="published"} 1
# HELP tutti_requests_received_total Triggers that passed validation, by source and kind.
# TYPE tutti_requests_received_total counter
tutti_requests_received_total{kind="index",source="outbox"} 1
`
				if err := testutil.GatherAndCompare(reg, strings.NewReader(wantMetrics)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestRelayStops(t *testing.T) {
	t.Run("after what is in hand", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, o := newWorld(t, nil), newOutboxFake()
			w.publish = func(core.Request) error {
				time.Sleep(time.Second)
				return nil
			}
			o.commit(false, "c1 S/A", "c2 S/B")
			r, stop := relay(t, w, o, ingest.RelayConfig{Limit: 1})
			synctest.Wait()
			stop()
			wantLeft(t, o, "c2")
			stop() // again
			if err := r.Health(); err != nil {
				t.Error(err)
			}
			_, stop = relay(t, w, o, ingest.RelayConfig{})
			time.Sleep(2 * time.Second)
			stop()
			wantLeft(t, o)
		})
	})
	t.Run("not beyond its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, o := newWorld(t, nil), newOutboxFake()
			o.commit(false, "c1 S/A")
			var log bytes.Buffer
			r, err := ingest.NewRelay(w.service, hanging{o}, "local", ingest.RelayConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			r.Start()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			before := time.Now()
			err = r.Stop(ctx)
			wantError(t, err, core.CodeUnavailable, "stopping the outbox relay")
			if took := time.Since(before); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("took %v: %v", took, err)
			}
			synctest.Wait() // and the bubble ends only when the Relay's goroutine has
			if log.Len() > 0 {
				t.Errorf("a stop is no outage: %s", log.String())
			}
		})
	})
	t.Run("while it waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, o := newWorld(t, nil), newOutboxFake()
			_, stop := relay(t, w, o, ingest.RelayConfig{Poll: time.Hour})
			synctest.Wait()
			before := time.Now()
			stop()
			if took := time.Since(before); took != 0 {
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("before it was started", func(t *testing.T) {
		r, err := ingest.NewRelay(newWorld(t, nil).service, newOutboxFake(), "local", ingest.RelayConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// hanging is an Outbox that answers only when it is given up.
type hanging struct{ *outboxFake }

func (hanging) Relay(ctx context.Context, _ int, _ func(context.Context, []datamodel.Change) []error) (int, error) {
	<-ctx.Done()
	return 0, core.WrapError(core.CodeUnavailable, "the store did not answer in time", ctx.Err())
}

func TestNewRelayRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		repository string
		cfg        ingest.RelayConfig
		letters    bool
		code       core.Code
		text       string
	}{
		"another repository": {"other", ingest.RelayConfig{}, true, core.CodeNotFound, `repository "other" is not configured`},
		"a negative limit":   {"local", ingest.RelayConfig{Limit: -1}, true, core.CodeInvalid, "must not be negative"},
		"a negative pause":   {"local", ingest.RelayConfig{RetryMax: -1}, true, core.CodeInvalid, "must not be negative"},
		"without letters":    {"local", ingest.RelayConfig{}, false, core.CodeUnsupported, "dead letters are not stored here"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *ingest.Config) {
				if !tt.letters {
					c.DeadLetters = nil
				}
			})
			_, err := ingest.NewRelay(w.service, newOutboxFake(), tt.repository, tt.cfg)
			wantError(t, err, tt.code, tt.text)
		})
	}
}
