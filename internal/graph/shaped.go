package graph

import (
	"bytes"
	"cmp"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
	"tutti/internal/rawjson"
)

// written is where the value of a field was written, for an object whose fields are put in their order at its end.
type written struct {
	start, end int
	// filled is set when it is not null, told when it is said why.
	filled, told bool
}

// writing is an object that is being written.
type writing struct {
	shape *shape
	// start is where it begins in the answer, base where its values are noted.
	start, base int
	// next is how many of its fields are written in their order from the first on, -1 once one was not.
	next int
}

// shaped writes the object that begins at doc[at], and returns where that ends. Its members are looked at once, in the order in
// which they stand, and written when they are met. hit is the document's, nil for objects within one.
func (w *answer) shaped(s *shape, doc []byte, at int, hit *index.Hit) (end int, filled bool) {
	o := writing{shape: s, start: len(w.dst), base: len(w.written)}
	for range s.wants {
		w.written = append(w.written, written{})
	}
	w.dst = append(w.dst, '{')
	end = w.members(&o, doc, at)
	if filled = w.ordered(&o); filled {
		w.dst = append(w.dst, '}')
	} else {
		filled = w.arrange(&o, hit)
	}
	w.written = w.written[:o.base]
	return end, filled
}

// ordered reports whether all fields were written in their order, and none is null that must not be.
func (w *answer) ordered(o *writing) bool {
	if o.next != len(o.shape.wants) {
		return false
	}
	for i := range o.shape.wants {
		if !w.written[o.base+i].filled && o.shape.wants[i].field.Definition.Type.NonNull {
			return false
		}
	}
	return true
}

// only writes the value of the one field that s wants of an object, without the object.
func (w *answer) only(s *shape, object []byte) bool {
	o := writing{shape: s, start: len(w.dst), base: len(w.written), next: -1}
	w.written = append(w.written, written{})
	w.members(&o, object, 0)
	at := w.written[o.base]
	w.written = w.written[:o.base]
	if at.end == at.start {
		return w.null()
	}
	return at.filled
}

// members writes the wanted values of the object at doc[at] behind each other, and returns where it ends. What is no object has no
// members.
func (w *answer) members(o *writing, doc []byte, at int) int {
	at = rawjson.Space(doc, at)
	if at >= len(doc) || doc[at] != '{' || len(o.shape.keys) == 0 {
		return rawjson.Value(doc, at)
	}
	usual := o.shape.names.Load()
	for i, nth := at+1, 0; ; nth++ {
		if i = rawjson.Space(doc, i); i >= len(doc) || doc[i] != '"' {
			return min(i+1, len(doc))
		}
		slot, value := usual.at(nth, doc, i)
		if value == 0 {
			if slot, value = w.name(o.shape, nth, doc, i); value == 0 {
				return len(doc)
			}
		}
		value = rawjson.Space(doc, value)
		var end int
		if slot >= 0 {
			end = w.member(o, o.shape.of[slot], doc, value)
		} else {
			end = rawjson.Value(doc, value)
		}
		if end == value {
			return len(doc)
		}
		if i = rawjson.Space(doc, end); i < len(doc) && doc[i] == ',' {
			i++
		}
	}
}

// name reads the name at doc[i], and returns its place among the keys, -1 for none, and where its value begins; 0 where there is no
// member.
func (w *answer) name(s *shape, nth int, doc []byte, i int) (slot, value int) {
	end, escaped := rawjson.String(doc, i)
	if end-1 <= i {
		return -1, 0
	}
	name := doc[i+1 : end-1]
	if value = rawjson.Space(doc, end); value >= len(doc) || doc[value] != ':' {
		return -1, 0
	}
	value++
	if escaped {
		name = []byte(decodedName(name))
	}
	slot = s.find(name)
	switch {
	case slot < 0 && s.dotted(name):
		w.dotted = true
	default:
		s.learn(nth, doc[i:value], slot)
	}
	return slot, value
}

// find returns the place of a member among the keys, -1 when it is none.
func (s *shape) find(name []byte) int {
	if len(name) > s.longest || s.lengths>>(len(name)%64)&1 == 0 {
		return -1
	}
	if s.slots != nil {
		if i, found := s.slots[string(name)]; found {
			return i
		}
		return -1
	}
	for i, key := range s.keys {
		if key == string(name) {
			return i
		}
	}
	return -1
}

// dotted reports whether a member stands for one of an object that is wanted: {"a.b":1} is the same as {"a":{"b":1}} to engines.
func (s *shape) dotted(name []byte) bool {
	name = name[:min(len(name), s.longest+1)]
	for i := bytes.IndexByte(name, '.'); i >= 0; {
		if s.find(name[:i]) >= 0 {
			return true
		}
		more := bytes.IndexByte(name[i+1:], '.')
		if more < 0 {
			return false
		}
		i += 1 + more
	}
	return false
}

// member writes the value at doc[at] for each of the fields that ask for it, and returns where it ends.
func (w *answer) member(o *writing, wants []int, doc []byte, at int) (end int) {
	if at >= len(doc) || doc[at] == 'n' {
		for _, i := range wants { // of a member that stands there twice, the last counts
			w.written[o.base+i] = written{}
		}
		o.next = -1
		return rawjson.Value(doc, at)
	}
	for _, i := range wants {
		one := &o.shape.wants[i]
		if o.next == i {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.dst = append(w.dst, one.head...)
			o.next++
		} else {
			o.next = -1
		}
		w.push(one.key)
		begun, told := len(w.dst), w.told()
		var filled bool
		end, filled = w.wanted(one, doc, at)
		w.written[o.base+i] = written{start: begun, end: len(w.dst), filled: filled, told: w.told() > told}
		w.pop()
	}
	return end
}

// arrange puts what was written in the order of the query. The object is null when a field is that must not be.
func (w *answer) arrange(o *writing, hit *index.Hit) bool {
	mark := len(w.dst)
	w.dst = append(w.dst, '{')
	for i := range o.shape.wants {
		one := &o.shape.wants[i]
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(w.dst, one.head...)
		at := w.written[o.base+i]
		switch {
		case one.kind == wantTypename:
			at.filled = w.text(one.field.ObjectDefinition.Name)
		case one.kind == wantID && hit != nil:
			at.filled = w.text(hit.ID)
		case at.end == at.start:
			w.null()
		default:
			w.dst = append(w.dst, w.dst[at.start:at.end]...)
		}
		if !at.filled && one.field.Definition.Type.NonNull {
			if !at.told {
				w.push(one.key)
				w.fail(missing(one.field))
				w.pop()
			}
			w.dst = w.dst[:o.start]
			return w.null()
		}
	}
	w.dst = append(w.dst, '}')
	w.dst = w.dst[:o.start+copy(w.dst[o.start:], w.dst[mark:])]
	return true
}

// wanted writes one field for the value at doc[at], which is not null, and returns where it ends.
func (w *answer) wanted(one *want, doc []byte, at int) (end int, filled bool) {
	if one.kind == wantPlain && !one.list && doc[at] == '{' {
		return w.shaped(one.shape, doc, at, nil)
	}
	if one.kind == wantNest && one.nest.list != nil && !w.counting {
		if end, clean := w.straight(one.nest, doc, at); clean {
			return end, true
		}
		w.counting = true // also what is below, so that nothing is tried again at each level
		defer func() { w.counting = false }()
	}
	v := span{Start: at, End: rawjson.Value(doc, at)}
	switch {
	case v.End == v.Start:
		return v.End, w.null()
	case one.kind == wantNest:
		return v.End, w.nested(one, doc, v)
	case one.list:
		return v.End, w.values(one, doc, v)
	case one.kind == wantScalar && one.scalar == scalarJSON:
		return v.End, w.raw(v.Of(doc))
	default:
		return v.End, w.single(one, doc, v)
	}
}

// single writes the first value that a field without list has in a document, and warns where it is not the only one.
func (w *answer) single(one *want, doc []byte, v span) bool {
	found, n := v, 1
	if doc[v.Start] == '[' {
		n = 0
		rawjson.Items(doc, v, func(item span) bool {
			if doc[item.Start] == 'n' {
				return true
			}
			if n++; n == 1 {
				found = item
			}
			return n < 2
		})
	}
	if n == 0 {
		return w.null()
	}
	if n > 1 {
		w.warn(severalValues(cmp.Or(one.name, one.field.Name)))
	}
	return w.value(one, doc, found)
}

// values writes the list of the values that a field has in a document; what is no list is the only one.
func (w *answer) values(one *want, doc []byte, v span) bool {
	if one.kind == wantScalar && one.scalar == scalarJSON && doc[v.Start] == '[' {
		return w.raw(v.Of(doc))
	}
	start, required := len(w.dst), itemRequired(one.field)
	w.dst = append(w.dst, '[')
	i, whole := 0, true
	rawjson.Items(doc, v, func(item span) bool {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.index(i)
		filled := false
		if doc[item.Start] == 'n' {
			w.null()
		} else {
			filled = w.value(one, doc, item)
		}
		w.pop()
		i++
		whole = filled || !required
		return whole
	})
	if !whole {
		w.dst = w.dst[:start]
		return w.null()
	}
	w.dst = append(w.dst, ']')
	return true
}

// value writes a value that is neither null nor an array.
func (w *answer) value(one *want, doc []byte, v span) bool {
	if one.kind == wantPlain {
		if doc[v.Start] != '{' {
			return w.failed(unfit(one.field, "an object"))
		}
		_, filled := w.shaped(one.shape, doc, v.Start, nil)
		return filled
	}
	start := len(w.dst)
	dst, ok := appendScalar(w.dst, one.scalar, v.Of(doc))
	w.dst = dst
	if !ok {
		w.dst = w.dst[:start]
		return w.failed(unfit(one.field, scalarWords(one.scalar)))
	}
	return true
}

// unfit is the fault of a document that has something else in a field than its type says.
func unfit(f *ast.Field, wanted string) *fault {
	return (&fault{message: "a document has a value in the field " + f.Name + " that is not " + wanted, code: codeInternal}).at(f.Position)
}
