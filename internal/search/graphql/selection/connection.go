package selection

import (
	"tutti/internal/index"
	"tutti/internal/jsontext"
	"tutti/internal/search/graphql/output"
)

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
