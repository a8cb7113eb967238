package segment

import (
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/filter/query"
)

// Column holds the values of one field. Ordinals number the distinct values from 0 in ascending order.
type Column struct {
	// field is the field as mapped when its values were read, without Nested.
	field query.Field
	// space is the path whose rows have the values, rows the number of these rows.
	space string
	rows  int
	// keys are the values of a numeric column, texts those of all other columns.
	keys  []uint64
	texts dictionary
	// byRow is empty in an inverted-only column; lazyByRow is then computed on first use.
	byRow
	lazyByRow struct {
		once sync.Once
		byRow
	}
	// The rows of each value are stored as bitmaps in postings, or in order: the rows of ordinal o are
	// order[starts[o]:starts[o+1]]. starts is nil when each value has one row.
	exists        *roaring.Bitmap
	postings      []*roaring.Bitmap
	order, starts []uint32
}

// byRow holds the values of each row: single as returned by Column.Single, offsets and values as returned by Column.Multi.
type byRow struct {
	single, offsets, values []uint32
}

// invertedOnly reports whether a column stores only the rows of each value, because its values are seldom read by row.
func (c *Column) invertedOnly() bool { return c.single == nil && c.offsets == nil }

// rowValues returns the values by row.
func (c *Column) rowValues() *byRow {
	if !c.invertedOnly() {
		return &c.byRow
	}
	c.lazyByRow.once.Do(func() { c.lazyByRow.byRow = c.valuesByRow(0, c.Size()) })
	return &c.lazyByRow.byRow
}

// Numeric reports whether the values are keys (query.Key); otherwise they are texts in byte order.
func (c *Column) Numeric() bool { return c.texts == nil }

// Size returns the number of distinct values.
func (c *Column) Size() uint32 {
	if c.texts == nil {
		return uint32(len(c.keys))
	}
	return uint32(c.texts.size())
}

// Text returns the value of an ordinal in a column of texts. The bytes may belong to the segment and must not be changed.
func (c *Column) Text(ordinal uint32) []byte { return c.texts.at(nil, ordinal) }

// Key returns the value of an ordinal of a numeric column.
func (c *Column) Key(ordinal uint32) uint64 { return c.keys[ordinal] }

// FindText returns the first ordinal whose text is at or above text, Size() when there is none, and whether it is equal.
func (c *Column) FindText(text string) (ordinal uint32, equal bool) { return c.texts.find(text) }

// FindKey returns the first ordinal whose key is at or above key, Size() when there is none, and whether it is equal.
func (c *Column) FindKey(key uint64) (ordinal uint32, equal bool) {
	at, equal := slices.BinarySearch(c.keys, key)
	return uint32(at), equal
}

// Exists returns the rows with a value.
func (c *Column) Exists() *roaring.Bitmap { return c.exists }

// AddRows adds to into the rows that have a value with an ordinal in [from, to).
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

// fewPostings is the number of bitmaps up to which they are merged into the result one by one.
const fewPostings = 4

// rowsOf returns the rows of the ordinals [from, to), by ordinal.
func (c *Column) rowsOf(from, to uint32) []uint32 {
	if c.starts == nil {
		return c.order[from:to]
	}
	return c.order[c.starts[from]:c.starts[to]]
}

// addOrdered adds rows. Unless sorted, few rows are sorted first, and many are added as a dense bitmap.
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

// Postings returns the rows that have the value of an ordinal, nil when the column has no bitmaps because it has too many distinct
// values.
func (c *Column) Postings(ordinal uint32) *roaring.Bitmap {
	if c.postings == nil {
		return nil
	}
	return c.postings[ordinal]
}

// Single returns for each row the ordinal of its value plus one, 0 for none. It returns nil when a row has several values.
func (c *Column) Single() []uint32 { return c.rowValues().single }

// Multi returns the ordinals of each row when some row has several values: those of row r are values[offsets[r]:offsets[r+1]],
// ascending, with duplicates. It returns nil when Single does not.
func (c *Column) Multi() (offsets, values []uint32) {
	of := c.rowValues()
	return of.offsets, of.values
}
