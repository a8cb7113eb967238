package elastic

import (
	"context"

	"tutti/internal/index"
)

// splitOversized repeats in parts those searches for documents whose responses were over the limit.
func (x *Index) splitOversized(ctx context.Context, alias string, p *searchPlan) error {
	for _, s := range p.searches {
		if s.hits == nil || s.err == nil {
			continue
		}
		if err := x.splitHits(ctx, alias, p, s); err != nil {
			return err
		}
	}
	return nil
}

// splitHits requests the documents of s in two searches.
func (x *Index) splitHits(ctx context.Context, alias string, p *searchPlan, s *subsearch) error {
	h := s.hits.request
	if h.Size < 2 {
		return s.err
	}
	first, second := *h, *h
	first.Size /= 2
	second.Size -= first.Size
	head, err := x.fetchHits(ctx, alias, p, s, &first, len(s.totals) > 0)
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
		second.After = restoreMissing(head.Hits[first.Size-1].Sort, h.Sort)
	} else {
		second.From += first.Size
	}
	tail, err := x.fetchHits(ctx, alias, p, s, &second, false)
	s.hits.into.Hits = append(s.hits.into.Hits, tail.Hits...)
	return err
}

// fetchHits requests some of the documents of s, and their total number if total is set.
func (x *Index) fetchHits(ctx context.Context, alias string, p *searchPlan, s *subsearch, h *index.HitsRequest, total bool) (index.SearchResult, error) {
	var into index.SearchResult
	q := searchPlan{filter: p.filter, idField: p.idField, sharded: p.sharded, alias: alias, cursors: p.cursors, indicesHash: p.indicesHash, budget: p.budget}
	var from *position
	if s.hits.seqNo != nil {
		from = x.openCursor(alias, idCursor(h))
	}
	q.addHits(&index.SearchRequest{Filter: s.filter, Hits: h}, q.filter.write(nil, s.filter), from, &into, total)
	if err := x.execute(ctx, alias, q.searches); err != nil {
		return into, err
	}
	err := x.splitOversized(ctx, alias, &q)
	s.hits.wrongIDField = s.hits.wrongIDField || q.wrongIDField()
	for _, part := range q.searches {
		s.hits.sourceBytes += part.hits.sourceBytes
	}
	return into, err
}
