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

// nested writes the connection of nested elements. A value that is not an array is the only element; null is no element.
func (w *Writer) nested(one *field, doc []byte, v span) bool {
	base, fits := len(w.spans), true
	jsontext.Items(doc, v, func(item span) bool {
		if doc[item.Start] == 'n' {
			return true
		}
		fits = doc[item.Start] == '{'
		w.spans = append(w.spans, item)
		return fits
	})
	if !fits {
		w.spans = w.spans[:base]
		return w.NullWithError(typeError(one.field, "an object"))
	}
	filled := w.connection(one.nested, doc, base, len(w.spans)-base)
	w.spans = w.spans[:base]
	return filled
}

// connection writes the connection of n elements, whose spans start at base.
func (w *Writer) connection(what *nestedConnection, doc []byte, base, n int) bool {
	start := len(w.Buf)
	w.Buf = append(w.Buf, '{')
	for i := range what.fields {
		one := &what.fields[i]
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = append(w.Buf, one.encodedKey...)
		w.Push(one.key)
		errorsBefore, filled := w.ErrorCount(), w.connectionField(what, one, doc, base, n)
		if !filled && one.field.Definition.Type.NonNull {
			if w.ErrorCount() == errorsBefore {
				w.AddError(output.MissingValue(one.field))
			}
			w.Pop()
			w.Buf = w.Buf[:start]
			return w.Null()
		}
		w.Pop()
	}
	w.Buf = append(w.Buf, '}')
	return true
}

func (w *Writer) connectionField(what *nestedConnection, one *connectionField, doc []byte, base, n int) bool {
	switch one.kind {
	case connectionTypename:
		return w.Text(one.field.ObjectDefinition.Name)
	case connectionHits:
		return w.connection(one.hits, doc, base, n)
	case connectionTotal:
		return w.Int(int64(n))
	case connectionEdges:
		if w.pendingList != nil {
			return w.Raw(w.pendingList)
		}
		from, count := what.elements.window(n)
		return w.List(count, output.ItemRequired(one.field), func(i int) bool {
			return w.Edge(one.edge, doc, w.spans[base+from+i].Start, nil)
		})
	default:
		return w.Null()
	}
}

// Edge writes an edge. hit is nil for a nested element.
func (w *Writer) Edge(e *Edge, doc []byte, at int, hit *index.Hit) bool {
	start := len(w.Buf)
	w.Buf = append(w.Buf, '{')
	for i := range e.fields {
		one := &e.fields[i]
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = append(w.Buf, one.encodedKey...)
		w.Push(one.key)
		filled := false
		switch one.kind {
		case edgeTypename:
			filled = w.Text(one.field.ObjectDefinition.Name)
		case edgeSearchAfter:
			filled = w.searchAfter(hit)
		case edgeNode:
			filled = w.node(one.selection, doc, at, hit)
		}
		w.Pop()
		if !filled && one.field.Definition.Type.NonNull {
			w.Buf = w.Buf[:start]
			return w.Null()
		}
	}
	w.Buf = append(w.Buf, '}')
	return true
}

// node writes a document, or a nested element if hit is nil.
func (w *Writer) node(s *Set, doc []byte, at int, hit *index.Hit) bool {
	switch {
	case hit == nil:
		_, filled := w.Object(s, doc, at, nil)
		return filled
	case hit.Read:
		return w.Raw(hit.Source)
	default:
		return w.Document(s, doc, at, hit)
	}
}

// searchAfter writes the sort values of a document. Integers that JavaScript cannot represent are strings, so that clients return
// them unchanged.
func (w *Writer) searchAfter(hit *index.Hit) bool {
	if hit == nil || hit.Sort == nil {
		return w.Null()
	}
	w.Buf = append(w.Buf, '[')
	for i, value := range hit.Sort {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		if output.UnsafeInteger(value) {
			w.Buf = append(append(append(w.Buf, '"'), value...), '"')
			continue
		}
		w.Buf = append(w.Buf, value...)
	}
	w.Buf = append(w.Buf, ']')
	return true
}

// Nodes returns the selection sets of an edge's documents.
func (e *Edge) Nodes() []*Set {
	var shapes []*Set
	for i := range e.fields {
		if e.fields[i].kind == edgeNode {
			shapes = append(shapes, e.fields[i].selection)
		}
	}
	return shapes
}

// elementList is the list of nested elements in a selection that has it exactly once: {hits{edges{node{…}}}}.
type elementList struct {
	hits, edges *connectionField
	node        *edgeField
}

// detectList sets n.list if the selection has the form of an elementList, and returns n.
func (n *nestedConnection) detectList() *nestedConnection {
	hits := only(n.fields, func(w *connectionField) bool { return w.kind == connectionHits })
	if hits == nil || hits.hits.elements != allElements() {
		return n
	}
	edges := only(hits.hits.fields, func(w *connectionField) bool { return w.kind == connectionEdges })
	if edges == nil || len(edges.edge.fields) != 1 || edges.edge.fields[0].kind != edgeNode {
		return n
	}
	n.list = &elementList{hits, edges, &edges.edge.fields[0]}
	return n
}

// only returns the only field for which is returns true, nil if there are none or several.
func only(wants []connectionField, is func(w *connectionField) bool) *connectionField {
	var found *connectionField
	for i := range wants {
		if !is(&wants[i]) {
			continue
		}
		if found != nil {
			return nil
		}
		found = &wants[i]
	}
	return found
}

// streamNested writes the elements at doc[at] in one pass and returns where they end. If there would be an error, it writes
// nothing and returns false.
func (w *Writer) streamNested(what *nestedConnection, doc []byte, at int) (end int, clean bool) {
	start, errorsBefore := w.Mark(), w.ErrorCount()
	end, n := w.streamList(what.list, doc, at)
	clean = n >= 0 && len(w.Buf) <= output.MaxBytes
	if clean {
		from, to := start.Bytes, len(w.Buf)
		w.pendingList = w.Buf[from:to:to]
		clean = w.connection(what, doc, 0, n) && w.ErrorCount() == errorsBefore
		w.pendingList = nil
		w.Buf = w.Buf[:from+copy(w.Buf[from:], w.Buf[to:])]
	}
	if !clean {
		w.Rollback(start)
		return at, false
	}
	return end, true
}

// streamList writes the list of elements and returns where it ends and their number, -1 if an element is not an object.
func (w *Writer) streamList(list *elementList, doc []byte, at int) (end, n int) {
	w.Buf = append(w.Buf, '[')
	if doc[at] == '{' {
		end, filled := w.streamElement(list, doc, at)
		if !filled {
			return at, -1
		}
		w.Buf = append(w.Buf, ']')
		return end, 1
	}
	if doc[at] != '[' {
		return at, -1
	}
	for i := at + 1; ; i++ {
		if i = jsontext.Space(doc, i); i >= len(doc) {
			return at, -1
		}
		end = i
		switch doc[i] {
		case '{':
			if n > 0 {
				w.Buf = append(w.Buf, ',')
			}
			var filled bool
			if end, filled = w.streamElement(list, doc, i); !filled {
				return at, -1
			}
			n++
		case 'n': // null is no element
			end = jsontext.Value(doc, i)
		case ']':
		default:
			return at, -1
		}
		if i = jsontext.Space(doc, end); i < len(doc) && doc[i] == ',' {
			continue
		}
		if i >= len(doc) || doc[i] != ']' {
			return at, -1
		}
		w.Buf = append(w.Buf, ']')
		return i + 1, n
	}
}

// streamElement writes the edge of the element at doc[at].
func (w *Writer) streamElement(list *elementList, doc []byte, at int) (end int, filled bool) {
	w.Buf = append(append(w.Buf, '{'), list.node.encodedKey...)
	end, filled = w.Object(list.node.selection, doc, at, nil)
	w.Buf = append(w.Buf, '}')
	return end, filled
}
