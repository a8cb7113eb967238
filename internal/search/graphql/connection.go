package graphql

import (
	"tutti/internal/index"
	"tutti/internal/jsontext"
)

// nested writes the connection of nested elements. A value that is not an array is the only element; null is no element.
func (w *selectionWriter) nested(one *selectedField, doc []byte, v span) bool {
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
		return w.nullWithError(typeError(one.field, "an object"))
	}
	filled := w.connection(one.nested, doc, base, len(w.spans)-base)
	w.spans = w.spans[:base]
	return filled
}

// connection writes the connection of n elements, whose spans start at base.
func (w *selectionWriter) connection(what *nestedConnection, doc []byte, base, n int) bool {
	start := len(w.dst)
	w.dst = append(w.dst, '{')
	for i := range what.fields {
		one := &what.fields[i]
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(w.dst, one.encodedKey...)
		w.push(one.key)
		errorsBefore, filled := w.errorCount(), w.connectionField(what, one, doc, base, n)
		if !filled && one.field.Definition.Type.NonNull {
			if w.errorCount() == errorsBefore {
				w.addError(missingValueError(one.field))
			}
			w.pop()
			w.dst = w.dst[:start]
			return w.null()
		}
		w.pop()
	}
	w.dst = append(w.dst, '}')
	return true
}

func (w *selectionWriter) connectionField(what *nestedConnection, one *connectionField, doc []byte, base, n int) bool {
	switch one.kind {
	case connectionTypename:
		return w.text(one.field.ObjectDefinition.Name)
	case connectionHits:
		return w.connection(one.hits, doc, base, n)
	case connectionTotal:
		return w.int(int64(n))
	case connectionEdges:
		if w.pendingList != nil {
			return w.raw(w.pendingList)
		}
		from, count := what.elements.window(n)
		return w.list(count, itemRequired(one.field), func(i int) bool {
			return w.edge(one.edge, doc, w.spans[base+from+i].Start, nil)
		})
	default:
		return w.null()
	}
}

// edge writes an edge. hit is nil for a nested element.
func (w *selectionWriter) edge(e *edge, doc []byte, at int, hit *index.Hit) bool {
	start := len(w.dst)
	w.dst = append(w.dst, '{')
	for i := range e.fields {
		one := &e.fields[i]
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(w.dst, one.encodedKey...)
		w.push(one.key)
		filled := false
		switch one.kind {
		case edgeTypename:
			filled = w.text(one.field.ObjectDefinition.Name)
		case edgeSearchAfter:
			filled = w.searchAfter(hit)
		case edgeNode:
			filled = w.node(one.selection, doc, at, hit)
		}
		w.pop()
		if !filled && one.field.Definition.Type.NonNull {
			w.dst = w.dst[:start]
			return w.null()
		}
	}
	w.dst = append(w.dst, '}')
	return true
}

// node writes a document, or a nested element if hit is nil.
func (w *selectionWriter) node(s *selectionSet, doc []byte, at int, hit *index.Hit) bool {
	switch {
	case hit == nil:
		_, filled := w.selectedObject(s, doc, at, nil)
		return filled
	case hit.Read:
		return w.raw(hit.Source)
	default:
		return w.document(s, doc, at, hit)
	}
}

// searchAfter writes the sort values of a document. Integers that JavaScript cannot represent are strings, so that clients return
// them unchanged.
func (w *selectionWriter) searchAfter(hit *index.Hit) bool {
	if hit == nil || hit.Sort == nil {
		return w.null()
	}
	w.dst = append(w.dst, '[')
	for i, value := range hit.Sort {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if unsafeInteger(value) {
			w.dst = append(append(append(w.dst, '"'), value...), '"')
			continue
		}
		w.dst = append(w.dst, value...)
	}
	w.dst = append(w.dst, ']')
	return true
}

// nodes returns the selection sets of an edge's documents.
func (e *edge) nodes() []*selectionSet {
	var shapes []*selectionSet
	for i := range e.fields {
		if e.fields[i].kind == edgeNode {
			shapes = append(shapes, e.fields[i].selection)
		}
	}
	return shapes
}
