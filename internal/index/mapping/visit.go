package mapping

import "bytes"

// Visitor receives the members of a document in document order, whatever a mapping has. A dot in a member's name means an object, as in a
// mapping; the elements of an array are passed one by one.
type Visitor interface {
	// Enter is called with the name of a member. If it returns true, Leave follows after the member's value; otherwise that is skipped.
	Enter(name []byte) bool
	Leave()
	// Object is called for an object below the root. If it returns true, its members follow; otherwise they are skipped. EndObject follows:
	// valued reports whether it has a value other than null, [] and {}, element whether it is in an array.
	Object() bool
	EndObject(valued, element bool)
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
		v.members()
	}
}

// members reads an object and reports whether it has a value.
func (v *visit) members() (valued, ok bool) {
	ok = v.scan.object(func(name []byte) bool {
		has, ok := v.member(name)
		valued = valued || has
		return ok
	})
	return valued, ok
}

// member reads the value of a member, whose name may contain dots.
func (v *visit) member(name []byte) (valued, ok bool) {
	first, rest, dotted := bytes.Cut(name, []byte{'.'})
	if !v.to.Enter(first) {
		return v.skip()
	}
	switch {
	case !dotted:
		valued, ok = v.value(false)
	case v.to.Object():
		valued, ok = v.member(rest)
		v.to.EndObject(valued, false)
	default:
		valued, ok = v.skip()
		v.to.EndObject(valued, false)
	}
	v.to.Leave()
	return valued, ok
}

// skip reads a value that the visitor does not enter, and takes it for one, whatever it is.
func (v *visit) skip() (valued, ok bool) { return true, v.scan.skip() }

func (v *visit) value(element bool) (valued, ok bool) {
	switch c := v.scan.peek(); c {
	case '{':
		if v.to.Object() {
			valued, ok = v.members()
		} else {
			valued, ok = v.skip()
		}
		v.to.EndObject(valued, element)
		return valued, ok
	case '[':
		ok = v.scan.array(func() bool {
			has, ok := v.value(true)
			valued = valued || has
			return ok
		})
		return valued, ok
	default:
		kind, raw, ok := v.scan.scalar(c)
		if ok && kind != KindNull {
			v.to.Value(kind, raw)
			return true, true
		}
		return false, ok
	}
}

// DateText reports whether a text, the inside of a string of JSON, is a date with year, month and day, which Derive takes for one, and whether
// a field of dates with the default format takes it.
func DateText(raw []byte) (dated, taken bool) {
	dated = kindsOf(KindString, raw) == kindDate
	return dated, dated || bytes.IndexByte(raw, '\\') < 0 && isDate(KindString, raw)
}
