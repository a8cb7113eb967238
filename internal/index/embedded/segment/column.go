package segment

import (
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index/query"
)

// Column is the values of one field. Ordinals number its distinct values from 0 in their order.
type Column struct {
	// field is what the field was when its values were read; Nested is left out.
	field query.Field
	// space is the path whose rows hold the values, rows how many there are.
	space string
	rows  int
	// keys are the values of a numeric column, texts those of any other.
	keys  []uint64
	texts dictionary
	// byRow is nothing in a bare column; what is made when it is asked for is made.
	byRow
	made struct {
		once sync.Once
		byRow
	}
	// The rows of each value: postings, or the rows sorted by ordinal, those of ordinal o from starts[o] to before starts[o+1].
	// starts is nil when each value has one row.
	exists        *roaring.Bitmap
	postings      []*roaring.Bitmap
	order, starts []uint32
}

// byRow is the values of each row: single is that of Column.Single, offsets and values are those of Column.Multi.
type byRow struct {
	single, offsets, values []uint32
}

// bare reports whether a column keeps the rows of each value alone, as what only few ask for by row does.
func (c *Column) bare() bool { return c.single == nil && c.offsets == nil }

// rowwise returns the values of each row.
func (c *Column) rowwise() *byRow {
	if !c.bare() {
		return &c.byRow
	}
	c.made.once.Do(func() { c.made.byRow = c.valuesByRow(0, c.Size()) })
	return &c.made.byRow
}

// Numeric reports whether the values are keys (query.Key); else they are texts in the order of their bytes.
func (c *Column) Numeric() bool { return c.texts == nil }

// Size counts the distinct values.
func (c *Column) Size() uint32 {
	if c.texts == nil {
		return uint32(len(c.keys))
	}
	return uint32(c.texts.size())
}

// Text returns the value of an ordinal of a column of texts; the bytes may be those of the segment.
func (c *Column) Text(ordinal uint32) []byte { return c.texts.at(nil, ordinal) }

// Key returns the value of an ordinal of a numeric column.
func (c *Column) Key(ordinal uint32) uint64 { return c.keys[ordinal] }

// FindText returns the first ordinal whose text is not below text, Size() when there is none, and whether it is equal.
func (c *Column) FindText(text string) (ordinal uint32, equal bool) { return c.texts.find(text) }

// FindKey returns the first ordinal whose key is not below key, Size() when there is none, and whether it is equal.
func (c *Column) FindKey(key uint64) (ordinal uint32, equal bool) {
	at, equal := slices.BinarySearch(c.keys, key)
	return uint32(at), equal
}

// Exists returns the rows with a value.
func (c *Column) Exists() *roaring.Bitmap { return c.exists }

// AddRows adds to into the rows with some value whose ordinal is in [from, to).
func (c *Column) AddRows(into *roaring.Bitmap, from, to uint32) {
	to = min(to, c.Size())
	switch {
	case from >= to:
	case from == 0 && to == c.Size():
		into.Or(c.exists)
	case c.postings == nil:
		c.addOrdered(into, c.rowsOf(from, to), to-from == 1)
	case to-from <= fewPostings:
		for _, rows := range c.postings[from:to] {
			into.Or(rows)
		}
	default:
		into.Or(roaring.FastOr(c.postings[from:to]...))
	}
}

// fewPostings is up to how many bitmaps are united one by one.
const fewPostings = 4

// rowsOf returns the rows of the ordinals [from, to), by ordinal.
func (c *Column) rowsOf(from, to uint32) []uint32 {
	if c.starts == nil {
		return c.order[from:to]
	}
	return c.order[c.starts[from]:c.starts[to]]
}

// addOrdered adds rows that are sorted, or not: few are then sorted, many go through a bit for each row of the column.
func (c *Column) addOrdered(into *roaring.Bitmap, rows []uint32, sorted bool) {
	switch {
	case sorted:
		into.AddMany(rows)
	case len(rows) <= c.rows/64:
		rows = slices.Clone(rows)
		slices.Sort(rows)
		into.AddMany(rows)
	default:
		bits := make([]uint64, (c.rows+63)/64)
		for _, row := range rows {
			bits[row/64] |= 1 << (row % 64)
		}
		into.Or(roaring.FromDense(bits, false))
	}
}

// Postings returns the rows that have the value of an ordinal, nil when the column keeps no such bitmaps, as it has too many
// different values for that.
func (c *Column) Postings(ordinal uint32) *roaring.Bitmap {
	if c.postings == nil {
		return nil
	}
	return c.postings[ordinal]
}

// Single returns for each row its value's ordinal plus one, 0 for none, where no row has several values; else nil.
func (c *Column) Single() []uint32 { return c.rowwise().single }

// Multi returns where some row has several values: the ordinals of row r are values[offsets[r]:offsets[r+1]], growing. A value
// that stands twice in a row stands twice here. Nil where Single is not.
func (c *Column) Multi() (offsets, values []uint32) {
	of := c.rowwise()
	return of.offsets, of.values
}
