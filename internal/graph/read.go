package graph

import "tutti/internal/index"

// readChunk is how much room documents are written to at a time, at most.
const readChunk = 64 << 10

// reader gives what writes documents while the index reads them, nil where they are asked for in several shapes or in none. What
// cannot be written so, as there is something to be said of it, is kept as it is and written with the rest of the answer.
func (x *execution) reader(r *found, documents int) func(id string, data []byte, at int) ([]byte, int) {
	if len(r.shapes) != 1 {
		return nil
	}
	shape, last := r.shapes[0], 0
	var w answer
	hit := &index.Hit{}
	return func(id string, data []byte, at int) ([]byte, int) {
		if x.read > maxAnswerBytes { // the answer is too large, as its lists will say
			return nil, at
		}
		if free, next := cap(w.dst)-len(w.dst), last+last/4; free <= next {
			w.dst = x.service.chunks.get(max(next, min(documents*max(last, 1<<9), readChunk)))
			x.taken = append(x.taken, w.dst)
		}
		start := len(w.dst)
		w.dotted, hit.ID = false, id
		end, filled := w.shaped(shape, data, at, hit)
		if !filled || w.dotted || w.told() > 0 {
			w.dst, w.faults, w.dropped = w.dst[:start], nil, 0
			return nil, at
		}
		last = len(w.dst) - start
		x.read += last
		return w.dst[start:len(w.dst):len(w.dst)], end
	}
}

// nodes gives the shapes that an edge's documents are written in.
func (e *edge) nodes() []*shape {
	var shapes []*shape
	for i := range e.wants {
		if e.wants[i].kind == edgeNode {
			shapes = append(shapes, e.wants[i].shape)
		}
	}
	return shapes
}
