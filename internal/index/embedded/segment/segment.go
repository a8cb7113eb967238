package segment

import "strings"

// Segment is some documents in columns. Nothing of it ever changes, so it may be read by many at once; slices and bitmaps that
// it gives must not be changed.
type Segment struct {
	numbers []uint64
	// spaces are those with rows, but "", by path. columns are by the path of their field; those with the keys of a flattened
	// field are keyed, see there.
	spaces  map[string]*space
	columns map[string]*Column
	keyed   keyed
}

// space is the rows of a nested path.
type space struct {
	// parent is the path of the space that parents are rows of.
	parent        string
	span, parents []uint32
}

// idField is the name of the column of the documents' ids.
const idField = "_id"

// Documents counts the documents, rows of "".
func (s *Segment) Documents() int { return len(s.numbers) }

// Numbers returns the row number of each document in the index' file, growing.
func (s *Segment) Numbers() []uint64 { return s.numbers }

// ID returns the id of a document.
func (s *Segment) ID(document uint32) string {
	ids := s.columns[idField]
	var room [64]byte
	return string(ids.texts.at(room[:], ids.single[document]-1))
}

// Rows counts the rows of a nested path, or of ""; 0 when no document has an element there.
func (s *Segment) Rows(path string) int {
	if path == "" {
		return len(s.numbers)
	}
	return len(s.Parents(path))
}

// Span says where the rows of a nested path are for each document: those of document d are from Span[d] to before Span[d+1].
// It has Documents()+1 entries; nil when the path has no rows.
func (s *Segment) Span(path string) []uint32 {
	if sp := s.spaces[path]; sp != nil {
		return sp.span
	}
	return nil
}

// Parents returns for each row of a nested path the row that holds it, in the nearest nested path above or "".
func (s *Segment) Parents(path string) []uint32 {
	if sp := s.spaces[path]; sp != nil {
		return sp.parents
	}
	return nil
}

// Column returns the values of the field of a dotted path, multi-fields included; nil when no document has one. Below a flattened
// field stand the values of each of its keys. "_id" is the ids of the documents.
func (s *Segment) Column(path string) *Column {
	if c := s.columns[path]; c != nil {
		return c
	}
	for i := strings.LastIndexByte(path, '.'); i > 0; i = strings.LastIndexByte(path[:i], '.') {
		if c := s.columns[keyedName(path[:i])]; c != nil {
			return s.keyed.column(c, path, path[i+1:])
		}
	}
	return nil
}
