package queue_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
)

func benchQueue(b *testing.B) *queue.Queue {
	b.Helper()
	s, err := embedded.Start(b.Context(), embedded.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	q, err := queue.ConnectInProcess(b.Context(), s, queue.Config{Metrics: queue.NewMetrics(prometheus.NewRegistry())})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx := context.WithoutCancel(b.Context())
		if err := q.Close(ctx); err != nil {
			b.Error(err)
		}
		if err := s.Stop(ctx); err != nil {
			b.Error(err)
		}
	})
	return q
}

func BenchmarkPublish(b *testing.B) {
	q := benchQueue(b)
	r := record("S1", "")
	for i := 0; b.Loop(); i++ {
		r.RecordID = numbered(i)
		if err := q.Publish(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFetchAck takes and acks messages that wait, with 64 acks under way at a time.
func BenchmarkFetchAck(b *testing.B) {
	q := benchQueue(b)
	c, err := q.Consumer(b.Context(), "song", core.ClassRecords, queue.ConsumerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	const waiting = 1000
	left := 0
	for b.Loop() {
		if left == 0 {
			b.StopTimer()
			for i := range waiting {
				if err := q.Publish(b.Context(), record("S1", numbered(i))); err != nil {
					b.Fatal(err)
				}
			}
			left = waiting
			b.StartTimer()
		}
		messages, err := c.Fetch(b.Context(), 64, 0, time.Second)
		if err != nil {
			b.Fatal(err)
		}
		acked := make(chan error, len(messages))
		for _, m := range messages {
			go func() { acked <- m.Ack(b.Context()) }()
		}
		for range messages {
			if err := <-acked; err != nil {
				b.Fatal(err)
			}
		}
		left -= len(messages)
		b.ReportMetric(float64(len(messages)), "messages/fetch")
	}
}

// BenchmarkPublishAllSingles has 32 callers publish one Request each at a time.
func BenchmarkPublishAllSingles(b *testing.B) {
	q := benchQueue(b)
	if _, err := q.Consumer(b.Context(), "song", core.ClassBatches, queue.ConsumerConfig{}); err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		r := record("S1", "")
		r.Cause = core.CauseWebhook
		for i := 0; pb.Next(); i++ {
			r.RecordID = numbered(i % 1000)
			if errs := q.PublishAll(b.Context(), []core.Request{r}); errs != nil {
				b.Fatal(errs[0])
			}
		}
	})
}

// BenchmarkPublishOutbox has 256 callers, as the relay of an outbox, publish changes of distinct records at a time.
func BenchmarkPublishOutbox(b *testing.B) {
	q := benchQueue(b)
	var made atomic.Int64
	b.SetParallelism(max(1, 256/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		r := record("S1", "")
		r.Cause = core.CauseOutbox
		for pb.Next() {
			r.RecordID = numbered(int(made.Add(1)))
			r.ID = r.RecordID
			if err := q.Publish(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPublishUnlessRemovalPending has 128 callers, as a page whose records are requested one by one.
func BenchmarkPublishUnlessRemovalPending(b *testing.B) {
	q := benchQueue(b)
	var made atomic.Int64
	b.SetParallelism(max(1, 128/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		r := record("S1", "")
		for pb.Next() {
			r.RecordID = numbered(int(made.Add(1)))
			if err := q.PublishUnlessRemovalPending(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
	})
}
