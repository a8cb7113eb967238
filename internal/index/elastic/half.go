package elastic

import (
	"context"

	"tutti/internal/index"
)

// shorten asks for the documents anew, some at a time, of those searches whose answers were longer than one may be.
func (x *Index) shorten(ctx context.Context, alias string, p *inquiry) error {
	for _, s := range p.searches {
		if s.hits == nil || s.fault == nil {
			continue
		}
		if err := x.halve(ctx, alias, p, s); err != nil {
			return err
		}
	}
	return nil
}

// halve asks for the documents of s in two searches.
func (x *Index) halve(ctx context.Context, alias string, p *inquiry, s *search) error {
	h := s.hits.request
	if h.Size < 2 {
		return s.fault
	}
	first, second := *h, *h
	first.Size /= 2
	second.Size -= first.Size
	head, err := x.half(ctx, alias, p, s, &first, len(s.totals) > 0)
	if err != nil {
		return err
	}
	s.fault, s.hits.into.Hits = nil, head.Hits
	for _, into := range s.totals {
		into.Total = head.Total
	}
	if len(head.Hits) < first.Size {
		return nil
	}
	if len(h.After) > 0 {
		second.After = resumed(head.Hits[first.Size-1].Sort, h.Sort)
	} else {
		second.From += first.Size
	}
	tail, err := x.half(ctx, alias, p, s, &second, false)
	s.hits.into.Hits = append(s.hits.into.Hits, tail.Hits...)
	return err
}

// half asks for some of the documents of s, and for their number where total is set.
func (x *Index) half(ctx context.Context, alias string, p *inquiry, s *search, h *index.HitsRequest, total bool) (index.SearchResult, error) {
	var into index.SearchResult
	q := inquiry{filter: p.filter, identity: p.identity, several: p.several, alias: alias, sealer: p.sealer, indices: p.indices, room: p.room}
	var from *position
	if s.hits.numbered != nil {
		from = x.positionOf(alias, afterID(h))
	}
	q.addHits(&index.SearchRequest{Filter: s.filter, Hits: h}, q.filter.write(nil, s.filter), from, &into, total)
	if err := x.ask(ctx, alias, q.searches); err != nil {
		return into, err
	}
	err := x.shorten(ctx, alias, &q)
	s.hits.misled = s.hits.misled || q.misled()
	for _, part := range q.searches {
		s.hits.weight += part.hits.weight
	}
	return into, err
}
