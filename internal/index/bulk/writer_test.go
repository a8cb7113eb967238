package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// documents returns n small documents.
func documents(n int) []core.Write {
	all := make([]core.Write, 0, n)
	for i := range n {
		all = append(all, document(fmt.Sprintf("d%d", i), strings.Repeat("x", 20)))
	}
	return all
}

// slow is an index whose requests take the given time.
func slow(f *fake, took time.Duration) *fake {
	f.on = func(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
		time.Sleep(took)
		return f.apply(b), nil
	}
	return f
}

func TestWhenBatchesAreSent(t *testing.T) {
	t.Parallel()
	// run uses a Writer on an index whose requests take 100 ms, in virtual time.
	type step func(t *testing.T, w *bulk.Writer, f *fake)
	tests := []struct {
		name string
		cfg  bulk.Config
		run  step
		// want are the sizes of the batches, at the times since the start.
		want []int
		at   []time.Duration
	}{
		{
			name: "idle: one record at once",
			run:  func(t *testing.T, w *bulk.Writer, _ *fake) { write(t, w, documents(1)...) },
			want: []int{1}, at: []time.Duration{0},
		},
		{
			name: "a page goes as one batch when it is sealed",
			run: func(t *testing.T, w *bulk.Writer, _ *fake) {
				ticket := w.Ticket()
				for _, wr := range documents(500) {
					time.Sleep(100 * time.Microsecond)
					if err := w.Add(t.Context(), ticket, "a", wr); err != nil {
						t.Fatal(err)
					}
				}
				ticket.Seal()
				wait(t, ticket)
			},
			want: []int{500}, at: []time.Duration{50 * time.Millisecond},
		},
		{
			name: "by count",
			cfg:  bulk.Config{BatchCount: 10},
			run:  func(t *testing.T, w *bulk.Writer, _ *fake) { wait(t, sealed(add(t, w, documents(15)...))) },
			want: []int{10, 5}, at: []time.Duration{0, 20 * time.Millisecond},
		},
		{
			name: "by bytes, and never over them",
			cfg:  bulk.Config{BatchBytes: 1000},
			run: func(t *testing.T, w *bulk.Writer, f *fake) {
				wait(t, sealed(add(t, w, document("a", strings.Repeat("x", 500)), document("b", strings.Repeat("x", 500)),
					document("c", strings.Repeat("x", 5000)))))
				for _, c := range f.log()[:2] {
					if c.bytes > 1000 {
						t.Errorf("a batch of %d bytes", c.bytes)
					}
				}
			},
			want: []int{1, 1, 1}, at: []time.Duration{0, 0, 100 * time.Millisecond},
		},
		{
			name: "by age while nobody waits",
			run: func(t *testing.T, w *bulk.Writer, _ *fake) {
				ticket := add(t, w, documents(3)...)
				time.Sleep(time.Second)
				wait(t, sealed(ticket))
			},
			want: []int{3}, at: []time.Duration{bulk.DefaultMaxFill},
		},
		{
			name: "sealed while another flies: after MaxAge",
			run: func(t *testing.T, w *bulk.Writer, _ *fake) {
				first := sealed(add(t, w, documents(1)...))
				time.Sleep(10 * time.Millisecond)
				second := sealed(add(t, w, documents(2)...))
				wait(t, first)
				wait(t, second)
			},
			want: []int{1, 2}, at: []time.Duration{0, 10*time.Millisecond + bulk.DefaultMaxAge},
		},
		{
			name: "sealed while another flies: when that ends, with what others added",
			cfg:  bulk.Config{MaxAge: time.Second, MaxFill: time.Second},
			run: func(t *testing.T, w *bulk.Writer, _ *fake) {
				first := sealed(add(t, w, documents(1)...))
				second, third := sealed(add(t, w, documents(2)...)), add(t, w, documents(3)...)
				wait(t, first)
				wait(t, second)
				third.Seal()
				wait(t, third)
			},
			want: []int{1, 5}, at: []time.Duration{0, 100 * time.Millisecond},
		},
		{
			name: "a flight of one index does not hold up another",
			run: func(t *testing.T, w *bulk.Writer, _ *fake) {
				first := sealed(add(t, w, documents(1)...))
				synctest.Wait()
				second := w.Ticket()
				for _, wr := range documents(2) {
					if err := w.Add(t.Context(), second, "b", wr); err != nil {
						t.Fatal(err)
					}
				}
				second.Seal()
				wait(t, first)
				wait(t, second)
			},
			want: []int{1, 2}, at: []time.Duration{0, 0},
		},
		{
			name: "one ticket in two indexes",
			run: func(t *testing.T, w *bulk.Writer, _ *fake) {
				ticket := w.Ticket()
				for i, wr := range documents(6) {
					if err := w.Add(t.Context(), ticket, []string{"a", "b"}[i%2], wr); err != nil {
						t.Fatal(err)
					}
				}
				ticket.Seal()
				if got := len(wait(t, ticket)); got != 6 {
					t.Errorf("%d results", got)
				}
			},
			want: []int{3, 3}, at: []time.Duration{0, 0},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := slow(&fake{}, 100*time.Millisecond)
				w := open(t, f, tt.cfg)
				start := time.Now()
				tt.run(t, w, f)
				var at []time.Duration
				for _, c := range f.log() {
					at = append(at, c.at.Sub(start))
				}
				if diff := cmp.Diff(tt.want, f.sizes()); diff != "" {
					t.Errorf("sizes of batches (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.at, at); diff != "" {
					t.Errorf("times of batches (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func sealed(ticket *bulk.Ticket) *bulk.Ticket {
	ticket.Seal()
	return ticket
}

func TestResultsInOrder(t *testing.T) {
	t.Parallel()
	f := &fake{}
	w := open(t, f, bulk.Config{BatchCount: 3})
	writes := documents(10)
	writes[4] = removal("gone")
	writes = append(writes, core.Write{ID: "d0", Version: 0, Document: []byte("{}"), FetchedAt: time.Now()})
	first := write(t, w, writes[:10]...)
	want := repeated(indexed, 10)
	want[4] = core.Result{Outcome: core.OutcomeRemoved}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	stale := []core.Result{{Outcome: core.OutcomeStale, CurrentVersion: 1}}
	if diff := cmp.Diff(stale, write(t, w, writes[10])); diff != "" {
		t.Error(diff)
	}
}

func TestTicket(t *testing.T) {
	t.Parallel()
	t.Run("without Writes", func(t *testing.T) {
		t.Parallel()
		w := open(t, &fake{}, bulk.Config{})
		ticket := w.Ticket()
		ticket.Seal()
		ticket.Seal()
		if got := wait(t, ticket); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("sealed", func(t *testing.T) {
		t.Parallel()
		w := open(t, &fake{}, bulk.Config{MaxDocumentBytes: 100})
		ticket := sealed(add(t, w, documents(1)...))
		for _, wr := range []core.Write{document("x", ""), document("x", strings.Repeat("x", 200))} {
			if err := w.Add(t.Context(), ticket, "a", wr); !errors.Is(err, bulk.ErrSealed) {
				t.Errorf("got %v", err)
			}
		}
		if got := wait(t, ticket); len(got) != 1 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("Wait ends with its context, the Writes do not", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := open(t, slow(&fake{}, time.Minute), bulk.Config{})
			ticket := sealed(add(t, w, documents(1)...))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := ticket.Wait(ctx)
			if core.CodeOf(err) != core.CodeUnavailable || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(repeated(indexed, 1), wait(t, ticket)); diff != "" {
				t.Error(diff)
			}
		})
	})
}

func TestBackpressure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := slow(&fake{}, time.Second)
		w := open(t, f, bulk.Config{BatchCount: 10, MaxInFlight: 3})
		start := time.Now()
		// 2 batches are in flight at the start, a third is full; the next Write must wait for the first to end.
		ticket := add(t, w, documents(30)...)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("waited %s with room", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err := w.Add(ctx, ticket, "a", document("late", ""))
		if core.CodeOf(err) != core.CodeUnavailable || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := w.Add(t.Context(), ticket, "a", document("later", "")); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %s for room", waited)
		}
		if got := len(wait(t, sealed(ticket))); got != 31 {
			t.Errorf("%d results", got)
		}
		if _, ok := f.stored("late"); ok {
			t.Error("a Write that was rejected was written")
		}
	})
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		var busy atomic.Bool
		f.on = func(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
			time.Sleep(100 * time.Millisecond)
			if busy.Load() {
				return nil, core.NewError(core.CodeOverloaded, "busy")
			}
			return f.apply(b), nil
		}
		w := open(t, f, bulk.Config{BatchCount: 1, MaxInFlight: 8})
		peak := func(what string, want int) {
			t.Helper()
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.atOnce != want {
				t.Errorf("%d requests at once %s, want %d", f.atOnce, what, want)
			}
			f.atOnce = 0
		}
		wait(t, sealed(add(t, w, documents(2)...)))
		peak("at the start", 2)
		wait(t, sealed(add(t, w, documents(60)...)))
		peak("after success", 8)

		busy.Store(true)
		ticket := sealed(add(t, w, documents(8)...))
		time.Sleep(110 * time.Millisecond)
		busy.Store(false)
		peak("when all were too much", 8)
		wait(t, ticket)
		peak("after eight refusals at the same time", 4)

		wait(t, sealed(add(t, w, documents(40)...)))
		busy.Store(true)
		ticket = sealed(add(t, w, documents(4)...))
		time.Sleep(time.Second)
		synctest.Wait()
		peak("until then", 8)
		time.Sleep(2 * time.Second)
		busy.Store(false)
		peak("while overloaded", 1)
		if diff := cmp.Diff(repeated(indexed, 4), wait(t, ticket)); diff != "" {
			t.Error(diff)
		}
		wait(t, sealed(add(t, w, documents(40)...)))
		peak("after recovery", 8)
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	t.Run("sends what is left", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := slow(&fake{}, time.Second)
			w := open(t, f, bulk.Config{BatchCount: 2})
			// The seventh document waits for space when Close starts; its ticket is not sealed before.
			ticket := add(t, w, documents(6)...)
			refused := make(chan error)
			go func() { refused <- w.Add(t.Context(), ticket, "a", document("late", "")) }()
			synctest.Wait()
			second := make(chan error)
			go func() { second <- w.Close(t.Context()) }()
			if err := w.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-second; err != nil {
				t.Error(err)
			}
			if err := <-refused; !errors.Is(err, bulk.ErrClosed) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(repeated(indexed, 6), wait(t, sealed(ticket))); diff != "" {
				t.Error(diff)
			}
			if err := w.Add(t.Context(), w.Ticket(), "a", document("x", "")); !errors.Is(err, bulk.ErrClosed) {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("cancels what hangs", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fake{on: func(ctx context.Context, _ int, _ core.Batch) ([]core.Result, error) {
				<-ctx.Done()
				return nil, core.WrapError(core.CodeUnavailable, "writing", ctx.Err())
			}}
			w, err := bulk.New(f, bulk.Config{BatchCount: 2})
			if err != nil {
				t.Fatal(err)
			}
			ticket := sealed(add(t, w, documents(6)...))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := w.Close(ctx); core.CodeOf(err) != core.CodeUnavailable {
				t.Errorf("got %v", err)
			}
			for i, r := range wait(t, ticket) {
				if r.Outcome != core.OutcomeRetry || r.Code != core.CodeUnavailable {
					t.Errorf("%d: %+v", i, r)
				}
			}
			if got := len(f.log()); got != 2 {
				t.Errorf("%d requests", got)
			}
		})
	})
	t.Run("does not wait for a busy index", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := &fake{on: func(context.Context, int, core.Batch) ([]core.Result, error) {
				return nil, &core.Error{Code: core.CodeOverloaded, Message: "busy", RetryAfter: time.Minute}
			}}
			w, err := bulk.New(f, bulk.Config{BatchCount: 1})
			if err != nil {
				t.Fatal(err)
			}
			ticket := sealed(add(t, w, documents(3)...))
			synctest.Wait()
			start := time.Now()
			if err := w.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("took %s", took)
			}
			for i, r := range wait(t, ticket) {
				if r.Outcome != core.OutcomeRetry || r.Code != core.CodeOverloaded {
					t.Errorf("%d: %+v", i, r)
				}
			}
		})
	})
}

func TestBuffersAreReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, &fake{}, bulk.Config{BatchBytes: 100 << 10})
		write(t, w, document("huge", strings.Repeat("x", 1<<20)))
		synctest.Wait()
		if n, size := w.Pooled(); n != 0 {
			t.Errorf("a huge buffer was kept: %d buffers, %d bytes", n, size)
		}
		for range 10 {
			write(t, w, documents(100)...)
		}
		synctest.Wait()
		if n, size := w.Pooled(); n == 0 || n > bulk.DefaultMaxInFlight+1 || size > n*200<<10 {
			t.Errorf("%d buffers, %d bytes", n, size)
		}
		if n := w.Indexes(); n != 0 {
			t.Errorf("%d indexes remembered", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, _ := w.Pooled(); n != 0 {
			t.Errorf("%d buffers kept by an idle Writer", n)
		}
	})
}

// TestSmallBatches: while batches are to be small, none is much larger than SmallBatchBytes.
func TestSmallBatches(t *testing.T) {
	t.Parallel()
	for _, small := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var largest atomic.Int64
			e := &fake{}
			e.on = func(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
				largest.Store(max(largest.Load(), int64(len(b.Payload()))))
				return e.apply(b), nil
			}
			w := open(t, e, bulk.Config{Small: func() bool { return small }})
			var all []core.Write
			for i := range 100 {
				all = append(all, document(fmt.Sprint(i), strings.Repeat("x", 10<<10)))
			}
			write(t, w, all...)
			if most := int64(bulk.SmallBatchBytes + 11<<10); largest.Load() <= most != small {
				t.Errorf("small %v: the largest batch has %d bytes", small, largest.Load())
			}
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	tests := []struct {
		cfg  bulk.Config
		want string
	}{
		{bulk.Config{BatchBytes: -1}, "bulk writer: the limit of batch bytes must not be negative"},
		{bulk.Config{BatchCount: -1}, "bulk writer: the limit of batch count must not be negative"},
		{bulk.Config{MaxInFlight: -1}, "bulk writer: the limit of requests in flight must not be negative"},
		{bulk.Config{MaxDocumentBytes: -1}, "bulk writer: the limit of document bytes must not be negative"},
		{bulk.Config{MaxAge: -1}, "bulk writer: the maximum age of a batch must not be negative"},
		{bulk.Config{MaxFill: -1}, "bulk writer: the maximum age of a filling batch must not be negative"},
		{bulk.Config{MaxBodyAge: -1}, "bulk writer: the maximum age of a body must not be negative"},
	}
	for _, tt := range tests {
		_, err := bulk.New(&fake{}, tt.cfg)
		if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		f := &fake{}
		f.on = func(_ context.Context, n int, b core.Batch) ([]core.Result, error) {
			switch n {
			case 0:
				return nil, errors.New("some text")
			case 1:
				return nil, core.NewError(core.CodeOverloaded, "busy")
			default:
				return f.apply(b), nil
			}
		}
		w := open(t, f, bulk.Config{Metrics: bulk.NewMetrics(reg)})
		write(t, w, documents(1)...)
		write(t, w, documents(1)...)
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				name := family.GetName()
				for _, l := range m.GetLabel() {
					name += " " + l.GetName() + "=" + l.GetValue()
				}
				got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		want := map[string]float64{
			"tutti_bulk_requests_total status=ok":          1,
			"tutti_bulk_requests_total status=overloaded":  1,
			"tutti_bulk_requests_total status=unavailable": 1,
			"tutti_bulk_request_duration_seconds":          3,
			"tutti_bulk_request_bytes":                     3,
			"tutti_bulk_in_flight":                         0,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
