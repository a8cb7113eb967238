package evaluate

import (
	"container/heap"
	"context"
	"encoding/json"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index"
)

// selection keeps the first documents of a part in an order, the last of them on top of a heap.
type selection struct {
	rankers []*ranker
	// after are the ranks behind which the documents begin, nil for the beginning.
	after []uint64
	limit int
	// docs are those that are kept, of which heap has the places; ranks are theirs, as many for each as there are rankers.
	docs  []uint32
	heap  []int32
	ranks []uint64
}

func (s *selection) Len() int           { return len(s.heap) }
func (s *selection) Less(i, j int) bool { return s.compare(s.heap[i], s.heap[j]) > 0 }
func (s *selection) Swap(i, j int)      { s.heap[i], s.heap[j] = s.heap[j], s.heap[i] }

// Push implements heap.Interface.
func (s *selection) Push(x any) { s.heap = append(s.heap, x.(int32)) }

// Pop implements heap.Interface.
func (s *selection) Pop() any {
	n := len(s.heap) - 1
	x := s.heap[n]
	s.heap = s.heap[:n]
	return x
}

func (s *selection) at(slot int32) []uint64 {
	n := len(s.rankers)
	return s.ranks[int(slot)*n : int(slot+1)*n]
}

func (s *selection) compare(a, b int32) int { return slices.Compare(s.at(a), s.at(b)) }

// first returns the first documents of a part in an order, at most limit, behind the place after.
func (v *view) first(ctx context.Context, docs documents, o *order, after []place, limit int, s *scratch) []uint32 {
	if o.asked == 0 {
		return some(docs.bits, limit)
	}
	sel := &selection{rankers: v.rankers(o), limit: min(limit, docs.count)}
	if sel.limit == 0 {
		return nil
	}
	for i, p := range after {
		sel.after = append(sel.after, sel.rankers[i].behind(p))
	}
	sel.ranks = make([]uint64, 0, (sel.limit+1)*len(sel.rankers))
	s.batches(ctx, docs.bits, func(docs []uint32) {
		sel.rankers[0].ranks(docs, s.ranks)
		for i, rank := range s.ranks[:len(docs)] {
			if sel.after != nil && rank < sel.after[0] {
				continue
			}
			if len(sel.heap) == sel.limit && rank > sel.at(sel.heap[0])[0] {
				continue
			}
			sel.offer(docs[i], rank)
		}
	})
	slices.SortFunc(sel.heap, sel.compare)
	found := make([]uint32, 0, len(sel.heap))
	for _, slot := range sel.heap {
		found = append(found, sel.docs[slot])
	}
	return found
}

// offer keeps a document if it is one of the first. It is written behind those that are kept, and where the last of them was
// when it takes its place.
func (s *selection) offer(doc uint32, rank uint64) {
	n := len(s.rankers)
	slot := int32(len(s.docs))
	s.ranks = append(s.ranks[:int(slot)*n], rank)
	for _, r := range s.rankers[1:] {
		s.ranks = append(s.ranks, r.rank(doc))
	}
	switch {
	case s.after != nil && slices.Compare(s.at(slot)[:len(s.after)], s.after) <= 0:
	case len(s.heap) < s.limit:
		s.docs = append(s.docs, doc)
		heap.Push(s, slot)
	case s.compare(slot, s.heap[0]) < 0:
		last := s.heap[0]
		copy(s.at(last), s.at(slot))
		s.docs[last] = doc
		heap.Fix(s, 0)
	}
}

// some returns the documents of the lowest numbers.
func some(bits *roaring.Bitmap, limit int) []uint32 {
	docs := make([]uint32, min(limit, int(bits.GetCardinality())))
	return docs[:bits.ManyIterator().NextMany(docs)]
}

// sequence gives the documents of several parts in one order, from those of each in that order.
type sequence struct {
	order *order
	heap  []*cursor
}

// cursor is where a sequence is in one part.
type cursor struct {
	view    *view
	rankers []*ranker
	// docs are those that are left; the first is compared next. known are the values of it, as far as they were needed.
	docs  []uint32
	known []value
}

func newSequence(o *order, views []*view, docs [][]uint32) *sequence {
	s := &sequence{order: o}
	for i, v := range views {
		if len(docs[i]) > 0 {
			s.heap = append(s.heap, &cursor{view: v, rankers: v.rankers(o), docs: docs[i], known: make([]value, 0, len(o.keys))})
		}
	}
	heap.Init(s)
	return s
}

func (s *sequence) Len() int           { return len(s.heap) }
func (s *sequence) Less(i, j int) bool { return s.before(s.heap[i], s.heap[j]) }
func (s *sequence) Swap(i, j int)      { s.heap[i], s.heap[j] = s.heap[j], s.heap[i] }

// Push implements heap.Interface.
func (s *sequence) Push(x any) { s.heap = append(s.heap, x.(*cursor)) }

// Pop implements heap.Interface.
func (s *sequence) Pop() any {
	n := len(s.heap) - 1
	x := s.heap[n]
	s.heap = s.heap[:n]
	return x
}

// before compares two parts' next documents: by number when no order was asked for.
func (s *sequence) before(a, b *cursor) bool {
	if s.order.asked == 0 {
		return a.number() < b.number()
	}
	for i := range s.order.keys {
		if c := s.order.keys[i].compare(a.value(i), b.value(i)); c != 0 {
			return c < 0
		}
	}
	return false
}

func (c *cursor) number() uint64 { return c.view.segment.Numbers()[c.docs[0]] }

func (c *cursor) value(i int) value {
	for len(c.known) <= i {
		c.known = append(c.known, c.rankers[len(c.known)].value(c.docs[0]))
	}
	return c.known[i]
}

// done tells that there is no document left.
func (s *sequence) done() bool { return len(s.heap) == 0 }

// next goes on to the next document.
func (s *sequence) next() {
	c := s.heap[0]
	c.docs, c.known = c.docs[1:], c.known[:0]
	if len(c.docs) > 0 {
		heap.Fix(s, 0)
	} else {
		heap.Pop(s)
	}
}

// place returns where the document is.
func (s *sequence) place() Place {
	c := s.heap[0]
	return Place{Number: c.number(), ID: c.view.segment.ID(c.docs[0])}
}

// sort returns Hit.Sort of the document.
func (s *sequence) sort() []json.RawMessage {
	c := s.heap[0]
	values := make([]json.RawMessage, 0, s.order.asked)
	for i := range s.order.asked {
		values = append(values, s.order.keys[i].appendJSON(nil, c.value(i)))
	}
	return values
}

// hitsTask is what is asked of the documents themselves in one request.
type hitsTask struct {
	ask   *index.HitsRequest
	order order
	after []place
	// found are the first documents of each part.
	found [][]uint32
}

// limit is how many documents of each part may be needed.
func (t *hitsTask) limit() int {
	if t.after != nil {
		return t.ask.Size
	}
	return t.ask.From + t.ask.Size
}

// answer returns the hits that were asked for.
func (t *hitsTask) answer(views []*view, a *Answer) {
	s := newSequence(&t.order, views, t.found)
	if t.after == nil {
		for range t.ask.From {
			if s.done() {
				return
			}
			s.next()
		}
	}
	for len(a.Hits) < t.ask.Size && !s.done() {
		place := s.place()
		a.Places = append(a.Places, place)
		a.Hits = append(a.Hits, index.Hit{ID: place.ID, Sort: s.sort()})
		s.next()
	}
}
