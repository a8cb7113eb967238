package selection

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/base/jsontext"
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
)

// span is the position of a value in a document.
type span = jsontext.Span

// Writer writes the selected fields of documents.
type Writer struct {
	*output.Writer

	// written is scratch space for the members of objects.
	written []writtenValue
	// Dotted is set when a document has member names that are dotted paths.
	Dotted bool
}

// maxScratch limits the scratch space that is kept for the next response, in elements.
const maxScratch = 1 << 10

// Reset discards everything written, and large scratch space.
func (w *Writer) Reset() {
	w.Clear()
	if cap(w.written) > maxScratch {
		w.written = nil
	}
}

// writtenValue is the position of a field's value in the response, for objects whose fields are reordered at the end.
type writtenValue struct{ start, end int }

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
func (w *Writer) Object(s *Set, doc []byte, at int, hit *index.Hit) (end int) {
	o := objectWriter{selection: s, start: len(w.Buf), base: len(w.written)}
	for range s.fields {
		w.written = append(w.written, writtenValue{})
	}
	w.Buf = append(w.Buf, '{')
	end = w.members(&o, doc, at)
	if o.next == len(s.fields) {
		w.Buf = append(w.Buf, '}')
	} else {
		w.reorder(&o, hit)
	}
	w.written = w.written[:o.base]
	return end
}

// OnlyField writes the value of the only field of s, without the object around it.
func (w *Writer) OnlyField(s *Set, object []byte) {
	o := objectWriter{selection: s, start: len(w.Buf), base: len(w.written), next: -1}
	w.written = append(w.written, writtenValue{})
	w.members(&o, object, 0)
	at := w.written[o.base]
	w.written = w.written[:o.base]
	if at.end == at.start {
		w.Null()
	}
}

// members writes the selected values of the object at doc[at] one after the other and returns where the object ends. A value that
// is not an object has no members.
func (w *Writer) members(o *objectWriter, doc []byte, at int) int {
	at = jsontext.Space(doc, at)
	if at >= len(doc) || doc[at] != '{' || len(o.selection.keys) == 0 {
		return jsontext.Value(doc, at)
	}
	expected := o.selection.names.Load()
	for i, nth := at+1, 0; ; nth++ {
		if i = jsontext.Space(doc, i); i >= len(doc) || doc[i] != '"' {
			return min(i+1, len(doc))
		}
		keyIndex, value := expected.at(nth, doc, i)
		if value == 0 {
			if keyIndex, value = w.memberName(o.selection, nth, doc, i); value == 0 {
				return len(doc)
			}
		}
		value = jsontext.Space(doc, value)
		var end int
		if keyIndex >= 0 {
			end = w.member(o, o.selection.fieldsOf[keyIndex], doc, value)
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
func (w *Writer) memberName(s *Set, nth int, doc []byte, i int) (keyIndex, value int) {
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
	keyIndex = s.find(name)
	switch {
	case keyIndex < 0 && s.dotted(name):
		w.Dotted = true
	default:
		s.learn(nth, doc[i:value], keyIndex)
	}
	return keyIndex, value
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
		begun := len(w.Buf)
		end = w.selectedField(one, doc, at)
		w.written[o.base+i] = writtenValue{start: begun, end: len(w.Buf)}
		w.Pop()
	}
	return end
}

// reorder writes the object again in the order of the query.
func (w *Writer) reorder(o *objectWriter, hit *index.Hit) {
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
			w.Text(one.field.ObjectDefinition.Name)
		case one.kind == fieldID && hit != nil:
			w.Text(hit.ID)
		case at.end == at.start:
			w.Null()
		default:
			w.Buf = append(w.Buf, w.Buf[at.start:at.end]...)
		}
	}
	w.Buf = append(w.Buf, '}')
	w.Buf = w.Buf[:o.start+copy(w.Buf[o.start:], w.Buf[mark:])]
}

// selectedField writes one field for the value at doc[at], which is not null, and returns where it ends.
func (w *Writer) selectedField(one *field, doc []byte, at int) (end int) {
	switch {
	case one.kind == fieldObject && !one.list && doc[at] == '{':
		return w.Object(one.selection, doc, at, nil)
	case one.kind == fieldNested:
		return w.nested(one, doc, at)
	}
	v := span{Start: at, End: jsontext.Value(doc, at)}
	switch {
	case v.End == v.Start:
		w.Null()
	case one.list:
		w.values(one, doc, v)
	case one.kind == fieldScalar && one.scalar == scalarJSON:
		w.Raw(v.Of(doc))
	default:
		w.single(one, doc, v)
	}
	return v.End
}

// single writes the first value of a field that is not a list, with a warning if there are more.
func (w *Writer) single(one *field, doc []byte, v span) {
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
		w.Null()
		return
	}
	if n > 1 {
		w.Warn(output.SeveralValues(cmp.Or(one.name, one.field.Name)))
	}
	w.value(one, doc, found)
}

// values writes the list of a field's values; a value that is not a list is its only item.
func (w *Writer) values(one *field, doc []byte, v span) {
	if one.kind == fieldScalar && one.scalar == scalarJSON && doc[v.Start] == '[' {
		w.Raw(v.Of(doc))
		return
	}
	w.Buf = append(w.Buf, '[')
	i := 0
	jsontext.Items(doc, v, func(item span) bool {
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.PushIndex(i)
		if doc[item.Start] == 'n' {
			w.Null()
		} else {
			w.value(one, doc, item)
		}
		w.Pop()
		i++
		return true
	})
	w.Buf = append(w.Buf, ']')
}

// value writes a value that is neither null nor an array.
func (w *Writer) value(one *field, doc []byte, v span) {
	if one.kind == fieldObject {
		if doc[v.Start] != '{' {
			w.NullWithError(typeError(one.field, "an object"))
			return
		}
		w.Object(one.selection, doc, v.Start, nil)
		return
	}
	start := len(w.Buf)
	dst, ok := appendScalar(w.Buf, one.scalar, v.Of(doc))
	w.Buf = dst
	if !ok {
		w.Buf = w.Buf[:start]
		w.NullWithError(typeError(one.field, scalarWords(one.scalar)))
	}
}

// typeError returns the error of a document whose value does not have the type of its field.
func typeError(f *ast.Field, wanted string) *output.Error {
	return (&output.Error{Message: "a document has a value in the field " + f.Name + " that is not " + wanted, Code: output.CodeInternal}).At(f.Position)
}

// nestedElements are the elements of a nested field of one document.
type nestedElements struct {
	// doc[at] is the value of the field, end is where it ends: 0 before it was read, -1 if an element is not an object.
	doc     []byte
	at, end int
	// count is the number of elements once the value was read.
	count int
}

// walk calls element with the offset of each element; element returns the offset of its end. A value that is not an array is the only
// element; null is none.
func (e *nestedElements) walk(element func(at int) (end int)) {
	e.count = 0
	e.end = e.walkValue(e.at, element)
}

func (e *nestedElements) walkValue(at int, element func(at int) (end int)) (end int) {
	switch e.doc[at] {
	case '{':
		e.count++
		return element(at)
	case 'n':
		return jsontext.Value(e.doc, at)
	case '[':
	default:
		return -1
	}
	for i := at + 1; ; i++ {
		if i = jsontext.Space(e.doc, i); i >= len(e.doc) {
			return -1
		}
		if e.doc[i] == ']' {
			return i + 1
		}
		if end = e.walkValue(i, element); end <= i {
			return -1
		}
		if i = jsontext.Space(e.doc, end); i >= len(e.doc) || e.doc[i] != ',' && e.doc[i] != ']' {
			return -1
		}
		if e.doc[i] == ']' {
			return i + 1
		}
	}
}

// skip reads the elements without writing them.
func (e *nestedElements) skip() {
	e.walk(func(at int) int { return jsontext.Value(e.doc, at) })
}

// nested writes the connection of the nested elements at doc[at] and returns where they end.
func (w *Writer) nested(one *field, doc []byte, at int) (end int) {
	start, e := w.Mark(), nestedElements{doc: doc, at: at}
	w.connection(one.nested, &e)
	if e.end == 0 {
		e.skip()
	}
	if e.end < 0 {
		w.Rollback(start)
		w.NullWithError(typeError(one.field, "an object"))
		return jsontext.Value(doc, at)
	}
	return e.end
}

// connection writes the connection of nested elements, or the value of its field hits.
func (w *Writer) connection(c *nestedConnection, e *nestedElements) {
	w.Buf = append(w.Buf, '{')
	for i := range c.fields {
		one := &c.fields[i]
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = append(w.Buf, one.encodedKey...)
		w.Push(one.key)
		switch one.kind {
		case connectionTypename:
			w.Text(one.field.ObjectDefinition.Name)
		case connectionHits:
			w.connection(one.hits, e)
		case connectionTotal:
			if e.end == 0 {
				e.skip()
			}
			w.Int(int64(e.count))
		case connectionEdges:
			w.elements(one.edge, c.elements, e)
		default:
			w.Null()
		}
		w.Pop()
	}
	w.Buf = append(w.Buf, '}')
}

// elements writes the list of the selected elements.
func (w *Writer) elements(edge *Edge, selected elements, e *nestedElements) {
	start, n := len(w.Buf), 0
	tooLarge := false
	w.Buf = append(w.Buf, '[')
	e.walk(func(at int) int {
		i := n - selected.offset
		n++
		if i < 0 || selected.limit >= 0 && i >= selected.limit || tooLarge {
			return jsontext.Value(e.doc, at)
		}
		if tooLarge = !w.NextItem(start, i); tooLarge {
			return jsontext.Value(e.doc, at)
		}
		end := w.Edge(edge, e.doc, at, nil)
		w.Pop()
		return end
	})
	if !tooLarge {
		w.Buf = append(w.Buf, ']')
	}
}

// Edge writes the edge of the document or of the nested element at doc[at]. For a nested element hit is nil, and Edge returns the offset
// of the element's end.
func (w *Writer) Edge(e *Edge, doc []byte, at int, hit *index.Hit) (end int) {
	w.Buf = append(w.Buf, '{')
	for i := range e.fields {
		one := &e.fields[i]
		if i > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.Buf = append(w.Buf, one.encodedKey...)
		w.Push(one.key)
		switch one.kind {
		case edgeTypename:
			w.Text(one.field.ObjectDefinition.Name)
		case edgeSearchAfter:
			w.searchAfter(hit)
		case edgeNode:
			switch {
			case hit == nil:
				end = w.Object(one.selection, doc, at, nil)
			case hit.Read:
				w.Raw(hit.Source)
			default:
				w.Document(one.selection, doc, at, hit)
			}
		}
		w.Pop()
	}
	w.Buf = append(w.Buf, '}')
	if hit == nil && end == 0 {
		return jsontext.Value(doc, at)
	}
	return end
}

// searchAfter writes the sort values of a document. Integers that JavaScript cannot represent are strings, so that clients return
// them unchanged.
func (w *Writer) searchAfter(hit *index.Hit) {
	if hit == nil || hit.Sort == nil {
		w.Null()
		return
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
}

// Segments returns the names of a dotted path without those of its prefix.
func Segments(path string, prefix []string) []string {
	return strings.Split(path, ".")[len(prefix):]
}

// OffsetOf returns the offset of the value at a path of names, len(doc) if there is none.
func OffsetOf(doc []byte, path []string) int {
	at := jsontext.Space(doc, 0)
	for _, name := range path {
		next := len(doc)
		jsontext.Members(doc, at, func(found []byte, escaped bool, v span) bool {
			if string(found) == name || escaped && jsontext.Unescape(found) == name {
				next = v.Start
			}
			return true
		})
		at = next
	}
	return at
}

// NodeSelections returns the selection sets of an edge's documents.
func (e *Edge) NodeSelections() []*Set {
	var sets []*Set
	for i := range e.fields {
		if e.fields[i].kind == edgeNode {
			sets = append(sets, e.fields[i].selection)
		}
	}
	return sets
}
