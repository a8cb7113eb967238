package graphql

import "tutti/internal/index"

// readChunk is the maximum size of a new buffer for documents, in bytes.
const readChunk = 64 << 10

// documentWriter writes documents while the index reads them. A document that causes an error or a warning is kept as it is and
// written with the rest of the response.
type documentWriter struct {
	x         *execution
	selection *selectionSet
	// documents is the maximum number of documents; usual estimates the size of one of them, biased to the recent larger ones.
	documents, usual int
	w                responseWriter
	hit              index.Hit
}

// documentWriter returns a function that writes documents while the index reads them; nil unless there is exactly one selection
// set.
func (x *execution) documentWriter(r *hitsResult, documents int) func(id string, data []byte, at int) ([]byte, int) {
	if len(r.selections) != 1 {
		return nil
	}
	one := &documentWriter{x: x, selection: r.selections[0], documents: documents}
	x.writers = append(x.writers, one)
	return one.document
}

// document writes the document at data[at] and returns where it ends; nil if it could not be written.
func (r *documentWriter) document(id string, data []byte, at int) ([]byte, int) {
	if r.x.bytesRead > maxAnswerBytes { // the response is too large, which its lists report
		return nil, at
	}
	w := &r.w
	// Reordering needs the same space again.
	if next := 2*r.usual + 1<<8; cap(w.dst)-len(w.dst) <= next {
		w.dst = r.x.service.chunks.get(max(next, min(r.documents*max(r.usual, 1<<9), readChunk)))
		r.x.chunks = append(r.x.chunks, w.dst)
	}
	start := len(w.dst)
	w.dotted, r.hit.ID = false, id
	end, filled := w.selectedObject(r.selection, data, at, &r.hit)
	if !filled || w.dotted || w.errorCount() > 0 {
		w.dst, w.errors, w.dropped = w.dst[:start], nil, 0
		return nil, at
	}
	length := len(w.dst) - start
	r.usual = max(length, r.usual-r.usual/8)
	r.x.bytesRead += length
	return w.dst[start:len(w.dst):len(w.dst)], end
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
