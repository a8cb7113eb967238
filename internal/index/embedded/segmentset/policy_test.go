package segmentset_test

import (
	"math/rand/v2"
	"testing"

	"tutti/internal/index/embedded/segmentset"
)

// TestMerges checks that there are few segments however documents arrive, few documents only in memory, and few merges per
// document.
func TestMerges(t *testing.T) {
	fixed := func(size, documents int) []int {
		sizes := make([]int, documents/size)
		for i := range sizes {
			sizes[i] = size
		}
		return sizes
	}
	random := rand.New(rand.NewPCG(1, 2))
	var mixed []int
	for sum := 0; sum < 1_000_000; {
		size := 1 + random.IntN(20)
		if random.IntN(10) == 0 {
			size = 1 + random.IntN(10_000)
		}
		mixed, sum = append(mixed, size), sum+size
	}
	for name, test := range map[string]struct {
		sizes []int
		each  float64
	}{
		"one by one":               {fixed(1, 30_000), 10},
		"tens":                     {fixed(10, 200_000), 9},
		"batches":                  {fixed(1000, 2_000_000), 4},
		"big batches":              {fixed(10_000, 4_000_000), 5},
		"as a rebuild leaves them": {fixed(65_536, 2_000_000), 4},
		"mixed":                    {mixed, 4},
		"batches and single ones":  {append(fixed(1000, 500_000), fixed(1, 20_000)...), 4},
	} {
		t.Run(name, func(t *testing.T) {
			segments, unfiled, each := segmentset.Merges(test.sizes)
			t.Logf("%d segments, %d documents only in memory, %.1f merges of each document", segments, unfiled, each)
			if segments > 30 || unfiled > 20_000 || each > test.each {
				t.Errorf("%d segments (30), %d documents only in memory (20,000), %.1f merges of each document (%.1f)",
					segments, unfiled, each, test.each)
			}
		})
	}
}
