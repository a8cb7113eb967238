package evaluate

import (
	"context"
	"slices"
	"sort"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate/match"
	"tutti/internal/index/embedded/segment"
)

// maxRangesPerPass is the number of ranges counted in one pass over the documents: memory grows with its square.
const maxRangesPerPass = 256

// countRanges returns the number of documents with a value in each range, with one or two passes over the documents for each
// maxRangesPerPass ranges.
func (at *countScope) countRanges(ctx context.Context, f query.Field, ranges []index.NumberRange, s *scratch) []int64 {
	counts := make([]int64, 0, len(ranges))
	for some := range slices.Chunk(ranges, maxRangesPerPass) {
		counts = append(counts, at.countBands(ctx, newBands(at.values.column, f, some), s)...)
	}
	return counts
}

// bands are the pieces into which the bounds of ranges divide a column, numbered from 0: band b ends before the ordinal bounds[b],
// the last one after all ordinals.
type bands struct {
	bounds []uint32
	// ranges are the bands of each range.
	ranges []bandRange
}

// bandRange is the bands [from, to).
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

// count returns the number of bands.
func (b *bands) count() int { return len(b.bounds) + 1 }

// groups sets, at each ordinal plus one, the number of the ordinal's band plus one.
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
	s.groups = match.Zeroed(s.groups, int(at.values.column.Size())+1)
	b.groups(s.groups)
	at.values.count(ctx, at.docs.Bits, s.groups, b.count(), s)
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
	// A document with values in several bands was counted in each of them.
	gaps := at.gapCounts(ctx, b, s)
	for i, r := range b.ranges {
		if r.to-r.from > 1 {
			counts[i] = int64(at.docs.Count) - int64(gaps[r.from*(b.count()+1)+r.to])
		}
	}
	return counts
}

// gapCounts returns the number of documents without a value in the bands [from, to), at from*(count+1)+to. The sorted bands of a
// document divide all bands into gaps, from before the first to after the last; exactly one gap covers a range in which the
// document has no value.
func (at *countScope) gapCounts(ctx context.Context, b *bands, s *scratch) []uint32 {
	width := b.count() + 1
	s.gaps = match.Zeroed(s.gaps, width*width)
	gaps := s.gaps
	var pieces []uint32
	s.Batches(ctx, at.docs.Bits, func(docs []uint32) {
		for _, d := range docs {
			pieces = pieces[:0]
			at.values.each(d, func(ordinal uint32) { pieces = append(pieces, s.groups[ordinal+1]) })
			slices.Sort(pieces)
			before := 0 // bands count from 1 here
			for _, piece := range pieces {
				gaps[before*width+int(piece)-1]++
				before = int(piece)
			}
			gaps[before*width+width-1]++
		}
	})
	// A gap covers all ranges within it: sum up the gaps that start at or before from and end at or after to.
	for from := range width {
		for to := width - 2; to >= 0; to-- {
			gaps[from*width+to] += gaps[from*width+to+1]
		}
	}
	for i := width; i < len(gaps); i++ {
		gaps[i] += gaps[i-width]
	}
	return gaps
}
