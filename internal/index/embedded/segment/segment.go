package segment

import "github.com/RoaringBitmap/roaring/v2"

// Segment is some documents in columns. Nothing of it ever changes, so it may be read by many at once; slices and bitmaps that
// it gives must not be changed.
type Segment struct{}

// Documents counts the documents, rows of "".
func (s *Segment) Documents() int { return 0 }

// Numbers gives the row number of each document in the index' file, growing.
func (s *Segment) Numbers() []uint64 { return nil }

// ID gives the id of a document.
func (s *Segment) ID(_ uint32) string { return "" }

// Rows counts the rows of a nested path, or of ""; 0 when no document has an element there.
func (s *Segment) Rows(_ string) int { return 0 }

// Span says where the rows of a nested path are for each document: those of document d are from Span[d] to before Span[d+1].
// It has Documents()+1 entries; nil when the path has no rows.
func (s *Segment) Span(_ string) []uint32 { return nil }

// Parents gives for each row of a nested path the row that holds it, in the nearest nested path above or "".
func (s *Segment) Parents(_ string) []uint32 { return nil }

// Column gives the values of the field of a dotted path, multi-fields included; nil when no document has one.
func (s *Segment) Column(_ string) *Column { return nil }

// Column is the values of one field. Ordinals number its distinct values from 0 in their order.
type Column struct{}

// Numeric tells whether the values are keys (query.Key); else they are texts in the order of their bytes.
func (c *Column) Numeric() bool { return false }

// Size counts the distinct values.
func (c *Column) Size() uint32 { return 0 }

// Text gives the value of an ordinal of a column of texts; the bytes may be those of the segment.
func (c *Column) Text(_ uint32) []byte { return nil }

// Key gives the value of an ordinal of a numeric column.
func (c *Column) Key(_ uint32) uint64 { return 0 }

// FindText gives the first ordinal whose text is not below text, Size() when there is none, and whether it is equal.
func (c *Column) FindText(_ string) (ordinal uint32, equal bool) { return 0, false }

// FindKey gives the first ordinal whose key is not below key, Size() when there is none, and whether it is equal.
func (c *Column) FindKey(_ uint64) (ordinal uint32, equal bool) { return 0, false }

// Exists gives the rows with a value.
func (c *Column) Exists() *roaring.Bitmap { return nil }

// AddRows adds to into the rows with some value whose ordinal is in [from, to).
func (c *Column) AddRows(_ *roaring.Bitmap, _, _ uint32) {}

// Postings gives the rows that have the value of an ordinal, nil when the column keeps no such bitmaps, as it has too many
// different values for that.
func (c *Column) Postings(_ uint32) *roaring.Bitmap { return nil }

// Single gives for each row its value's ordinal plus one, 0 for none, where no row has several values; else nil.
func (c *Column) Single() []uint32 { return nil }

// Multi gives where some row has several values: the ordinals of row r are values[offsets[r]:offsets[r+1]], growing. A value
// that stands twice in a row stands twice here. Nil where Single is not.
func (c *Column) Multi() (offsets, values []uint32) { return nil, nil }
