package evaluate

import (
	"context"

	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate/match"
	"tutti/internal/index/embedded/segment"
)

// facetTask is the state of one Facet of a request.
type facetTask struct {
	req *index.Facet
	// documents is the filter of the request, elements that of the field's rows and elementDocuments the documents with such a row;
	// the last two are nil for all. exists are the documents with a value, filters those of Buckets.Filters.
	documents, elements, elementDocuments, exists *match.Clause
	filters                                       []*match.Clause
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
	docs   match.Documents
}

// evaluatePart evaluates the facet in one part.
func (f *facetTask) evaluatePart(ctx context.Context, v *match.View, p *facetPart, s *scratch) {
	p.ranges = make([]int64, len(f.req.Ranges))
	docs := v.LiveDocuments(ctx, f.documents, s.Scratch)
	if docs.Count == 0 {
		return
	}
	if f.req.Missing {
		p.missing = int64(docs.Count) - int64(docs.Bits.AndCardinality(v.MatchRows(ctx, f.exists, s.Scratch)))
	}
	column := countable(v, f.req.Field)
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
		docs := at.docs.Intersect(v.MatchRows(ctx, filter, s.Scratch))
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

// sparseColumnRatio is the ratio of documents to rows with a value from which only those with a value are counted.
const sparseColumnRatio = 16

// newScope returns what is counted in a part, false when there are no documents. It evaluates all filters first, because elements
// are in s and evaluation would overwrite them.
func (f *facetTask) newScope(ctx context.Context, v *match.View, column *segment.Column, docs match.Documents, s *scratch) (countScope, bool) {
	for _, filter := range f.filters {
		v.MatchRows(ctx, filter, s.Scratch)
	}
	row := f.req.Field.Row()
	var elements []uint64
	if f.elements != nil {
		docs = docs.Intersect(v.MatchRows(ctx, f.elementDocuments, s.Scratch))
		if row != "" {
			s.elements = match.DenseWords(s.elements, v.MatchRows(ctx, f.elements, s.Scratch), v.RowCount(row))
			elements = s.elements
		}
	}
	if int(column.Exists().GetCardinality()) < docs.Count/sparseColumnRatio {
		docs = docs.Intersect(v.MatchRows(ctx, f.exists, s.Scratch))
	}
	return countScope{values: newValues(column, spanOf(v, row), elements), docs: docs}, docs.Count > 0
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
