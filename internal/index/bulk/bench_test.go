package bulk_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// instant is an index that accepts everything.
type instant struct {
	results []core.Result
	items   atomic.Int64
}

func (*instant) Encode(dst []byte, w core.Write) ([]byte, int, int) { return encode(dst, w) }

func (e *instant) Write(_ context.Context, b core.Batch) ([]core.Result, error) {
	e.items.Add(int64(len(b.Items)))
	return e.results[:len(b.Items)], nil
}

// BenchmarkWriter measures the Writer's overhead per document of 2 KB, in pages of 500 and one by one.
func BenchmarkWriter(b *testing.B) {
	doc := bytes.Repeat([]byte("x"), 2048)
	wr := core.Write{ID: "a2b0f6c8-0d3f-4c6e-9c61-3a6f5d1c7e11", Version: 1, Document: doc}
	run := func(b *testing.B, perTicket int) {
		e := &instant{results: repeated(indexed, bulk.DefaultBatchCount)}
		w := open(b, e, bulk.Config{})
		b.ReportAllocs()
		b.SetBytes(int64(len(doc)))
		wr.FetchedAt = time.Now()
		for left := b.N; left > 0; left -= perTicket {
			ticket := w.Ticket()
			for range min(perTicket, left) {
				if err := w.Add(b.Context(), ticket, "a", wr); err != nil {
					b.Fatal(err)
				}
			}
			ticket.Seal()
			if _, err := ticket.Wait(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		if got := e.items.Load(); got != int64(b.N) {
			b.Fatalf("received %d of %d", got, b.N)
		}
	}
	b.Run("page", func(b *testing.B) { run(b, 500) })
	b.Run("stream", func(b *testing.B) { run(b, 100_000) })
	b.Run("record", func(b *testing.B) { run(b, 1) })
}
