package fetch

// GrowAfter is how many pages have at most the size that the upstream returned, after it did not return a larger one.
const GrowAfter = 16

// Sizes are the numbers of rows that the pages of a list may have.
type Sizes struct {
	// Largest is the configured number.
	Largest int
	// NonOverlapping is true when the upstream pages by page number, so that pages cannot overlap.
	NonOverlapping bool
}

// Smaller returns at most half of a limit with which a page can begin at an offset, or the limit itself if there is none.
func (s Sizes) Smaller(offset, limit int) int {
	if !s.NonOverlapping {
		return min(limit, max(limit/2, 2)) // pages overlap by one row
	}
	smaller := max(limit/2, 1)
	for offset%smaller != 0 { // pages are numbered
		smaller--
	}
	return smaller
}

// Larger returns up to twice a limit, if a page can begin at an offset with it, or the limit itself.
func (s Sizes) Larger(offset, limit int) int {
	larger := max(limit, min(2*limit, s.Largest))
	if s.NonOverlapping && offset%larger != 0 {
		return limit
	}
	return larger
}
