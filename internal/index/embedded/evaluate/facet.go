package evaluate

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index"
	"tutti/internal/index/embedded/segment"
)

// facetTask is one Facet of a request.
type facetTask struct {
	ask *index.Facet
	// documents is the filter of the request, elements that of the field's rows and holders the documents with such a row, both
	// nil for all. exists are the documents with a value, filters those of Buckets.Filters.
	documents, elements, holders, exists *clause
	filters                              []*clause
	// parts is what was found in each part.
	parts []facetPart
	// buckets are the ones that are given, made by merge.
	buckets []bucket
	// tops are the TopHits that a part has, by bucket.
	tops [][][]uint32
}

// facetPart is the answer of one part.
type facetPart struct {
	column *segment.Column
	// values are the documents by value; filtered are those that also match each of Buckets.Filters.
	values    []counted
	filtered  [][]counted
	missing   int64
	stats     stats
	intervals []interval
	ranges    []int64
}

// scope is what of a part is counted.
type scope struct {
	values *values
	docs   documents
}

// part answers for one part.
func (f *facetTask) part(ctx context.Context, v *view, p *facetPart, s *scratch) {
	p.ranges = make([]int64, len(f.ask.Ranges))
	docs := v.live(ctx, f.documents, s)
	if docs.count == 0 {
		return
	}
	if f.ask.Missing {
		p.missing = int64(docs.count) - int64(docs.bits.AndCardinality(v.matching(ctx, f.exists, s)))
	}
	column := v.segment.Column(f.ask.Field.Path)
	if column == nil || column.Size() == 0 || !f.counts() {
		return
	}
	p.column = column
	at, some := f.scope(ctx, v, column, docs, s)
	if !some {
		return
	}
	if f.ask.Buckets != nil || f.ask.Cardinality > 0 {
		p.values = at.values.perDocument(ctx, f.ask.Field, at.docs, s)
	}
	for _, filter := range f.filters {
		docs := at.docs.and(v.matching(ctx, filter, s))
		p.filtered = append(p.filtered, at.values.perDocument(ctx, f.ask.Field, docs, s))
	}
	if !column.Numeric() {
		return
	}
	if f.ask.Stats {
		p.stats = at.stats(ctx, f.ask.Field, s)
	}
	if f.ask.Histogram > 0 {
		p.intervals = at.histogram(ctx, f.ask.Field, f.ask.Histogram, s)
	}
	if len(f.ask.Ranges) > 0 {
		p.ranges = at.inRanges(ctx, f.ask.Field, f.ask.Ranges, s)
	}
}

// counts reports whether anything but Missing is asked.
func (f *facetTask) counts() bool {
	return f.ask.Buckets != nil || f.ask.Cardinality > 0 || f.ask.Stats || f.ask.Histogram > 0 || len(f.ask.Ranges) > 0
}

// scope returns what is counted of a part, false when it is nothing. Everything that filters ask was asked when it returns, since
// the elements stand in s.
func (f *facetTask) scope(ctx context.Context, v *view, column *segment.Column, docs documents, s *scratch) (scope, bool) {
	for _, filter := range f.filters {
		v.matching(ctx, filter, s)
	}
	row := f.ask.Field.Row()
	var elements []uint64
	if f.elements != nil {
		docs = docs.and(v.matching(ctx, f.holders, s))
		if row != "" {
			s.elements = words(s.elements, v.matching(ctx, f.elements, s), v.count(row))
			elements = s.elements
		}
	}
	if int(column.Exists().GetCardinality()) < docs.count/fewRows {
		docs = docs.and(v.matching(ctx, f.exists, s))
	}
	return scope{values: newValues(column, v.span(row), elements), docs: docs}, docs.count > 0
}

// and returns the documents that are in a set too.
func (d documents) and(set *roaring.Bitmap) documents {
	bits := roaring.And(d.bits, set)
	count := int(bits.GetCardinality())
	return documents{bits: bits, count: count, all: d.all && count == d.count}
}

// merge puts the answers of the parts together, but for TopHits.
func (f *facetTask) merge(ctx context.Context, r *index.FacetResult) error {
	r.Ranges = make([]int64, len(f.ask.Ranges))
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
	if f.ask.Histogram > 0 {
		var err error
		if r.Histogram, err = f.intervals(); err != nil {
			return err
		}
	}
	f.mergeBuckets(ctx, r)
	return nil
}
