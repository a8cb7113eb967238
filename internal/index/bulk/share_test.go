package bulk_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// perIndex sums up how long the requests of each index were in flight.
type perIndex struct {
	mu    sync.Mutex
	spent map[string]time.Duration
	since time.Time
}

func (p *perIndex) add(index string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent[index] += took
}

// mean returns the average number of requests of index in flight since the last call.
func (p *perIndex) mean(index string) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	mean := float64(p.spent[index]) / float64(time.Since(p.since))
	p.spent, p.since = map[string]time.Duration{}, time.Now()
	return mean
}

// flood adds documents of index as fast as w accepts them, until stop, which waits for their results.
func flood(t *testing.T, w *bulk.Writer, index string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ticket, added := w.Ticket(), make(chan int)
	go func() {
		n := 0
		for w.Add(ctx, ticket, index, document("x", strings.Repeat("x", 4000))) == nil {
			n++
		}
		added <- n
	}()
	return func() {
		cancel()
		n := <-added
		if got := len(wait(t, sealed(ticket))); got != n {
			t.Errorf("%d results of %d documents of %s", got, n, index)
		}
	}
}

// writeTo writes documents to index and returns the duration.
func writeTo(t *testing.T, w *bulk.Writer, index string, want core.Result, writes ...core.Write) time.Duration {
	t.Helper()
	start, ticket := time.Now(), w.Ticket()
	for _, wr := range writes {
		if err := w.Add(t.Context(), ticket, index, wr); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(repeated(want, len(writes)), wait(t, sealed(ticket))); diff != "" {
		t.Error(diff)
	}
	return time.Since(start)
}

// TestHangingIndexDoesNotDelayOthers checks an index whose primary shard is unassigned: its requests use all slots that it may use,
// and fail in the end. Documents of another index take as long as without it.
func TestHangingIndexDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	for _, failure := range []core.Result{busy, retry(core.CodeUnavailable, "")} {
		t.Run(string(failure.Code), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, hanging := &fake{}, atomic.Bool{}
				f.on = func(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
					time.Sleep(time.Millisecond)
					if b.Index == "a" && hanging.Load() {
						time.Sleep(3 * time.Second)
						return repeated(failure, len(b.Items)), nil
					}
					return f.apply(b), nil
				}
				w := open(t, f, bulk.Config{BatchBytes: 10 << 10})
				stop := flood(t, w, "a")
				time.Sleep(time.Second)
				hanging.Store(true)
				for i := range 200 {
					time.Sleep(100 * time.Millisecond)
					if took := writeTo(t, w, "b", indexed, document(fmt.Sprintf("d%d", i), "")); took != time.Millisecond {
						t.Errorf("document %d of the other index took %s", i, took)
					}
				}
				stop()
			})
		})
	}
}

// TestSlotsAreShared checks that one index uses all slots; that two use equally many although the requests of one take ten times as
// long; and that an overloaded one slows only itself.
func TestSlotsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, flying, overload := &fake{}, &perIndex{spent: map[string]time.Duration{}}, atomic.Bool{}
		f.on = func(_ context.Context, n int, b core.Batch) ([]core.Result, error) {
			took := time.Duration(50+5*(n%7)) * time.Millisecond
			if b.Index == "a" {
				took *= 10
			}
			time.Sleep(took)
			flying.add(b.Index, took)
			if b.Index == "a" && overload.Load() {
				return nil, core.NewError(core.CodeOverloaded, "429")
			}
			return f.apply(b), nil
		}
		w := open(t, f, bulk.Config{BatchBytes: 10 << 10, MaxInFlight: 6})
		expect := func(what, index string, least, most float64) {
			t.Helper()
			time.Sleep(15 * time.Second)
			flying.mean(index)
			time.Sleep(10 * time.Second)
			if got := flying.mean(index); got < least || got > most {
				t.Errorf("%s: %.2f requests of %s at once, want %.1f to %.1f", what, got, index, least, most)
			}
		}
		stopA := flood(t, w, "a")
		expect("alone", "a", 5.9, 6.1)
		stopB := flood(t, w, "b")
		expect("beside a slow one", "b", 2.5, 3.5)
		overload.Store(true)
		expect("beside an overloaded one", "b", 4, 6.1)
		stopA()
		stopB()
	})
}

// TestBackoffOfTwoIndexes checks that documents in backoff of an overloaded index do not use the space for those of another index,
// which would block good documents of that index.
func TestBackoffOfTwoIndexes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.on = func(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
			time.Sleep(time.Millisecond)
			return f.applySome(b, func(e entry) (core.Result, bool) { return busy, b.Index == "b" && !strings.HasPrefix(e.id, "bad") }), nil
		}
		w := open(t, f, bulk.Config{BatchBytes: 10 << 10})
		stop := flood(t, w, "a")
		time.Sleep(5 * time.Second)
		var bad []*bulk.Ticket
		for i := range 20 {
			ticket := w.Ticket()
			if err := w.Add(t.Context(), ticket, "b", document(fmt.Sprintf("bad%d", i), "")); err != nil {
				t.Fatal(err)
			}
			bad = append(bad, sealed(ticket))
			if took := writeTo(t, w, "b", indexed, document(fmt.Sprintf("d%d", i), "")); took > 50*time.Millisecond {
				t.Errorf("good document %d took %s", i, took)
			}
		}
		for _, ticket := range bad {
			wait(t, ticket)
		}
		stop()
	})
}

// TestRetryWithoutSlot checks that delayed documents are retried after their backoff while a request of another index uses the only
// slot.
func TestRetryWithoutSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.on = func(_ context.Context, n int, b core.Batch) ([]core.Result, error) {
			switch {
			case b.Index == "b":
				time.Sleep(5 * time.Second)
			case n == 0:
				return repeated(busy, len(b.Items)), nil
			}
			return f.apply(b), nil
		}
		w := open(t, f, bulk.Config{MaxInFlight: 1})
		start, delayed := time.Now(), sealed(add(t, w, document("a", "")))
		synctest.Wait() // for its backoff, of at least 25 ms
		hanging := w.Ticket()
		if err := w.Add(t.Context(), hanging, "b", document("b", "")); err != nil {
			t.Fatal(err)
		}
		sealed(hanging)
		results := wait(t, delayed)
		if took := time.Since(start); took > 50*time.Millisecond {
			t.Errorf("the document that was put off took %s", took)
		}
		if results = append(results, wait(t, hanging)...); !slices.Equal(results, repeated(indexed, 2)) {
			t.Errorf("results %v", results)
		}
	})
}
