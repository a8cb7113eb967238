package segment

import (
	"strings"
	"sync/atomic"

	"tutti/internal/index/embedded/segment/fieldvalue"
	"tutti/internal/index/embedded/segment/sectionfile"
	"tutti/internal/index/mapping"
)

// Segment is an immutable set of documents in columns. It is safe for concurrent use. The slices and bitmaps that it returns must
// not be changed.
type Segment struct {
	numbers []uint64
	// spaces, by path, are the nested row spaces that have rows. columns are by the path of their field; the keys of a flattened
	// field are in a column of their own (flattenedKeysName), from which keyColumns are made.
	spaces     map[string]*rowSpace
	columns    map[string]*Column
	keyColumns keyColumns
	// earlier is set for a segment of a file that lacks the forms of later releases.
	earlier bool
	// size is the result of Bytes, 0 before its first call.
	size atomic.Int64
}

// rowSpace holds the rows of a nested path.
type rowSpace struct {
	// parent is the path of the row space that parents refer to, "" for documents.
	parent        string
	span, parents []uint32
}

// idField is the name of the column of document ids.
const idField = "_id"

// Documents returns the number of documents, which are the rows of "".
func (s *Segment) Documents() int { return len(s.numbers) }

// Covers reports whether the segment may have the values of all fields of a mapping: the files of earlier releases lack those of ranges,
// points and other types whose values no filter compares.
func (s *Segment) Covers(tree *mapping.Field) bool {
	if !s.earlier {
		return true
	}
	for _, f := range tree.All() {
		if form := fieldvalue.FormOf(f); !f.Container() && (form == fieldvalue.FormRange || form == fieldvalue.FormPresent) {
			return false
		}
	}
	return true
}

// Bytes returns about the memory of the segment.
func (s *Segment) Bytes() int64 {
	if s.size.Load() == 0 {
		s.size.Store(max(sectionfile.Size(s.visitSections), 1))
	}
	return s.size.Load()
}

// Numbers returns the row number of each document in the index file, in ascending order.
func (s *Segment) Numbers() []uint64 { return s.numbers }

// ID returns the id of a document.
func (s *Segment) ID(document uint32) string {
	ids := s.columns[idField]
	var room [64]byte
	return string(ids.texts.At(room[:], ids.single[document]-1))
}

// Rows returns the number of rows of a nested path or of "", 0 when no document has an element at the path.
func (s *Segment) Rows(path string) int {
	if path == "" {
		return len(s.numbers)
	}
	return len(s.Parents(path))
}

// Span returns the row range of each document in a nested path: document d has the rows from Span[d] to before Span[d+1]. It has
// Documents()+1 entries; nil when the path has no rows.
func (s *Segment) Span(path string) []uint32 {
	if sp := s.spaces[path]; sp != nil {
		return sp.span
	}
	return nil
}

// Parents returns for each row of a nested path the parent row, in the nearest enclosing nested path or in "".
func (s *Segment) Parents(path string) []uint32 {
	if sp := s.spaces[path]; sp != nil {
		return sp.parents
	}
	return nil
}

// Column returns the values of the field at a dotted path, which may be a multi-field or a key of a flattened field; nil when no
// document has a value. The column "_id" holds the document ids.
func (s *Segment) Column(path string) *Column {
	if c := s.columns[path]; c != nil {
		return c
	}
	for i := strings.LastIndexByte(path, '.'); i > 0; i = strings.LastIndexByte(path[:i], '.') {
		if c := s.columns[flattenedKeysName(path[:i])]; c != nil {
			return s.keyColumns.column(c, path, path[i+1:])
		}
	}
	return nil
}
