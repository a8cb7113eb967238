package selection

import (
	"bytes"
	"cmp"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
	"tutti/internal/jsontext"
	"tutti/internal/search/graphql/output"
)

// span is the position of a value in a document.
type span = jsontext.Span

// Writer writes the selected fields of documents.
type Writer struct {
	*output.Writer

	// spans is scratch space for the nested elements, written for the members of objects.
	spans   []span
	written []writtenValue
	// pendingList is the encoded list of nested elements, written before the connection around it; nil for none.
	pendingList []byte
	// counting is set while nested elements are counted before they are written.
	counting bool
	// Dotted is set when a document has member names that are dotted paths.
	Dotted bool
}

// maxScratch limits the scratch space that is kept for the next response, in elements.
const maxScratch = 1 << 10

// Reset discards everything written, and large scratch space.
func (w *Writer) Reset() {
	w.Clear()
	if cap(w.spans) > maxScratch {
		w.spans = nil
	}
	if cap(w.written) > maxScratch {
		w.written = nil
	}
}

// writtenValue is the position of a field's value in the response, for objects whose fields are reordered at the end.
type writtenValue struct {
	start, end int
	// filled is set if the value is not null, reported if there is an error for it.
	filled, reported bool
}

// objectWriter is the state of an object that is being written.
type objectWriter struct {
	selection *Set
	// start is where the object begins in the response, base the index of its first value in written.
	start, base int
	// next is the number of fields written in order so far, -1 once one was out of order.
	next int
}

// Object writes the object that starts at doc[at] and returns where it ends. It visits each member once, in document
// order, and writes it immediately. hit is nil for objects within a document.
func (w *Writer) Object(s *Set, doc []byte, at int, hit *index.Hit) (end int, filled bool) {
	o := objectWriter{selection: s, start: len(w.Buf), base: len(w.written)}
	for range s.fields {
		w.written = append(w.written, writtenValue{})
	}
	w.Buf = append(w.Buf, '{')
	end = w.members(&o, doc, at)
	if filled = w.ordered(&o); filled {
		w.Buf = append(w.Buf, '}')
	} else {
		filled = w.reorder(&o, hit)
	}
	w.written = w.written[:o.base]
	return end, filled
}

// ordered reports whether all fields were written in order, and no required one is null.
func (w *Writer) ordered(o *objectWriter) bool {
	if o.next != len(o.selection.fields) {
		return false
	}
	for i := range o.selection.fields {
		if !w.written[o.base+i].filled && o.selection.fields[i].field.Definition.Type.NonNull {
			return false
		}
	}
	return true
}

// OnlyField writes the value of the only field of s, without the object around it.
func (w *Writer) OnlyField(s *Set, object []byte) bool {
	o := objectWriter{selection: s, start: len(w.Buf), base: len(w.written), next: -1}
	w.written = append(w.written, writtenValue{})
	w.members(&o, object, 0)
	at := w.written[o.base]
	w.written = w.written[:o.base]
	if at.end == at.start {
		return w.Null()
	}
	return at.filled
}

// members writes the selected values of the object at doc[at] one after the other and returns where the object ends. A value that
// is not an object has no members.
func (w *Writer) members(o *objectWriter, doc []byte, at int) int {
	at = jsontext.Space(doc, at)
	if at >= len(doc) || doc[at] != '{' || len(o.selection.keys) == 0 {
		return jsontext.Value(doc, at)
	}
	usual := o.selection.names.Load()
	for i, nth := at+1, 0; ; nth++ {
		if i = jsontext.Space(doc, i); i >= len(doc) || doc[i] != '"' {
			return min(i+1, len(doc))
		}
		slot, value := usual.at(nth, doc, i)
		if value == 0 {
			if slot, value = w.memberName(o.selection, nth, doc, i); value == 0 {
				return len(doc)
			}
		}
		value = jsontext.Space(doc, value)
		var end int
		if slot >= 0 {
			end = w.member(o, o.selection.fieldsOf[slot], doc, value)
		} else {
			end = jsontext.Value(doc, value)
		}
		if end == value {
			return len(doc)
		}
		if i = jsontext.Space(doc, end); i < len(doc) && doc[i] == ',' {
			i++
		}
	}
}

// memberName reads the name at doc[i]. It returns its key index, -1 for none, and the offset of its value, 0 if there is no
// member.
func (w *Writer) memberName(s *Set, nth int, doc []byte, i int) (slot, value int) {
	end, escaped := jsontext.String(doc, i)
	if end-1 <= i {
		return -1, 0
	}
	name := doc[i+1 : end-1]
	if value = jsontext.Space(doc, end); value >= len(doc) || doc[value] != ':' {
		return -1, 0
	}
	value++
	if escaped {
		name = jsontext.AppendUnescaped(nil, name)
	}
	slot = s.find(name)
	switch {
	case slot < 0 && s.dotted(name):
		w.Dotted = true
	default:
		s.learn(nth, doc[i:value], slot)
	}
	return slot, value
}

// find returns the index of a key, -1 if it is not selected.
func (s *Set) find(name []byte) int {
	if len(name) > s.longest || s.lengthBits>>(len(name)%64)&1 == 0 {
		return -1
	}
	if s.keyIndex != nil {
		if i, found := s.keyIndex[string(name)]; found {
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

// dotted reports whether a name is a dotted path below a selected key: to engines, {"a.b":1} is the same as {"a":{"b":1}}.
func (s *Set) dotted(name []byte) bool {
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

// member writes the value at doc[at] for each field that selects it, and returns where it ends.
func (w *Writer) member(o *objectWriter, fields []int, doc []byte, at int) (end int) {
	if at >= len(doc) || doc[at] == 'n' {
		for _, i := range fields { // of duplicate members the last one counts
			w.written[o.base+i] = writtenValue{}
		}
		o.next = -1
		return jsontext.Value(doc, at)
	}
	for _, i := range fields {
		one := &o.selection.fields[i]
		if o.next == i {
			if i > 0 {
				w.Buf = append(w.Buf, ',')
			}
			w.Buf = append(w.Buf, one.encodedKey...)
			o.next++
		} else {
			o.next = -1
		}
		w.Push(one.key)
		begun, errorsBefore := len(w.Buf), w.ErrorCount()
		var filled bool
		end, filled = w.selectedField(one, doc, at)
		w.written[o.base+i] = writtenValue{start: begun, end: len(w.Buf), filled: filled, reported: w.ErrorCount() > errorsBefore}
		w.Pop()
	}
	return end
}

// reorder writes the object again in the order of the query, or null if a required field is null.
func (w *Writer) reorder(o *objectWriter, hit *index.Hit) bool {
	mark := len(w.Buf)
	w.Buf = append(w.Buf, '{')
	for i := range o.selection.fields {
		one := &o.selection.fields[i]
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = append(w.Buf, one.encodedKey...)
		at := w.written[o.base+i]
		switch {
		case one.kind == fieldTypename:
			at.filled = w.Text(one.field.ObjectDefinition.Name)
		case one.kind == fieldID && hit != nil:
			at.filled = w.Text(hit.ID)
		case at.end == at.start:
			w.Null()
		default:
			w.Buf = append(w.Buf, w.Buf[at.start:at.end]...)
		}
		if !at.filled && one.field.Definition.Type.NonNull {
			if !at.reported {
				w.Push(one.key)
				w.AddError(output.MissingValue(one.field))
				w.Pop()
			}
			w.Buf = w.Buf[:o.start]
			return w.Null()
		}
	}
	w.Buf = append(w.Buf, '}')
	w.Buf = w.Buf[:o.start+copy(w.Buf[o.start:], w.Buf[mark:])]
	return true
}

// selectedField writes one field for the value at doc[at], which is not null, and returns where it ends.
func (w *Writer) selectedField(one *field, doc []byte, at int) (end int, filled bool) {
	if one.kind == fieldObject && !one.list && doc[at] == '{' {
		return w.Object(one.selection, doc, at, nil)
	}
	if one.kind == fieldNested && one.nested.list != nil && !w.counting {
		if end, clean := w.streamNested(one.nested, doc, at); clean {
			return end, true
		}
		w.counting = true // also for the levels below, so that nothing is tried again at each of them
		defer func() { w.counting = false }()
	}
	v := span{Start: at, End: jsontext.Value(doc, at)}
	switch {
	case v.End == v.Start:
		return v.End, w.Null()
	case one.kind == fieldNested:
		return v.End, w.nested(one, doc, v)
	case one.list:
		return v.End, w.values(one, doc, v)
	case one.kind == fieldScalar && one.scalar == scalarJSON:
		return v.End, w.Raw(v.Of(doc))
	default:
		return v.End, w.single(one, doc, v)
	}
}

// single writes the first value of a field that is not a list, with a warning if there are more.
func (w *Writer) single(one *field, doc []byte, v span) bool {
	found, n := v, 1
	if doc[v.Start] == '[' {
		n = 0
		jsontext.Items(doc, v, func(item span) bool {
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
		return w.Null()
	}
	if n > 1 {
		w.Warn(output.SeveralValues(cmp.Or(one.name, one.field.Name)))
	}
	return w.value(one, doc, found)
}

// values writes the list of a field's values; a value that is not a list is its only item.
func (w *Writer) values(one *field, doc []byte, v span) bool {
	if one.kind == fieldScalar && one.scalar == scalarJSON && doc[v.Start] == '[' {
		return w.Raw(v.Of(doc))
	}
	start, required := len(w.Buf), output.ItemRequired(one.field)
	w.Buf = append(w.Buf, '[')
	i, whole := 0, true
	jsontext.Items(doc, v, func(item span) bool {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.PushIndex(i)
		filled := false
		if doc[item.Start] == 'n' {
			w.Null()
		} else {
			filled = w.value(one, doc, item)
		}
		w.Pop()
		i++
		whole = filled || !required
		return whole
	})
	if !whole {
		w.Buf = w.Buf[:start]
		return w.Null()
	}
	w.Buf = append(w.Buf, ']')
	return true
}

// value writes a value that is neither null nor an array.
func (w *Writer) value(one *field, doc []byte, v span) bool {
	if one.kind == fieldObject {
		if doc[v.Start] != '{' {
			return w.NullWithError(typeError(one.field, "an object"))
		}
		_, filled := w.Object(one.selection, doc, v.Start, nil)
		return filled
	}
	start := len(w.Buf)
	dst, ok := appendScalar(w.Buf, one.scalar, v.Of(doc))
	w.Buf = dst
	if !ok {
		w.Buf = w.Buf[:start]
		return w.NullWithError(typeError(one.field, scalarWords(one.scalar)))
	}
	return true
}

// typeError returns the error of a document whose value does not have the type of its field.
func typeError(f *ast.Field, wanted string) *output.Error {
	return (&output.Error{Message: "a document has a value in the field " + f.Name + " that is not " + wanted, Code: output.CodeInternal}).At(f.Position)
}
