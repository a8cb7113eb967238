package graph

import "tutti/internal/rawjson"

// nestList is where the list of nested elements stands in what is asked of them, if it stands there once: {hits{edges{node{…}}}}.
type nestList struct {
	hits, edges *nestWant
	node        *edgeWant
}

// straightened returns n with its list, when it has one.
func (n *nest) straightened() *nest {
	hits := only(n.wants, func(w *nestWant) bool { return w.kind == nestHits })
	if hits == nil || hits.hits.elements != allElements() {
		return n
	}
	edges := only(hits.hits.wants, func(w *nestWant) bool { return w.kind == nestEdges })
	if edges == nil || len(edges.edge.wants) != 1 || edges.edge.wants[0].kind != edgeNode {
		return n
	}
	n.list = &nestList{hits, edges, &edges.edge.wants[0]}
	return n
}

// only returns the one that is so, nil when there is none or several.
func only(wants []nestWant, is func(w *nestWant) bool) *nestWant {
	var found *nestWant
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

// straight writes the elements at doc[at] as they come, looking at each once, and returns where they end. What there is something
// to be said of is not clean, and nothing is written of it.
func (w *answer) straight(what *nest, doc []byte, at int) (end int, clean bool) {
	start, told, dropped := len(w.dst), len(w.faults), w.dropped
	end, n := w.listed(what.list, doc, at)
	clean = n >= 0 && len(w.dst) <= maxAnswerBytes
	if clean {
		mark := len(w.dst)
		w.ahead = w.dst[start:mark:mark]
		clean = w.nest(what, doc, 0, n) && w.told() == told+dropped
		w.ahead = nil
		w.dst = w.dst[:start+copy(w.dst[start:], w.dst[mark:])]
	}
	if !clean {
		w.dst, w.faults, w.dropped = w.dst[:start], w.faults[:told], dropped
		return at, false
	}
	return end, true
}

// listed writes the list of the elements, and returns where they end and how many there are, -1 where they are not objects alone.
func (w *answer) listed(list *nestList, doc []byte, at int) (end, n int) {
	w.dst = append(w.dst, '[')
	if doc[at] == '{' {
		end, filled := w.listedOne(list, doc, at)
		if !filled {
			return at, -1
		}
		w.dst = append(w.dst, ']')
		return end, 1
	}
	if doc[at] != '[' {
		return at, -1
	}
	for i := at + 1; ; i++ {
		if i = rawjson.Space(doc, i); i >= len(doc) {
			return at, -1
		}
		end = i
		switch doc[i] {
		case '{':
			if n > 0 {
				w.dst = append(w.dst, ',')
			}
			var filled bool
			if end, filled = w.listedOne(list, doc, i); !filled {
				return at, -1
			}
			n++
		case 'n': // null is no element
			end = rawjson.Value(doc, i)
		case ']':
		default:
			return at, -1
		}
		if i = rawjson.Space(doc, end); i < len(doc) && doc[i] == ',' {
			continue
		}
		if i >= len(doc) || doc[i] != ']' {
			return at, -1
		}
		w.dst = append(w.dst, ']')
		return i + 1, n
	}
}

// listedOne writes the edge of the element at doc[at].
func (w *answer) listedOne(list *nestList, doc []byte, at int) (end int, filled bool) {
	w.dst = append(append(w.dst, '{'), list.node.head...)
	end, filled = w.shaped(list.node.shape, doc, at, nil)
	w.dst = append(w.dst, '}')
	return end, filled
}
