package graph

import "tutti/internal/index"

// readChunk is how much room documents are written to at a time, at most.
const readChunk = 64 << 10

// reading writes documents while the index reads them. What cannot be written so, as there is something to be said of it, is kept as
// it is and written with the rest of the answer.
type reading struct {
	x     *execution
	shape *shape
	// documents is how many there may be, usual how much room one of them took, the larger ones of late.
	documents, usual int
	w                answer
	hit              index.Hit
}

// reader returns what writes documents while the index reads them, nil where they are asked for in several shapes or in none.
func (x *execution) reader(r *found, documents int) func(id string, data []byte, at int) ([]byte, int) {
	if len(r.shapes) != 1 {
		return nil
	}
	one := &reading{x: x, shape: r.shapes[0], documents: documents}
	x.readings = append(x.readings, one)
	return one.document
}

// document writes the document at data[at], and returns where it ends; nil when it could not be written.
func (r *reading) document(id string, data []byte, at int) ([]byte, int) {
	if r.x.read > maxAnswerBytes { // the answer is too large, as its lists will say
		return nil, at
	}
	w := &r.w
	// What is put in another order needs as much room once more.
	if next := 2*r.usual + 1<<8; cap(w.dst)-len(w.dst) <= next {
		w.dst = r.x.service.chunks.get(max(next, min(r.documents*max(r.usual, 1<<9), readChunk)))
		r.x.taken = append(r.x.taken, w.dst)
	}
	start := len(w.dst)
	w.dotted, r.hit.ID = false, id
	end, filled := w.shaped(r.shape, data, at, &r.hit)
	if !filled || w.dotted || w.told() > 0 {
		w.dst, w.faults, w.dropped = w.dst[:start], nil, 0
		return nil, at
	}
	length := len(w.dst) - start
	r.usual = max(length, r.usual-r.usual/8)
	r.x.read += length
	return w.dst[start:len(w.dst):len(w.dst)], end
}

// nodes returns the shapes that an edge's documents are written in.
func (e *edge) nodes() []*shape {
	var shapes []*shape
	for i := range e.wants {
		if e.wants[i].kind == edgeNode {
			shapes = append(shapes, e.wants[i].shape)
		}
	}
	return shapes
}
