package kinds_test

import (
	"testing"

	"tutti/internal/core"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/testkit"
)

// BenchmarkCounter counts the documents of a page.
func BenchmarkCounter(b *testing.B) {
	all := testkit.GenerateAnalyses(1, "S1", 500)
	c := kinds.NewCounter(mapping.Song(), core.MaxKindsBytes)
	bytes := 0
	for _, a := range all {
		bytes += len(a.Body)
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		for _, a := range all {
			c.Record()
			c.Add(a.Body)
		}
		c.Take(int64(len(all)))
	}
}
