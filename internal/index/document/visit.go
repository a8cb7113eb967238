package document

import (
	"bytes"

	"tutti/internal/base/jsontext"
)

// Visitor receives the members of a document in document order, whatever a mapping has. A dot in a member's name means an object, as in a
// mapping; the elements of an array are passed one by one.
type Visitor interface {
	// Enter is called with the name of a member. If it returns true, Leave follows after the member's value; otherwise that is skipped.
	Enter(name []byte) bool
	Leave()
	// Object is called for an object below the root; element reports whether it is in an array. Its members follow if Object returns true.
	Object(element bool) bool
	// Value is called with a scalar other than null, as in Sink.Value.
	Value(kind Kind, raw []byte)
}

// visit is the state of Visit.
type visit struct {
	scan scanner
	to   Visitor
}

// Visit passes a document to a visitor. It ends at the first error of syntax, or at once if doc is not an object.
func Visit(doc []byte, to Visitor) {
	v := visit{scan: scanner{doc: doc}, to: to}
	if v.scan.peek() == '{' {
		v.scan.object(v.member)
	}
}

// member reads the value of a member, whose name may contain dots.
func (v *visit) member(name []byte) bool {
	first, rest, dotted := bytes.Cut(name, []byte{'.'})
	if !v.to.Enter(first) {
		return v.scan.skip()
	}
	ok := false
	switch {
	case !dotted:
		ok = v.value(false)
	case v.to.Object(false):
		ok = v.member(rest)
	default:
		ok = v.scan.skip()
	}
	v.to.Leave()
	return ok
}

func (v *visit) value(element bool) bool {
	switch c := v.scan.peek(); c {
	case '{':
		if !v.to.Object(element) {
			return v.scan.skip()
		}
		return v.scan.object(v.member)
	case '[':
		return v.scan.array(func() bool { return v.value(true) })
	default:
		kind, raw, ok := v.scan.scalar(c)
		if ok && kind != KindNull {
			v.to.Value(kind, raw)
		}
		return ok
	}
}

// DateText reports whether a text, the inside of a string of JSON, is a date with year, month and day, which Derive takes for one, and whether
// a field of dates with the default format takes it.
func DateText(raw []byte) (dated, taken bool) {
	escaped := bytes.IndexByte(raw, '\\') >= 0
	text := raw
	if escaped {
		text = jsontext.AppendUnescaped(nil, raw)
	}
	dated = IsDay(string(text))
	return dated, dated || !escaped && IsDate(KindString, raw)
}
