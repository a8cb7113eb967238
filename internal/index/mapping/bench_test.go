package mapping_test

import (
	"testing"

	"tutti/internal/index/mapping"
	"tutti/internal/tools/testkit"
)

// BenchmarkMayBeInexact reads the documents of a page, none of which has such a number.
func BenchmarkMayBeInexact(b *testing.B) {
	all := testkit.GenerateAnalyses(1, "S1", 500)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if mapping.MayBeInexact(all[i%len(all)].Body) {
			b.Fatal(string(all[i%len(all)].Body))
		}
	}
}
