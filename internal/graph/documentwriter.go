package graph

import "tutti/internal/index"

// readChunk is how much room documents are written to at a time, at most.
const readChunk = 64 << 10

// documentWriter writes documents while the index reads them. What cannot be written so, as there is something to be said of it, is kept as
// it is and written with the rest of the answer.
type documentWriter struct {
	x         *execution
	selection *selectionSet
	// documents is how many there may be, usual how much room one of them took, the larger ones of late.
	documents, usual int
	w                responseWriter
	hit              index.Hit
}

// documentWriter returns what writes documents while the index reads them, nil where they are asked for in several shapes or in none.
func (x *execution) documentWriter(r *hitsResult, documents int) func(id string, data []byte, at int) ([]byte, int) {
	if len(r.selections) != 1 {
		return nil
	}
	one := &documentWriter{x: x, selection: r.selections[0], documents: documents}
	x.writers = append(x.writers, one)
	return one.document
}

// document writes the document at data[at], and returns where it ends; nil when it could not be written.
func (r *documentWriter) document(id string, data []byte, at int) ([]byte, int) {
	if r.x.bytesRead > maxAnswerBytes { // the answer is too large, as its lists will say
		return nil, at
	}
	w := &r.w
	// What is put in another order needs as much room once more.
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

// nodes returns the shapes that an edge's documents are written in.
func (e *edge) nodes() []*selectionSet {
	var shapes []*selectionSet
	for i := range e.fields {
		if e.fields[i].kind == edgeNode {
			shapes = append(shapes, e.fields[i].selection)
		}
	}
	return shapes
}
