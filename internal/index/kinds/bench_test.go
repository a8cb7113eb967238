package kinds_test

import (
	"testing"

	"tutti/internal/core"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/testkit/dataset"
)

// BenchmarkCounter counts the documents of a page.
func BenchmarkCounter(b *testing.B) {
	all := dataset.GenerateAnalyses(1, "S1", 500)
	c := kinds.NewCounter(mapping.Song(), core.MaxKindsBytes)
	bytes, shapes := 0, make([]uint64, len(all))
	for i, a := range all {
		shapes[i] = shapeOf(b, string(a.Body))
		bytes += len(a.Body)
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		for i, a := range all {
			c.AddShaped(a.Body, shapes[i])
		}
		c.Take(int64(len(all)))
	}
}
