package segment

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index/document"
	"tutti/internal/index/embedded/segment/fieldvalue"
	"tutti/internal/index/mapping"
)

// Builder builds a Segment from documents. It is not safe for concurrent use.
type Builder struct {
	tree    *mapping.Field
	plan    *plan
	walker  document.Walker
	numbers []uint64
	ids     columnBuilder
	bytes   int
	buf     []byte
}

// NewBuilder returns a Builder that reads documents by the types of tree, which it does not change.
func NewBuilder(tree *mapping.Field) *Builder {
	b := &Builder{tree: tree.Clone()} // a clone has a separate node for each path
	b.plan = newPlan(b.tree)
	b.ids = columnBuilder{
		rule: fieldvalue.Unlimited(query.Field{Path: idField, Type: idField}), space: b.plan.root, seed: maphash.MakeSeed(),
	}
	return b
}

// maxBuilderBytes bounds the total size of the documents of a Builder: offsets have 32 bits.
const maxBuilderBytes = math.MaxUint32

// Add adds a document that was checked when it was written, possibly by an older mapping: values that do not fit their field's type
// are omitted. Errors are CodeInternal when number is not above that of the previous document, CodeTooLarge when the documents together
// exceed 4 GiB, and CodeInvalid when doc is not a JSON object. After an error the Builder must not be used. doc is not kept.
func (b *Builder) Add(number uint64, id string, doc []byte) error {
	if n := len(b.numbers); n > 0 && number <= b.numbers[n-1] {
		return core.NewError(core.CodeInternal, fmt.Sprintf("document %d must not follow document %d", number, b.numbers[n-1]))
	}
	if b.bytes += len(doc) + len(id); b.bytes > maxBuilderBytes {
		return core.NewError(core.CodeTooLarge, "the documents are too large for one segment")
	}
	p := b.plan
	p.root.current = uint32(len(b.numbers))
	b.numbers = append(b.numbers, number)
	b.buf = append(b.buf[:0], id...)
	b.ids.addText(b.buf)
	if err := b.walker.Walk(b.tree, doc, (*sink)(b)); err != nil {
		return err
	}
	for _, c := range p.constants {
		c.column.add(document.KindString, c.value)
	}
	for _, s := range p.spaces {
		s.span = append(s.span, uint32(len(s.parents)))
	}
	return nil
}

// Segment returns the segment of the added documents. The Builder must not be used afterwards.
func (b *Builder) Segment() *Segment {
	s := &Segment{numbers: b.numbers, spaces: map[string]*rowSpace{}, columns: map[string]*Column{}}
	for _, g := range b.plan.spaces {
		if len(g.parents) > 0 {
			s.spaces[g.path] = &rowSpace{parent: g.parent.path, span: g.span, parents: g.parents}
		}
	}
	s.put(idField, b.ids.column(len(b.numbers)))
	for _, g := range b.plan.all {
		rows := s.Rows(g.space.path)
		s.put(g.rule.Field.Path, g.column(rows))
		if g.flattenedKeys != nil {
			s.put(flattenedKeysName(g.rule.Field.Path), g.flattenedKeys.column(rows))
		}
	}
	return s
}

// put adds a column unless it is nil.
func (s *Segment) put(name string, c *Column) {
	if c != nil {
		s.columns[name] = c
	}
}

// sink implements document.Sink for a Builder.
type sink Builder

// Enter starts a row when f is nested.
func (s *sink) Enter(f *mapping.Field) {
	if in := s.plan.elements[f]; in != nil {
		in.current = uint32(len(in.parents))
		in.parents = append(in.parents, in.parent.current)
	}
}

// Leave does nothing: the next Enter starts its own row.
func (s *sink) Leave(*mapping.Field) {}

// Value adds a value to the columns of f.
func (s *sink) Value(f *mapping.Field, kind document.Kind, raw []byte) {
	columns := s.plan.columns[f]
	if len(columns) == 0 {
		return
	}
	if kind == document.KindString && bytes.IndexByte(raw, '\\') >= 0 {
		s.buf = jsontext.AppendUnescaped(s.buf[:0], raw)
		raw = s.buf
	}
	for _, c := range columns {
		c.add(kind, raw)
	}
}
