package bulk_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// memory is a Memory of so many bytes, all of index a.
type memory struct{ *semaphore.Weighted }

func (m memory) AcquireFor(ctx context.Context, index string, n int64) (func(), error) {
	if index != "a" {
		return nil, core.NewError(core.CodeInternal, "memory for another index: "+index)
	}
	if err := m.Acquire(ctx, n); err != nil {
		return nil, core.WrapError(core.CodeOverloaded, "no memory", err)
	}
	return sync.OnceFunc(func() { m.Release(n) }), nil
}

// TestLargeDocumentsUseMemory checks that a document larger than a batch waits for its weight, which is released once it was
// written or could not be added; smaller ones use none.
func TestLargeDocumentsUseMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, weight = 5000, 3
		free := make(chan struct{})
		f := &fake{}
		f.on = func(_ context.Context, _ int, b core.Batch) ([]core.Result, error) {
			<-free
			return f.apply(b), nil
		}
		all := memory{semaphore.NewWeighted(weight * (size + 100))}
		w := open(t, f, bulk.Config{BatchBytes: 1000, Memory: all, DocumentWeight: weight})
		large := func(id string) core.Write { return document(id, strings.Repeat("x", size)) }
		first := add(t, w, large("a"))
		small := w.Ticket()
		if err := w.Add(t.Context(), small, "b", document("s", "")); err != nil {
			t.Fatal(err)
		}
		var second *bulk.Ticket
		added := make(chan struct{})
		go func() {
			second = add(t, w, large("b"))
			close(added)
		}()
		synctest.Wait()
		select {
		case <-added:
			t.Error("a second large document was added beside the first one")
		default:
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Add(ctx, w.Ticket(), "a", large("c")); core.CodeOf(err) != core.CodeOverloaded {
			t.Errorf("the wait for memory ended with %v", err)
		}
		close(free)
		<-added
		for _, ticket := range []*bulk.Ticket{first, small, second} {
			ticket.Seal()
			if results := wait(t, ticket); len(results) != 1 || results[0] != indexed {
				t.Errorf("results %v", results)
			}
		}
		sealed := w.Ticket()
		sealed.Seal()
		if err := w.Add(t.Context(), sealed, "a", large("d")); err == nil {
			t.Error("a document was added to a sealed ticket")
		}
		synctest.Wait()
		if !all.TryAcquire(weight * (size + 100)) {
			t.Error("memory is held at the end")
		}
	})
}
