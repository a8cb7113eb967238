package document

import (
	"bytes"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// KindNull is a null, which only a Walker passes to a Sink; raw is nil.
const KindNull = KindObject + 1

// Walker passes the values of documents to a Sink as a Checker does, but without checking them: a document may be older than the
// mapping. It is for documents that a Checker once accepted. It is not safe for concurrent use. The zero value is ready.
type Walker struct {
	scan scanner
	sink Sink
}

// Walk reads doc once. sink receives the values of the fields in known, of any kind, and the nulls of fields that are not
// containers; it receives neither the contents of disabled fields nor scalars in place of a container. CodeInvalid when doc is not
// a JSON object; sink may then have received part of it.
func (w *Walker) Walk(known *mapping.Field, doc []byte, sink Sink) error {
	w.scan, w.sink = scanner{doc: doc}, sink
	if w.scan.peek() != '{' {
		w.scan.fail("not an object")
	} else if !known.Disabled() {
		w.object(known)
	}
	if w.scan.problem != "" {
		return core.NewError(core.CodeInvalid, "the document is not valid JSON: "+w.scan.problem)
	}
	return nil
}

// object reads one object of f, a container.
func (w *Walker) object(f *mapping.Field) bool {
	return w.scan.object(func(name []byte) bool { return w.member(f, name) })
}

// member reads the value of a member of f, whose name may contain dots.
func (w *Walker) member(f *mapping.Field, name []byte) bool {
	if child := f.Properties[string(name)]; child != nil {
		return w.value(child)
	}
	first, rest, dotted := bytes.Cut(name, []byte{'.'})
	if !dotted {
		return w.scan.skip()
	}
	child := f.Properties[string(first)]
	if child == nil || !child.Container() || child.Disabled() {
		return w.scan.skip()
	}
	w.sink.Enter(child)
	ok := w.member(child, rest)
	w.sink.Leave(child)
	return ok
}

// value reads one value of f.
func (w *Walker) value(f *mapping.Field) bool {
	switch c := w.scan.peek(); {
	case c == '[':
		return w.scan.array(func() bool { return w.value(f) })
	case !f.Container():
		return w.leaf(f, c)
	case c != '{' || f.Disabled():
		return w.scan.skip()
	}
	w.sink.Enter(f)
	ok := w.object(f)
	w.sink.Leave(f)
	return ok
}

// leaf reads a value of f, which is not a container, that starts with c.
func (w *Walker) leaf(f *mapping.Field, c byte) bool {
	kind, raw, ok := w.scan.scalar(c)
	if ok {
		w.sink.Value(f, kind, raw)
	}
	return ok
}

// Leaves calls each with every scalar below raw, a JSON object: with the names that lead to it, joined by dots, and a value as in
// Sink.Value, KindNull for a null. path is valid only during the call. Values after a syntax error are omitted.
func Leaves(raw []byte, each func(path []byte, kind Kind, raw []byte)) {
	w := leafWalker{scan: scanner{doc: raw}, each: each}
	w.value()
}

// leafWalker is the state of Leaves; path is that of the current value.
type leafWalker struct {
	scan scanner
	path []byte
	each func(path []byte, kind Kind, raw []byte)
}

func (w *leafWalker) value() bool {
	switch c := w.scan.peek(); c {
	case '{':
		return w.scan.object(w.member)
	case '[':
		return w.scan.array(w.value)
	default:
		kind, raw, ok := w.scan.scalar(c)
		if ok {
			w.each(w.path, kind, raw)
		}
		return ok
	}
}

func (w *leafWalker) member(name []byte) bool {
	above := len(w.path)
	if above > 0 {
		w.path = append(w.path, '.')
	}
	w.path = append(w.path, name...)
	ok := w.value()
	w.path = w.path[:above]
	return ok
}
