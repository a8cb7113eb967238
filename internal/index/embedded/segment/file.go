package segment

import (
	"io"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/filter/query"
	"tutti/internal/index/embedded/segment/dictionary"
	"tutti/internal/index/embedded/segment/sectionfile"
)

// forms is the version of the forms of values in a file.
const forms = 1

// Read reads a segment from its file of size bytes, which it keeps in memory. CodeUnavailable when r fails, or when the file is
// truncated, damaged or of another version: the segment must then be rebuilt from its documents.
func Read(r io.Reader, size int64) (*Segment, error) {
	file, err := sectionfile.Load(r, size)
	if err != nil {
		return nil, err
	}
	return Open(file)
}

// Open returns the segment of a file, whose bytes it uses: they must not change while the segment is used. It never writes to them.
// Errors are those of Read.
func Open(file []byte) (*Segment, error) {
	s, err := decode(file)
	if err != nil {
		return nil, sectionfile.Damaged(err)
	}
	return s, nil
}

func decode(file []byte) (*Segment, error) {
	f, dir, err := sectionfile.Open(file)
	if err != nil {
		return nil, err
	}
	s := &Segment{spaces: map[string]*rowSpace{}, columns: map[string]*Column{}, earlier: dir.Forms < forms}
	f.U64s(&s.numbers)
	for _, e := range dir.Spaces {
		sp := &rowSpace{parent: e.Parent}
		sp.visitSections(f)
		sp.shareSpanAndParents()
		s.spaces[e.Path] = sp
	}
	for _, e := range dir.Columns {
		c := &Column{field: query.Field{Path: e.Path, Type: e.Type, Scale: e.Scale}, space: e.Space}
		if e.Packed || e.Texts > 0 {
			c.texts = dictionary.New(e.Texts, e.Packed)
		}
		c.visitSections(f)
		s.columns[e.Name] = c
	}
	if err := f.Done(); err != nil {
		return nil, err
	}
	return s, s.verify(dir)
}

var _ io.WriterTo = (*Segment)(nil)

// WriteTo writes the segment file (see Read) and returns its length. Equal segments have equal files. CodeUnavailable when w fails.
func (s *Segment) WriteTo(w io.Writer) (int64, error) { return sectionfile.WriteTo(w, s.visitSections) }

// visitSections visits all sections in the order of the directory that it returns.
func (s *Segment) visitSections(v sectionfile.Visitor) sectionfile.Directory {
	dir := newDirectory(len(s.numbers))
	v.U64s(&s.numbers)
	for _, path := range slices.Sorted(maps.Keys(s.spaces)) {
		sp := s.spaces[path]
		dir.Spaces = append(dir.Spaces, sectionfile.Space{Path: path, Parent: sp.parent})
		sp.visitSections(v)
	}
	for _, name := range slices.Sorted(maps.Keys(s.columns)) {
		c := s.columns[name]
		dir.Columns = append(dir.Columns, c.entry(name))
		c.visitSections(v)
	}
	return dir
}

// newDirectory returns a directory without spaces and columns.
func newDirectory(documents int) sectionfile.Directory {
	return sectionfile.Directory{Forms: forms, Documents: documents, Spaces: []sectionfile.Space{}, Columns: []sectionfile.Column{}}
}

// visitSections visits the slices of the row space.
func (sp *rowSpace) visitSections(v sectionfile.Visitor) {
	v.U32s(&sp.span)
	v.U32s(&sp.parents)
}

// visitSections visits the slices of the column.
func (c *Column) visitSections(v sectionfile.Visitor) {
	if c.Numeric() {
		v.U64s(&c.keys)
	} else {
		c.texts.Visit(v)
	}
	for _, numbers := range []*[]uint32{&c.single, &c.offsets, &c.values, &c.order, &c.starts} {
		v.U32s(numbers)
	}
	exists := []*roaring.Bitmap{c.exists}
	if v.Bitmaps(&exists); len(exists) == 1 && exists[0] != c.exists { // only when changed: others may be reading
		c.exists = exists[0]
	}
	v.Bitmaps(&c.postings)
}

// entry describes the column in the directory.
func (c *Column) entry(name string) sectionfile.Column {
	e := sectionfile.Column{Name: name, Path: c.field.Path, Type: c.field.Type, Scale: c.field.Scale, Space: c.space}
	if c.texts != nil {
		e.Texts, e.Packed = c.texts.Size(), c.texts.Packed()
	}
	return e
}
