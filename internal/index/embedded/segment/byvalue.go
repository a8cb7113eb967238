package segment

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// minPosting is the average number of rows per value from which a column stores bitmaps: each needs some hundred bytes before its
// first row.
const minPosting = 128

// byValue holds the rows of each value, as bitmaps in postings, or in order: the rows of ordinal o are order[starts[o]:starts[o+1]].
// starts is nil when each value has one row.
type byValue struct {
	// rows is the number of rows, exists are those with a value.
	rows          int
	exists        *roaring.Bitmap
	postings      []*roaring.Bitmap
	order, starts []uint32
}

// newByValue returns the rows of each value, those of ordinal o being order[starts[o]:starts[o+1]].
func newByValue(order, starts []uint32, rows int) byValue {
	bits := make([]uint64, (rows+63)/64)
	for _, row := range order {
		bits[row/64] |= 1 << (row % 64)
	}
	b := byValue{rows: rows, exists: existsBitmap(bits, rows)}
	size := len(starts) - 1
	switch {
	case len(order) >= size*minPosting:
		b.postings = make([]*roaring.Bitmap, size)
		for o := range b.postings {
			rows := roaring.New()
			rows.AddMany(order[starts[o]:starts[o+1]])
			rows.RunOptimize()
			b.postings[o] = rows
		}
	case len(order) == size:
		b.order = order
	default:
		b.order, b.starts = order, starts
	}
	return b
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

// size returns the number of values.
func (b *byValue) size() uint32 {
	switch {
	case b.postings != nil:
		return uint32(len(b.postings))
	case b.starts != nil:
		return uint32(len(b.starts) - 1)
	default:
		return uint32(len(b.order))
	}
}

// Exists returns the rows with a value.
func (b *byValue) Exists() *roaring.Bitmap { return b.exists }

// AddRows adds to into the rows that have a value with an ordinal in [from, to).
func (b *byValue) AddRows(into *roaring.Bitmap, from, to uint32) {
	to = min(to, b.size())
	switch {
	case from >= to:
	case from == 0 && to == b.size():
		into.Or(b.exists)
	case b.postings == nil:
		b.addOrdered(into, b.rowsOf(from, to), to-from == 1)
	case to-from <= fewPostings:
		for _, rows := range b.postings[from:to] {
			into.Or(rows)
		}
	default:
		into.Or(roaring.FastOr(b.postings[from:to]...))
	}
}

// fewPostings is the number of bitmaps up to which they are merged into the result one by one.
const fewPostings = 4

// rowsOf returns the rows of the ordinals [from, to), by ordinal.
func (b *byValue) rowsOf(from, to uint32) []uint32 {
	if b.starts == nil {
		return b.order[from:to]
	}
	return b.order[b.starts[from]:b.starts[to]]
}

// addOrdered adds rows. Unless sorted, few rows are sorted first, and many are added as a dense bitmap.
func (b *byValue) addOrdered(into *roaring.Bitmap, rows []uint32, sorted bool) {
	switch {
	case sorted:
		into.AddMany(rows)
	case len(rows) <= b.rows/64:
		rows = slices.Clone(rows)
		slices.Sort(rows)
		into.AddMany(rows)
	default:
		bits := make([]uint64, (b.rows+63)/64)
		for _, row := range rows {
			bits[row/64] |= 1 << (row % 64)
		}
		into.Or(roaring.FromDense(bits, false))
	}
}

// Postings returns the rows that have the value of an ordinal, nil when the column has no bitmaps because it has too many distinct
// values.
func (b *byValue) Postings(ordinal uint32) *roaring.Bitmap {
	if b.postings == nil {
		return nil
	}
	return b.postings[ordinal]
}

// eachRow calls each with the rows that have the value of an ordinal.
func (b *byValue) eachRow(ordinal uint32, each func(row uint32)) {
	if b.postings == nil {
		for _, row := range b.rowsOf(ordinal, ordinal+1) {
			each(row)
		}
		return
	}
	rows := b.postings[ordinal].Iterator()
	for rows.HasNext() {
		each(rows.Next())
	}
}

// rowsToValues computes the values of each row from the rows of the ordinals [from, to). Ordinals in the result count from from.
func (b *byValue) rowsToValues(from, to uint32) byRow {
	var out byRow
	next := make([]uint32, b.rows+1) // per row: first its number of values, then its next free offset
	for ordinal := from; ordinal < to; ordinal++ {
		b.eachRow(ordinal, func(row uint32) { next[row+1]++ })
	}
	if slices.Max(next) <= 1 {
		out.single = make([]uint32, b.rows)
		for ordinal := from; ordinal < to; ordinal++ {
			b.eachRow(ordinal, func(row uint32) { out.single[row] = ordinal - from + 1 })
		}
		return out
	}
	for row := range b.rows {
		next[row+1] += next[row]
	}
	out.offsets = slices.Clone(next)
	out.values = make([]uint32, next[b.rows])
	for ordinal := from; ordinal < to; ordinal++ {
		b.eachRow(ordinal, func(row uint32) {
			out.values[next[row]] = ordinal - from
			next[row]++
		})
	}
	return out
}
