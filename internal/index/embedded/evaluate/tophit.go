package evaluate

import (
	"cmp"
	"context"
	"slices"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate/match"
	"tutti/internal/index/embedded/segment"
)

// hasTopHits reports whether documents of buckets are requested.
func (f *facetTask) hasTopHits() bool {
	return f.req.Buckets != nil && f.req.Buckets.TopHits > 0 && len(f.buckets) > 0
}

// findTopHits finds the documents with the lowest ids of each bucket in one part.
func (f *facetTask) findTopHits(ctx context.Context, v *match.View, part int, s *scratch) {
	p := &f.parts[part]
	tops := make([][]uint32, len(f.buckets))
	f.topDocuments[part] = tops
	ids := v.Segment.Column(fieldID)
	if len(p.values) == 0 || ids == nil {
		return
	}
	at, some := f.newScope(ctx, v, p.column, v.LiveDocuments(ctx, f.documents, s.Scratch), s)
	if !some {
		return
	}
	s.groups = match.Zeroed(s.groups, int(p.column.Size()))
	for i := range f.buckets {
		for _, r := range f.buckets[i].refs {
			if r.part != part {
				continue
			}
			for ordinal := r.ordinal; f.sameBucket(p.column, ordinal, r.ordinal); ordinal++ {
				s.groups[ordinal] = uint32(i + 1)
			}
		}
	}
	byID := ids.Single()
	s.Batches(ctx, at.docs.Bits, func(docs []uint32) {
		for _, d := range docs {
			at.values.each(d, func(ordinal uint32) {
				if group := s.groups[ordinal]; group > 0 {
					tops[group-1] = insertLowest(tops[group-1], d, byID, f.req.Buckets.TopHits)
				}
			})
		}
	})
}

// sameBucket reports whether two values are in one bucket.
func (f *facetTask) sameBucket(column *segment.Column, a, b uint32) bool {
	return a == b || a < column.Size() && fieldtype.Of(f.req.Field.Type).Group == fieldtype.Nanos && query.Millis(column.Key(a)) == query.Millis(column.Key(b))
}

// insertLowest inserts a document into a list of the documents with the lowest ids, without duplicates.
func insertLowest(list []uint32, doc uint32, byID []uint32, limit int) []uint32 {
	at, found := slices.BinarySearchFunc(list, byID[doc], func(d, id uint32) int { return cmp.Compare(byID[d], id) })
	switch {
	case found || at == limit:
		return list
	case len(list) == limit:
		list = list[:limit-1]
	}
	return slices.Insert(list, at, doc)
}

// mergeTopHits returns the documents of each bucket from those of the parts.
func (f *facetTask) mergeTopHits(views []*match.View, buckets []index.Bucket) [][]DocumentRef {
	all := make([][]DocumentRef, len(buckets))
	for i := range buckets {
		var places []DocumentRef
		for part, v := range views {
			for _, doc := range f.topDocuments[part][i] {
				places = append(places, DocumentRef{Number: v.Segment.Numbers()[doc], ID: v.Segment.ID(doc)})
			}
		}
		slices.SortFunc(places, func(a, b DocumentRef) int { return cmp.Compare(a.ID, b.ID) })
		all[i] = places[:min(len(places), f.req.Buckets.TopHits)]
		for _, place := range all[i] {
			buckets[i].TopHits = append(buckets[i].TopHits, index.Hit{ID: place.ID})
		}
	}
	return all
}
