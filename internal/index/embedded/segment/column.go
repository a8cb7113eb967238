package segment

import (
	"slices"
	"sync"

	"tutti/internal/filter/query"
	"tutti/internal/index/embedded/segment/dictionary"
)

// Column holds the values of one field. Ordinals number the distinct values from 0 in ascending order.
type Column struct {
	// field is the field as mapped when its values were read, without Nested.
	field query.Field
	// space is the path whose rows have the values.
	space string
	// keys are the values of a numeric column, texts those of all other columns.
	keys  []uint64
	texts dictionary.Texts
	// byRow is empty in an inverted-only column; lazyByRow is then computed on first use.
	byRow
	lazyByRow struct {
		once sync.Once
		byRow
	}
	byValue
	// lazyAddresses is computed on first use.
	lazyAddresses struct {
		once  sync.Once
		order AddressOrder
	}
}

// rowValues returns the values by row.
func (c *Column) rowValues() *byRow {
	if !c.invertedOnly() {
		return &c.byRow
	}
	c.lazyByRow.once.Do(func() { c.lazyByRow.byRow = c.rowsToValues(0, c.Size()) })
	return &c.lazyByRow.byRow
}

// Numeric reports whether the values are keys (query.Key); otherwise they are texts in byte order.
func (c *Column) Numeric() bool { return c.texts == nil }

// Size returns the number of distinct values.
func (c *Column) Size() uint32 {
	if c.texts == nil {
		return uint32(len(c.keys))
	}
	return uint32(c.texts.Size())
}

// Text returns the value of an ordinal in a column of texts. The bytes may belong to the segment and must not be changed.
func (c *Column) Text(ordinal uint32) []byte { return c.texts.At(nil, ordinal) }

// Texts returns a reader of a column of texts.
func (c *Column) Texts() *dictionary.Reader { return dictionary.NewReader(c.texts) }

// Key returns the value of an ordinal of a numeric column.
func (c *Column) Key(ordinal uint32) uint64 { return c.keys[ordinal] }

// FindText returns the first ordinal whose text is at or above text, Size() when there is none, and whether it is equal.
func (c *Column) FindText(text string) (ordinal uint32, equal bool) { return c.texts.Find(text) }

// FindKey returns the first ordinal whose key is at or above key, Size() when there is none, and whether it is equal.
func (c *Column) FindKey(key uint64) (ordinal uint32, equal bool) {
	at, equal := slices.BinarySearch(c.keys, key)
	return uint32(at), equal
}

// Single returns for each row the ordinal of its value plus one, 0 for none. It returns nil when a row has several values.
func (c *Column) Single() []uint32 { return c.rowValues().single }

// Multi returns the ordinals of each row when some row has several values: those of row r are values[offsets[r]:offsets[r+1]],
// ascending, with duplicates. It returns nil when Single does not.
func (c *Column) Multi() (offsets, values []uint32) {
	of := c.rowValues()
	return of.offsets, of.values
}
