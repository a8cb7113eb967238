package elastic

import (
	"context"
	"slices"

	"tutti/internal/index"
)

// finish copies the results of facets to all requests for them, after further searches for what did not fit one response.
func (x *Index) finish(ctx context.Context, alias string, p *searchPlan) error {
	for _, s := range slices.Clone(p.searches) {
		if s.err != nil {
			if err := x.splitFacets(ctx, alias, p, s); err != nil {
				return err
			}
		}
		for _, task := range s.facets {
			if err := x.readAllBuckets(ctx, alias, p, s, task); err != nil {
				return err
			}
			for _, result := range task.results {
				*result = task.into
			}
		}
	}
	return nil
}

// splitFacets replaces s, whose response would have too many buckets, by several searches: one for the values of each facet, one
// for each histogram, and one for everything else.
func (x *Index) splitFacets(ctx context.Context, alias string, p *searchPlan, s *subsearch) error {
	rest := &subsearch{filter: s.filter, totals: s.totals}
	pieces := []*subsearch{rest}
	parts := make([][]*facetTask, len(s.facets))
	add := func(place int, to *subsearch, f *index.Facet) {
		task := &facetTask{facetReader: facetReader{facet: f, into: emptyFacet(f)}}
		to.facets = append(to.facets, task)
		parts[place] = append(parts[place], task)
	}
	for i, task := range s.facets {
		remaining := *task.facet
		remaining.Buckets, remaining.Histogram = nil, 0
		if len(p.facetBody(nil, "", &remaining)) > 0 {
			add(i, rest, &remaining)
		}
		for _, single := range facetParts(task.facet) {
			piece := &subsearch{filter: s.filter}
			add(i, piece, single)
			pieces = append(pieces, piece)
		}
	}
	filter := p.filter.write(nil, s.filter)
	for _, piece := range pieces {
		p.writeCounts(piece, filter)
	}
	if err := x.execute(ctx, alias, pieces); err != nil {
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
		if only.facet.Buckets == nil {
			return only.facet.TooManyIntervals()
		}
		only.more = true
	}
	for i, task := range s.facets {
		for _, part := range parts[i] {
			if err := x.readAllBuckets(ctx, alias, p, s, part); err != nil {
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
	if f.Buckets != nil && countable(f.Field) {
		found = append(found, &index.Facet{Field: f.Field, Elements: f.Elements, Buckets: f.Buckets})
	}
	if f.Histogram != 0 && numeric(f.Field) {
		found = append(found, &index.Facet{Field: f.Field, Elements: f.Elements, Histogram: f.Histogram})
	}
	return found
}

// merge copies the result of a part to t.
func (t *facetTask) merge(part *facetTask) {
	switch {
	case part.facet.Buckets != nil:
		t.into.Buckets = part.into.Buckets
	case part.facet.Histogram != 0:
		t.into.Histogram = part.into.Histogram
	default:
		buckets, histogram := t.into.Buckets, t.into.Histogram
		t.into = part.into
		t.into.Buckets, t.into.Histogram = buckets, histogram
	}
}
