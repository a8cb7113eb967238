package segment

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// minPosting is the average number of rows per value from which a column stores bitmaps: each needs some hundred bytes before its
// first row.
const minPosting = 128

// setByRow sets the values by row from pairs of a row and an ordinal, in ascending order of rows. Duplicates in a row are kept in a
// numeric column and removed in one of texts. It overwrites both slices.
func (c *Column) setByRow(rows, ordinals []uint32) {
	several, kept := false, 0
	for i := 0; i < len(rows); {
		end := i + 1
		for end < len(rows) && rows[end] == rows[i] {
			end++
		}
		group := ordinals[i:end]
		if len(group) > 1 {
			slices.Sort(group)
			if !c.Numeric() {
				group = slices.Compact(group)
			}
			several = several || len(group) > 1
		}
		row := rows[i]
		for _, ordinal := range group {
			rows[kept], ordinals[kept] = row, ordinal
			kept++
		}
		i = end
	}
	rows, ordinals = rows[:kept], ordinals[:kept]
	if !several {
		c.single = make([]uint32, c.rows)
		for i, row := range rows {
			c.single[row] = ordinals[i] + 1
		}
		return
	}
	c.values = slices.Clone(ordinals)
	c.offsets = make([]uint32, c.rows+1)
	for _, row := range rows {
		c.offsets[row+1]++
	}
	for row := range c.rows {
		c.offsets[row+1] += c.offsets[row]
	}
}

// dropByRow makes the column inverted-only.
func (c *Column) dropByRow() { c.byRow = byRow{} }

// valuesByRow computes the values of each row from the rows of the ordinals [from, to). Ordinals in the result count from from.
func (c *Column) valuesByRow(from, to uint32) byRow {
	var out byRow
	next := make([]uint32, c.rows+1) // per row: first its number of values, then its next free offset
	for ordinal := from; ordinal < to; ordinal++ {
		c.eachRow(ordinal, func(row uint32) { next[row+1]++ })
	}
	if slices.Max(next) <= 1 {
		out.single = make([]uint32, c.rows)
		for ordinal := from; ordinal < to; ordinal++ {
			c.eachRow(ordinal, func(row uint32) { out.single[row] = ordinal - from + 1 })
		}
		return out
	}
	for row := range c.rows {
		next[row+1] += next[row]
	}
	out.offsets = slices.Clone(next)
	out.values = make([]uint32, next[c.rows])
	for ordinal := from; ordinal < to; ordinal++ {
		c.eachRow(ordinal, func(row uint32) {
			out.values[next[row]] = ordinal - from
			next[row]++
		})
	}
	return out
}

// eachValue calls each with the row and the ordinal of all values, by row and without duplicates.
func (c *Column) eachValue(each func(row, ordinal uint32)) {
	if c.single != nil {
		for row, ordinal := range c.single {
			if ordinal > 0 {
				each(uint32(row), ordinal-1)
			}
		}
		return
	}
	for row := range c.rows {
		last := ^uint32(0)
		for _, ordinal := range c.values[c.offsets[row]:c.offsets[row+1]] {
			if ordinal != last {
				each(uint32(row), ordinal)
			}
			last = ordinal
		}
	}
}

// invert computes the rows of each value from the values by row.
func (c *Column) invert() {
	size := int(c.Size())
	starts := make([]uint32, size+1)
	c.eachValue(func(_, ordinal uint32) { starts[ordinal+1]++ })
	for o := range size {
		starts[o+1] += starts[o]
	}
	order := make([]uint32, starts[size])
	next := slices.Clone(starts[:size])
	c.eachValue(func(row, ordinal uint32) {
		order[next[ordinal]] = row
		next[ordinal]++
	})
	c.setRowsByValue(order, starts)
}

// setRowsByValue stores the rows of each value, those of ordinal o being order[starts[o]:starts[o+1]], as bitmaps or slices
// depending on their number.
func (c *Column) setRowsByValue(order, starts []uint32) {
	bits := make([]uint64, (c.rows+63)/64)
	for _, row := range order {
		bits[row/64] |= 1 << (row % 64)
	}
	c.exists = existsBitmap(bits, c.rows)
	size := len(starts) - 1
	switch {
	case len(order) >= size*minPosting:
		c.postings = make([]*roaring.Bitmap, size)
		for o := range c.postings {
			rows := roaring.New()
			rows.AddMany(order[starts[o]:starts[o+1]])
			rows.RunOptimize()
			c.postings[o] = rows
		}
	case len(order) == size:
		c.order = order
	default:
		c.order, c.starts = order, starts
	}
}

// existsBitmap returns the rows whose bits are set.
func existsBitmap(bits []uint64, rows int) *roaring.Bitmap {
	all := true
	for i := range rows / 64 {
		if bits[i] != ^uint64(0) {
			all = false
			break
		}
	}
	if rest := rows % 64; all && rest > 0 {
		all = bits[rows/64] == 1<<rest-1
	}
	if all {
		out := roaring.New()
		out.AddRange(0, uint64(rows))
		return out
	}
	out := roaring.FromDense(bits, true)
	out.RunOptimize()
	return out
}
