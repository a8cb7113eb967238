package segment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
)

// verify checks the structure of a segment that was read, so that nothing is read out of bounds. It relies on the checksums for the
// contents of texts and bitmaps.
func (s *Segment) verify(dir directory) error {
	if len(s.numbers) != dir.Documents || len(s.spaces) != len(dir.Spaces) || len(s.columns) != len(dir.Columns) {
		return errors.New("the directory is inconsistent")
	}
	if dir.Documents > math.MaxInt32 {
		return errors.New("there are too many documents")
	}
	if !ascending(s.numbers) {
		return errors.New("the documents are not in order")
	}
	if err := s.verifySpaces(); err != nil {
		return err
	}
	for name, c := range s.columns {
		if c.space != "" && s.spaces[c.space] == nil {
			return fmt.Errorf("the row space of column %q is missing", name)
		}
		if c.rows = s.Rows(c.space); !c.verify() {
			return fmt.Errorf("column %q is inconsistent", name)
		}
	}
	if ids := s.columns[idField]; ids == nil && len(s.numbers) > 0 || ids != nil && !ids.hasOneTextPerRow() {
		return errors.New("documents have no ids")
	}
	return nil
}

func (s *Segment) verifySpaces() error {
	for path, sp := range s.spaces {
		above := len(s.numbers)
		if sp.parent != "" {
			held := s.spaces[sp.parent]
			if held == nil || !strings.HasPrefix(path, sp.parent+".") {
				return fmt.Errorf("the parent of the row space %q is missing", path)
			}
			above = len(held.parents)
		}
		if len(sp.span) != len(s.numbers)+1 || !isPartition(sp.span, len(sp.parents)) || !allBelow(sp.parents, above) {
			return fmt.Errorf("the rows of %q are inconsistent", path)
		}
	}
	return nil
}

// hasOneTextPerRow reports whether each document has one text.
func (c *Column) hasOneTextPerRow() bool {
	return c.space == "" && c.texts != nil && len(c.single) > 0 && !slices.Contains(c.single, 0)
}

// verify reports whether all offsets, rows and ordinals of the column are within bounds.
func (c *Column) verify() bool {
	if !c.verifyTexts() {
		return false
	}
	size := int(c.Size())
	switch {
	case size == 0, c.rows == 0, c.invertedOnly() && len(c.values) > 0:
		return false
	case c.invertedOnly():
	case len(c.single) > 0:
		if len(c.single) != c.rows || len(c.offsets)+len(c.values) > 0 || !allBelow(c.single, size+1) {
			return false
		}
	default:
		if len(c.offsets) != c.rows+1 || !isPartition(c.offsets, len(c.values)) || !allBelow(c.values, size) {
			return false
		}
	}
	return c.verifyRows(size)
}

func (c *Column) verifyTexts() bool {
	switch texts := c.texts.(type) {
	case *plainTexts:
		return len(texts.starts) > 0 && isPartition(texts.starts, len(texts.data))
	case *packedTexts:
		return uint64(texts.count) <= math.MaxUint32 && len(texts.blocks) == (texts.count+blockTexts-1)/blockTexts &&
			ascending(texts.blocks) && (len(texts.blocks) == 0 || texts.blocks[len(texts.blocks)-1] < uint64(len(texts.data)))
	default:
		return ascending(c.keys)
	}
}

// verifyRows reports whether all rows of size values are within bounds.
func (b *byValue) verifyRows(size int) bool {
	within := func(rows *roaring.Bitmap) bool { return rows != nil && !rows.IsEmpty() && int(rows.Maximum()) < b.rows }
	if !within(b.exists) {
		return false
	}
	if b.postings != nil {
		for _, rows := range b.postings {
			if !within(rows) {
				return false
			}
		}
		return len(b.postings) == size && len(b.order)+len(b.starts) == 0
	}
	if !allBelow(b.order, b.rows) {
		return false
	}
	if b.starts == nil {
		return len(b.order) == size
	}
	return len(b.starts) == size+1 && isPartition(b.starts, len(b.order))
}

// ascending reports whether numbers are strictly ascending.
func ascending(numbers []uint64) bool {
	for i := 1; i < len(numbers); i++ {
		if numbers[i] <= numbers[i-1] {
			return false
		}
	}
	return true
}

// isPartition reports whether bounds are non-decreasing from 0 to total.
func isPartition(bounds []uint32, total int) bool {
	if len(bounds) == 0 || bounds[0] != 0 || uint64(bounds[len(bounds)-1]) != uint64(total) {
		return false
	}
	for i := 1; i < len(bounds); i++ {
		if bounds[i] < bounds[i-1] {
			return false
		}
	}
	return true
}

// allBelow reports whether all numbers are below bound.
func allBelow(numbers []uint32, bound int) bool {
	highest := uint32(0)
	for _, number := range numbers {
		highest = max(highest, number)
	}
	return len(numbers) == 0 || uint64(highest) < uint64(bound)
}
