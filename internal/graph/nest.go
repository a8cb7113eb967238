package graph

import (
	"tutti/internal/index"
	"tutti/internal/rawjson"
)

// nested writes the elements of a nested field. What is no array is the only element, and null is none.
func (w *answer) nested(one *want, doc []byte, v span) bool {
	base, fits := len(w.spans), true
	rawjson.Items(doc, v, func(item span) bool {
		if doc[item.Start] == 'n' {
			return true
		}
		fits = doc[item.Start] == '{'
		w.spans = append(w.spans, item)
		return fits
	})
	if !fits {
		w.spans = w.spans[:base]
		return w.failed(unfit(one.field, "an object"))
	}
	filled := w.nest(one.nest, doc, base, len(w.spans)-base)
	w.spans = w.spans[:base]
	return filled
}

// nest writes what stands around the n elements that are noted from base on.
func (w *answer) nest(what *nest, doc []byte, base, n int) bool {
	start := len(w.dst)
	w.dst = append(w.dst, '{')
	for i := range what.wants {
		one := &what.wants[i]
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(w.dst, one.head...)
		w.push(one.key)
		told, filled := w.told(), w.nestWant(what, one, doc, base, n)
		if !filled && one.field.Definition.Type.NonNull {
			if w.told() == told {
				w.fail(missing(one.field))
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

func (w *answer) nestWant(what *nest, one *nestWant, doc []byte, base, n int) bool {
	switch one.kind {
	case nestTypename:
		return w.text(one.field.ObjectDefinition.Name)
	case nestHits:
		return w.nest(one.hits, doc, base, n)
	case nestTotal:
		return w.int(int64(n))
	case nestEdges:
		if w.ahead != nil {
			return w.raw(w.ahead)
		}
		from, count := what.elements.of(n)
		return w.list(count, itemRequired(one.field), func(i int) bool {
			return w.edge(one.edge, doc, w.spans[base+from+i].Start, nil)
		})
	default:
		return w.null()
	}
}

// edge writes an edge. hit is the document's, nil for an element within one.
func (w *answer) edge(e *edge, doc []byte, at int, hit *index.Hit) bool {
	start := len(w.dst)
	w.dst = append(w.dst, '{')
	for i := range e.wants {
		one := &e.wants[i]
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(w.dst, one.head...)
		w.push(one.key)
		filled := false
		switch one.kind {
		case edgeTypename:
			filled = w.text(one.field.ObjectDefinition.Name)
		case edgeSearchAfter:
			filled = w.searchAfter(hit)
		case edgeNode:
			filled = w.node(one.shape, doc, at, hit)
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

// node writes a document, or an element within one, for which hit is nil.
func (w *answer) node(s *shape, doc []byte, at int, hit *index.Hit) bool {
	switch {
	case hit == nil:
		_, filled := w.shaped(s, doc, at, nil)
		return filled
	case hit.Read:
		return w.raw(hit.Source)
	default:
		return w.document(s, doc, at, hit)
	}
}

// searchAfter writes the place of a document in the order. Integers that JavaScript cannot hold are texts, so that a client
// returns them back as they were.
func (w *answer) searchAfter(hit *index.Hit) bool {
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
