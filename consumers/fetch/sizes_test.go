package fetch_test

import (
	"testing"

	"tutti/consumers/fetch"
)

// TestSizes: a smaller page has at most half of the rows and a larger one up to twice as many; where pages are numbered, only such that a page
// of that size begins at the offset.
func TestSizes(t *testing.T) {
	t.Parallel()
	overlapping, numbered := fetch.Sizes{Largest: 500}, fetch.Sizes{Largest: 500, NonOverlapping: true}
	for _, c := range []struct {
		sizes                          fetch.Sizes
		offset, limit, smaller, larger int
	}{
		{overlapping, 7, 100, 50, 200},
		{overlapping, 7, 300, 150, 500},
		{overlapping, 7, 3, 2, 6},
		{overlapping, 7, 2, 2, 4},
		{overlapping, 7, 1, 1, 2},
		{numbered, 200, 100, 50, 200},
		{numbered, 300, 100, 50, 100},
		{numbered, 75, 75, 25, 75},
		{numbered, 7, 1, 1, 1},
		{numbered, 1000, 300, 125, 500},
	} {
		if smaller, larger := c.sizes.Smaller(c.offset, c.limit), c.sizes.Larger(c.offset, c.limit); smaller != c.smaller || larger != c.larger {
			t.Errorf("%+v from %d, %d rows: %d and %d, want %d and %d", c.sizes, c.offset, c.limit, smaller, larger, c.smaller, c.larger)
		}
	}
}
