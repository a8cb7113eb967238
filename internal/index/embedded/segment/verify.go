package segment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index/embedded/segment/sectionfile"
)

// verify checks the structure of a segment that was read, so that nothing is read out of bounds. It relies on the checksums for the
// contents of texts and bitmaps.
func (s *Segment) verify(dir sectionfile.Directory) error {
	if len(s.numbers) != dir.Documents || len(s.spaces) != len(dir.Spaces) || len(s.columns) != len(dir.Columns) {
		return errors.New("the directory is inconsistent")
	}
	if dir.Documents > math.MaxInt32 {
		return errors.New("there are too many documents")
	}
	if !sectionfile.Ascending(s.numbers) {
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
		if len(sp.span) != len(s.numbers)+1 || !sectionfile.IsPartition(sp.span, len(sp.parents)) || !sectionfile.AllBelow(sp.parents, above) {
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
	if c.Numeric() && !sectionfile.Ascending(c.keys) || !c.Numeric() && !c.texts.Consistent() {
		return false
	}
	size := int(c.Size())
	switch {
	case size == 0, c.rows == 0, c.invertedOnly() && len(c.values) > 0:
		return false
	case c.invertedOnly():
	case len(c.single) > 0:
		if len(c.single) != c.rows || len(c.offsets)+len(c.values) > 0 || !sectionfile.AllBelow(c.single, size+1) {
			return false
		}
	default:
		if len(c.offsets) != c.rows+1 || !sectionfile.IsPartition(c.offsets, len(c.values)) || !sectionfile.AllBelow(c.values, size) {
			return false
		}
	}
	return c.verifyRows(size)
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
	if !sectionfile.AllBelow(b.order, b.rows) {
		return false
	}
	if b.starts == nil {
		return len(b.order) == size
	}
	return len(b.starts) == size+1 && sectionfile.IsPartition(b.starts, len(b.order))
}
