package search

import (
	"context"

	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
)

// splitOversized repeats in parts those searches for documents whose responses were over the limit.
func (p *searchPlan) splitOversized(ctx context.Context) error {
	for _, s := range p.searches {
		if s.hits == nil || s.err == nil {
			continue
		}
		if err := p.splitHits(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// splitHits requests the documents of s in two searches.
func (p *searchPlan) splitHits(ctx context.Context, s *subsearch) error {
	h := s.hits.request
	if h.Size < 2 {
		return s.err
	}
	first, second := *h, *h
	first.Size /= 2
	second.Size -= first.Size
	head, err := p.fetchHits(ctx, s, &first, len(s.totals) > 0)
	if err != nil {
		return err
	}
	s.err, s.hits.into.Hits = nil, head.Hits
	for _, into := range s.totals {
		into.Total = head.Total
	}
	if len(head.Hits) < first.Size {
		return nil
	}
	if len(h.After) > 0 {
		second.After = dsl.RestoreMissing(head.Hits[first.Size-1].Sort, h.Sort)
	} else {
		second.From += first.Size
	}
	tail, err := p.fetchHits(ctx, s, &second, false)
	s.hits.into.Hits = append(s.hits.into.Hits, tail.Hits...)
	return err
}

// fetchHits requests some of the documents of s, and their total number if total is set.
func (p *searchPlan) fetchHits(ctx context.Context, s *subsearch, h *index.HitsRequest, total bool) (index.SearchResult, error) {
	var into index.SearchResult
	q := *p
	q.searches, q.results, q.positions = nil, nil, nil
	var from *position
	if s.hits.seqNo != nil {
		from = p.cursors.position(p.alias, idCursor(h))
	}
	q.addHits(&index.SearchRequest{Filter: s.filter, Hits: h}, q.filter.Write(nil, s.filter), from, &into, total)
	if err := q.execute(ctx, q.searches); err != nil {
		return into, err
	}
	err := q.splitOversized(ctx)
	s.hits.wrongIDField = s.hits.wrongIDField || q.wrongIDField()
	for _, part := range q.searches {
		s.hits.sourceBytes += part.hits.sourceBytes
	}
	return into, err
}

// splitFacets replaces s, whose response would have too many buckets, by several searches: one for the values of each facet, one
// for each histogram, and one for everything else.
func (p *searchPlan) splitFacets(ctx context.Context, s *subsearch) error {
	rest := &subsearch{filter: s.filter, totals: s.totals}
	pieces := []*subsearch{rest}
	parts := make([][]*facetTask, len(s.facets))
	add := func(place int, to *subsearch, f *index.Facet) {
		task := &facetTask{FacetReader: dsl.FacetReader{Facet: f, Into: emptyFacet(f)}}
		to.facets = append(to.facets, task)
		parts[place] = append(parts[place], task)
	}
	for i, task := range s.facets {
		remaining := *task.Facet
		remaining.Buckets, remaining.Histogram = nil, 0
		if len(p.facetBody(nil, "", &remaining)) > 0 {
			add(i, rest, &remaining)
		}
		for _, single := range facetParts(task.Facet) {
			piece := &subsearch{filter: s.filter}
			add(i, piece, single)
			pieces = append(pieces, piece)
		}
	}
	filter := p.filter.Write(nil, s.filter)
	for _, piece := range pieces {
		p.writeCounts(piece, filter)
	}
	if err := p.execute(ctx, pieces); err != nil {
		return err
	}
	if rest.err != nil {
		return rest.err
	}
	for _, piece := range pieces[1:] {
		only := piece.facets[0]
		if piece.err == nil {
			continue
		}
		if only.Facet.Buckets == nil {
			return only.Facet.TooManyIntervals()
		}
		only.More = true
	}
	for i, task := range s.facets {
		for _, part := range parts[i] {
			if err := p.readAllBuckets(ctx, s, part); err != nil {
				return err
			}
			task.merge(part)
		}
	}
	return nil
}

// facetParts returns the parts of a facet that get searches of their own.
func facetParts(f *index.Facet) []*index.Facet {
	var found []*index.Facet
	if f.Buckets != nil && dsl.Countable(f.Field) {
		found = append(found, &index.Facet{Field: f.Field, Elements: f.Elements, Buckets: f.Buckets})
	}
	if f.Histogram != 0 && dsl.Numeric(f.Field) {
		found = append(found, &index.Facet{Field: f.Field, Elements: f.Elements, Histogram: f.Histogram})
	}
	return found
}

// merge copies the result of a part to t.
func (t *facetTask) merge(part *facetTask) {
	switch {
	case part.Facet.Buckets != nil:
		t.Into.Buckets = part.Into.Buckets
	case part.Facet.Histogram != 0:
		t.Into.Histogram = part.Into.Histogram
	default:
		buckets, histogram := t.Into.Buckets, t.Into.Histogram
		t.Into = part.Into
		t.Into.Buckets, t.Into.Histogram = buckets, histogram
	}
}
