package segment

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/index/query"
)

// Builder makes a Segment of documents. One goroutine may use it at a time.
type Builder struct {
	tree    *mapping.Field
	plan    *plan
	walker  mapping.Walker
	numbers []uint64
	ids     growingColumn
	bytes   int
	buf     []byte
}

// NewBuilder makes a Builder of documents that are read by the types of tree, which is not changed.
func NewBuilder(tree *mapping.Field) *Builder {
	b := &Builder{tree: tree.Clone()} // a clone has no field at two paths
	b.plan = newPlan(b.tree)
	b.ids = growingColumn{
		rule: rule{form: formText, field: query.Field{Path: idField, Type: idField}, ignoreAbove: maxTermBytes}, space: b.plan.root, seed: maphash.MakeSeed(),
	}
	return b
}

// maxBuilderBytes bounds the documents of a Builder: places in it are numbers of 32 bits.
const maxBuilderBytes = math.MaxUint32

// Add takes a document that was checked when it was written, maybe by an older mapping: values that are none of their field's
// type are left out. number has to be above the one before. CodeInternal for one that is not; CodeTooLarge when the documents
// together are over 4 GiB; CodeInvalid when doc is no JSON object. The Builder is of no use after an error. doc is not kept.
func (b *Builder) Add(number uint64, id string, doc []byte) error {
	if n := len(b.numbers); n > 0 && number <= b.numbers[n-1] {
		return core.NewError(core.CodeInternal, fmt.Sprintf("document %d comes behind document %d", number, b.numbers[n-1]))
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
		c.column.add(mapping.KindString, c.value)
	}
	for _, s := range p.spaces {
		s.span = append(s.span, uint32(len(s.parents)))
	}
	return nil
}

// Segment returns the documents. The Builder cannot be used any more.
func (b *Builder) Segment() *Segment {
	s := &Segment{numbers: b.numbers, spaces: map[string]*space{}, columns: map[string]*Column{}}
	for _, g := range b.plan.spaces {
		if len(g.parents) > 0 {
			s.spaces[g.path] = &space{parent: g.parent.path, span: g.span, parents: g.parents}
		}
	}
	s.put(idField, b.ids.column(len(b.numbers)))
	for _, g := range b.plan.all {
		rows := s.Rows(g.space.path)
		s.put(g.rule.field.Path, g.column(rows))
		if g.keyed != nil {
			s.put(keyedName(g.rule.field.Path), g.keyed.column(rows))
		}
	}
	return s
}

// put adds a column, if there is one.
func (s *Segment) put(name string, c *Column) {
	if c != nil {
		s.columns[name] = c
	}
}

// sink is a Builder that takes the values of one document.
type sink Builder

// Enter begins a row where f is nested.
func (s *sink) Enter(f *mapping.Field) {
	if in := s.plan.elements[f]; in != nil {
		in.current = uint32(len(in.parents))
		in.parents = append(in.parents, in.parent.current)
	}
}

// Leave has nothing to do: what follows belongs to other rows.
func (s *sink) Leave(*mapping.Field) {}

// Value adds a value to the columns of f.
func (s *sink) Value(f *mapping.Field, kind mapping.Kind, raw []byte) {
	columns := s.plan.columns[f]
	if len(columns) == 0 {
		return
	}
	if kind == mapping.KindString && bytes.IndexByte(raw, '\\') >= 0 {
		s.buf = mapping.Unquote(s.buf[:0], raw)
		raw = s.buf
	}
	for _, c := range columns {
		c.add(kind, raw)
	}
}
