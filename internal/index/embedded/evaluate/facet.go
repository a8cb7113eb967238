package evaluate

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index"
	"tutti/internal/index/embedded/segment"
)

// facetTask is the state of one Facet of a request.
type facetTask struct {
	req *index.Facet
	// documents is the filter of the request, elements that of the field's rows and elementDocuments the documents with such a row;
	// the last two are nil for all. exists are the documents with a value, filters those of Buckets.Filters.
	documents, elements, elementDocuments, exists *clause
	filters                                       []*clause
	// parts are the results by part.
	parts []facetPart
	// buckets are the returned buckets, set by merge.
	buckets []bucket
	// topDocuments are the top hits by part and bucket.
	topDocuments [][][]uint32
}

// facetPart is the result of one part.
type facetPart struct {
	column *segment.Column
	// values are the numbers of documents by value; filtered are those of the documents that also match each of Buckets.Filters.
	values    []valueCount
	filtered  [][]valueCount
	missing   int64
	stats     stats
	intervals []interval
	ranges    []int64
}

// countScope is what a facet counts in a part.
type countScope struct {
	values *values
	docs   documents
}

// evaluatePart evaluates the facet in one part.
func (f *facetTask) evaluatePart(ctx context.Context, v *view, p *facetPart, s *scratch) {
	p.ranges = make([]int64, len(f.req.Ranges))
	docs := v.liveDocuments(ctx, f.documents, s)
	if docs.count == 0 {
		return
	}
	if f.req.Missing {
		p.missing = int64(docs.count) - int64(docs.bits.AndCardinality(v.matchRows(ctx, f.exists, s)))
	}
	column := v.countable(f.req.Field)
	if column == nil || column.Size() == 0 || !f.needsValues() {
		return
	}
	p.column = column
	at, some := f.newScope(ctx, v, column, docs, s)
	if !some {
		return
	}
	if f.req.Buckets != nil || f.req.Cardinality > 0 {
		p.values = at.values.perDocument(ctx, f.req.Field, at.docs, s)
	}
	for _, filter := range f.filters {
		docs := at.docs.intersect(v.matchRows(ctx, filter, s))
		p.filtered = append(p.filtered, at.values.perDocument(ctx, f.req.Field, docs, s))
	}
	if !column.Numeric() {
		return
	}
	if f.req.Stats {
		p.stats = at.stats(ctx, f.req.Field, s)
	}
	if f.req.Histogram > 0 {
		p.intervals = at.histogram(ctx, f.req.Field, f.req.Histogram, s)
	}
	if len(f.req.Ranges) > 0 {
		p.ranges = at.countRanges(ctx, f.req.Field, f.req.Ranges, s)
	}
}

// needsValues reports whether anything but Missing is requested.
func (f *facetTask) needsValues() bool {
	return f.req.Buckets != nil || f.req.Cardinality > 0 || f.req.Stats || f.req.Histogram > 0 || len(f.req.Ranges) > 0
}

// newScope returns what is counted in a part, false when there are no documents. It evaluates all filters first, because elements
// are in s and evaluation would overwrite them.
func (f *facetTask) newScope(ctx context.Context, v *view, column *segment.Column, docs documents, s *scratch) (countScope, bool) {
	for _, filter := range f.filters {
		v.matchRows(ctx, filter, s)
	}
	row := f.req.Field.Row()
	var elements []uint64
	if f.elements != nil {
		docs = docs.intersect(v.matchRows(ctx, f.elementDocuments, s))
		if row != "" {
			s.elements = denseWords(s.elements, v.matchRows(ctx, f.elements, s), v.rowCount(row))
			elements = s.elements
		}
	}
	if int(column.Exists().GetCardinality()) < docs.count/sparseRowRatio {
		docs = docs.intersect(v.matchRows(ctx, f.exists, s))
	}
	return countScope{values: newValues(column, v.span(row), elements), docs: docs}, docs.count > 0
}

// intersect returns the documents that are in set too.
func (d documents) intersect(set *roaring.Bitmap) documents {
	bits := roaring.And(d.bits, set)
	count := int(bits.GetCardinality())
	return documents{bits: bits, count: count, all: d.all && count == d.count}
}

// merge merges the results of the parts, except TopHits.
func (f *facetTask) merge(ctx context.Context, r *index.FacetResult) error {
	r.Ranges = make([]int64, len(f.req.Ranges))
	var sum stats
	for i := range f.parts {
		p := &f.parts[i]
		r.Missing += p.missing
		sum.add(p.stats)
		for j, n := range p.ranges {
			r.Ranges[j] += n
		}
	}
	r.Stats = sum.result()
	if f.req.Histogram > 0 {
		var err error
		if r.Histogram, err = f.intervals(); err != nil {
			return err
		}
	}
	f.mergeBuckets(ctx, r)
	return nil
}
