package evaluate

import (
	"context"
	"slices"
	"sort"

	"tutti/internal/index"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/query"
)

// maxRangesPerPass is how many ranges are counted with one look at the documents: memory grows with their square.
const maxRangesPerPass = 256

// countRanges returns the number of documents with a value in each range. Documents are looked at once or twice for mostRanges ranges,
// not once for each.
func (at *countScope) countRanges(ctx context.Context, f query.Field, ranges []index.NumberRange, s *scratch) []int64 {
	counts := make([]int64, 0, len(ranges))
	for some := range slices.Chunk(ranges, maxRangesPerPass) {
		counts = append(counts, at.countBands(ctx, newBands(at.values.column, f, some), s)...)
	}
	return counts
}

// bands are the pieces that the bounds of ranges cut a column into, numbered from 0: piece b ends before the ordinal bounds[b],
// the last one behind all ordinals.
type bands struct {
	bounds []uint32
	// ranges say for each range its pieces.
	ranges []bandRange
}

// bandRange is the pieces from from to before to.
type bandRange struct{ from, to int }

func newBands(column *segment.Column, f query.Field, ranges []index.NumberRange) *bands {
	size := int(column.Size())
	find := func(bound *float64, otherwise int) uint32 {
		if bound == nil {
			return uint32(otherwise)
		}
		return uint32(sort.Search(size, func(i int) bool { return query.Number(f, column.Key(uint32(i))) >= *bound }))
	}
	ordinals := make([][2]uint32, len(ranges))
	b := &bands{ranges: make([]bandRange, len(ranges))}
	for i, r := range ranges {
		ordinals[i] = [2]uint32{find(r.From, 0), find(r.To, size)}
		b.bounds = append(b.bounds, ordinals[i][:]...)
	}
	slices.Sort(b.bounds)
	b.bounds = slices.Compact(b.bounds)
	for i, o := range ordinals {
		if o[0] < o[1] {
			from, _ := slices.BinarySearch(b.bounds, o[0])
			to, _ := slices.BinarySearch(b.bounds, o[1])
			b.ranges[i] = bandRange{from + 1, to + 1}
		}
	}
	return b
}

// count is how many pieces there are.
func (b *bands) count() int { return len(b.bounds) + 1 }

// groups writes for each ordinal plus one the number of its piece plus one.
func (b *bands) groups(groups []uint32) {
	band := uint32(0)
	for o := range groups[1:] {
		for int(band) < len(b.bounds) && uint32(o) >= b.bounds[band] {
			band++
		}
		groups[o+1] = band + 1
	}
}

// countBands returns the number of documents with a value in each range.
func (at *countScope) countBands(ctx context.Context, b *bands, s *scratch) []int64 {
	s.groups = zeroed(s.groups, int(at.values.column.Size())+1)
	b.groups(s.groups)
	at.values.count(ctx, at.docs.bits, s.groups, b.count(), s)
	counts := make([]int64, len(b.ranges))
	wide := false
	for i, r := range b.ranges {
		for band := r.from; band < r.to; band++ {
			counts[i] += int64(s.counters[band+1].count)
		}
		wide = wide || r.to-r.from > 1
	}
	if !wide || at.values.span == nil && at.values.single != nil {
		return counts
	}
	// A document with values in several pieces was counted for each of them.
	steps := at.gapCounts(ctx, b, s)
	for i, r := range b.ranges {
		if r.to-r.from > 1 {
			counts[i] = int64(at.docs.count) - int64(steps[r.from*(b.count()+1)+r.to])
		}
	}
	return counts
}

// gapCounts returns how many documents have no value from one piece to before another, at from*(count+1)+to. The pieces of a document,
// in order, are steps from before the first to behind the last piece; exactly one of them leads over pieces where it has none.
func (at *countScope) gapCounts(ctx context.Context, b *bands, s *scratch) []uint32 {
	width := b.count() + 1
	s.gaps = zeroed(s.gaps, width*width)
	steps := s.gaps
	var pieces []uint32
	s.batches(ctx, at.docs.bits, func(docs []uint32) {
		for _, d := range docs {
			pieces = pieces[:0]
			at.values.each(d, func(ordinal uint32) { pieces = append(pieces, s.groups[ordinal+1]) })
			slices.Sort(pieces)
			before := 0 // a piece counts from 1 here
			for _, piece := range pieces {
				steps[before*width+int(piece)-1]++
				before = int(piece)
			}
			steps[before*width+width-1]++
		}
	})
	// Of a step from before p to n, all pieces from p to before n are left out: sum up what begins before and ends behind.
	for from := range width {
		for to := width - 2; to >= 0; to-- {
			steps[from*width+to] += steps[from*width+to+1]
		}
	}
	for i := width; i < len(steps); i++ {
		steps[i] += steps[i-width]
	}
	return steps
}
