package selection

import (
	"tutti/internal/jsontext"
	"tutti/internal/search/graphql/output"
)

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
