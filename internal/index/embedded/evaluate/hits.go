package evaluate

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/base/heap"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate/match"
)

// topDocuments selects the first documents of a part in an order, with a heap whose top is the last of them.
type topDocuments struct {
	rankers []*ranker
	// after are the ranks after which documents start, nil for the beginning.
	after []uint64
	limit int
	// docs are the selected documents, ranks their ranks, one per ranker; heap holds indexes of docs.
	docs  []uint32
	heap  []int32
	ranks []uint64
}

func (s *topDocuments) ranksOf(slot int32) []uint64 {
	n := len(s.rankers)
	return s.ranks[int(slot)*n : int(slot+1)*n]
}

func (s *topDocuments) compare(a, b int32) int { return slices.Compare(s.ranksOf(a), s.ranksOf(b)) }

func (s *topDocuments) last(a, b int32) bool { return s.compare(a, b) > 0 }

// first returns the first documents of a part, at most limit, after the sort values after.
func (o *order) first(ctx context.Context, v *match.View, docs match.Documents, after []afterValue, limit int, s *scratch) []uint32 {
	if o.sorts == 0 {
		return lowestDocuments(docs.Bits, limit)
	}
	sel := &topDocuments{rankers: o.rankers(v), limit: min(limit, docs.Count)}
	if sel.limit == 0 {
		return nil
	}
	for i, p := range after {
		sel.after = append(sel.after, sel.rankers[i].rankAfter(p))
	}
	sel.ranks = make([]uint64, 0, (sel.limit+1)*len(sel.rankers))
	s.Batches(ctx, docs.Bits, func(docs []uint32) {
		sel.rankers[0].ranks(docs, s.ranks)
		for i, rank := range s.ranks[:len(docs)] {
			if sel.after != nil && rank < sel.after[0] {
				continue
			}
			if len(sel.heap) == sel.limit && rank > sel.ranksOf(sel.heap[0])[0] {
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

// offer adds a document if it is one of the first. Its ranks are appended first, and overwrite those of the last document if it
// replaces that one.
func (s *topDocuments) offer(doc uint32, rank uint64) {
	n := len(s.rankers)
	slot := int32(len(s.docs))
	s.ranks = append(s.ranks[:int(slot)*n], rank)
	for _, r := range s.rankers[1:] {
		s.ranks = append(s.ranks, r.rank(doc))
	}
	switch {
	case s.after != nil && slices.Compare(s.ranksOf(slot)[:len(s.after)], s.after) <= 0:
	case len(s.heap) < s.limit:
		s.docs = append(s.docs, doc)
		s.heap = heap.Push(s.heap, slot, s.last)
	case s.compare(slot, s.heap[0]) < 0:
		last := s.heap[0]
		copy(s.ranksOf(last), s.ranksOf(slot))
		s.docs[last] = doc
		heap.Fix(s.heap, s.last)
	}
}

// lowestDocuments returns the documents with the lowest numbers.
func lowestDocuments(bits *roaring.Bitmap, limit int) []uint32 {
	docs := make([]uint32, min(limit, int(bits.GetCardinality())))
	return docs[:bits.ManyIterator().NextMany(docs)]
}

// documentMerger merges the sorted documents of several parts.
type documentMerger struct {
	order *order
	heap  []*partCursor
}

// partCursor is the position of a documentMerger in one part.
type partCursor struct {
	view    *match.View
	rankers []*ranker
	// docs are those that are left; the first is compared next. known are the values of it, as far as they were needed.
	docs       []uint32
	sortValues []value
}

func newSequence(o *order, views []*match.View, docs [][]uint32) *documentMerger {
	s := &documentMerger{order: o}
	for i, v := range views {
		if len(docs[i]) > 0 {
			s.heap = append(s.heap, &partCursor{view: v, rankers: o.rankers(v), docs: docs[i], sortValues: make([]value, 0, len(o.keys))})
		}
	}
	heap.Init(s.heap, s.before)
	return s
}

// before compares the next documents of two parts: by number when no order was requested.
func (s *documentMerger) before(a, b *partCursor) bool {
	if s.order.sorts == 0 {
		return a.number() < b.number()
	}
	for i := range s.order.keys {
		if c := s.order.keys[i].compare(a.value(i), b.value(i)); c != 0 {
			return c < 0
		}
	}
	return false
}

func (c *partCursor) number() uint64 { return c.view.Segment.Numbers()[c.docs[0]] }

func (c *partCursor) value(i int) value {
	for len(c.sortValues) <= i {
		c.sortValues = append(c.sortValues, c.rankers[len(c.sortValues)].value(c.docs[0]))
	}
	return c.sortValues[i]
}

// done reports whether no document is left.
func (s *documentMerger) done() bool { return len(s.heap) == 0 }

// next moves to the next document.
func (s *documentMerger) next() {
	c := s.heap[0]
	c.docs, c.sortValues = c.docs[1:], c.sortValues[:0]
	if len(c.docs) > 0 {
		heap.Fix(s.heap, s.before)
	} else {
		s.heap = heap.Pop(s.heap, s.before)
	}
}

// ref returns the current document.
func (s *documentMerger) ref() DocumentRef {
	c := s.heap[0]
	return DocumentRef{Number: c.number(), ID: c.view.Segment.ID(c.docs[0])}
}

// sortValues returns Hit.Sort of the current document.
func (s *documentMerger) sortValues() []json.RawMessage {
	c := s.heap[0]
	values := make([]json.RawMessage, 0, s.order.sorts)
	for i := range s.order.sorts {
		values = append(values, s.order.keys[i].appendJSON(nil, c.value(i)))
	}
	return values
}

// hitsTask is the state of the hits of one request.
type hitsTask struct {
	req   *index.HitsRequest
	order order
	after []afterValue
	// found are the first documents of each part.
	found [][]uint32
}

// limit returns the number of documents that may be needed of each part.
func (t *hitsTask) limit() int {
	if t.after != nil {
		return t.req.Size
	}
	return t.req.From + t.req.Size
}

// fill appends the requested hits to a.
func (t *hitsTask) fill(views []*match.View, a *Result) {
	s := newSequence(&t.order, views, t.found)
	if t.after == nil {
		for range t.req.From {
			if s.done() {
				return
			}
			s.next()
		}
	}
	for len(a.Hits) < t.req.Size && !s.done() {
		place := s.ref()
		a.Refs = append(a.Refs, place)
		a.Hits = append(a.Hits, index.Hit{ID: place.ID, Sort: s.sortValues()})
		s.next()
	}
}
