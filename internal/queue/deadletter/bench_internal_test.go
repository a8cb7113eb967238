package deadletter

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
	"tutti/internal/queue/subjects"
)

// BenchmarkUpdateMetric is what each delivered batch of dead letters costs beside its own letters, and what the index
// keeps of a letter in memory.
func BenchmarkUpdateMetric(b *testing.B) {
	for _, n := range []int{100_000, 500_000} {
		b.Run(fmt.Sprintf("letters=%d", n), func(b *testing.B) {
			s := New(nil, nil, Config{
				Metrics: NewMetrics(prometheus.NewRegistry()), Label: func(repository string) string { return repository },
			})
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for i := range n {
				subject := subjects.OfRecordDeadLetter("song", "STUDY-1", fmt.Sprintf("%08d-4f0b-4c57-8f1c-9e4f0b4c5713", i))
				s.index.put(entry{subject: subject, version: 1, sequence: uint64(i + 1)}, core.ReasonRejected)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			for b.Loop() {
				s.UpdateMetric()
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/letter")
		})
	}
}
