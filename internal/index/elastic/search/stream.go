package search

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
	"tutti/internal/index/elastic/transport"
)

const (
	// firstStreamPage is the number of documents in the first page of a stream, maxStreamPage that of others at most.
	firstStreamPage = 100
	maxStreamPage   = 1000
	// maxStreamPageBytes is the target size of a page, estimated from the previous one.
	maxStreamPageBytes = 16 << 20
)

// Stream calls each with pages of documents of one point in time, which it closes at the end, even if ctx has ended.
func (x *Searcher) Stream(ctx context.Context, alias string, req index.StreamRequest, each func([]index.Hit) error) error {
	end, err := x.client.Begin(alias)
	if err != nil {
		return err
	}
	defer end()
	if err := dsl.CheckSorts(req.Sort); err != nil {
		return err
	}
	s := &stream{x: x, req: req, meanSize: &x.stats(alias).meanSize}
	if s.pit, err = x.client.OpenPIT(ctx, alias); err != nil {
		return transport.AsSearchError(err)
	}
	defer s.pit.Close(ctx)
	if err := s.prepare(ctx, alias); err != nil {
		return err
	}
	into := x.client.GetBuffer()
	defer func() { x.client.PutBuffer(into) }()
	for size := firstStreamPage; ; {
		into.Reset()
		hits, last, err := s.page(ctx, size, into)
		switch {
		case transport.IsOverLimit(err) && size > 1:
			size /= 2
			continue
		case transport.IsOverLimit(err):
			return transport.TooLarge(err)
		case err != nil:
			return err
		}
		if len(hits) > 0 {
			if err := each(hits); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
		size = max(1, min(maxStreamPage, maxStreamPageBytes/(into.Len()/max(1, len(hits))+1)))
	}
}

// stream is one call of Stream.
type stream struct {
	x   *Searcher
	req index.StreamRequest
	// head is the part of the body that all pages share.
	head     []byte
	meanSize *meanSize
	pit      *transport.PIT
}

// prepare writes the head.
func (s *stream) prepare(ctx context.Context, alias string) error {
	var w dsl.FilterWriter
	var err error
	if w.Values, err = s.x.patternValues(ctx, alias, []*query.Node{s.req.Filter}); err != nil {
		return err
	}
	byID := s.pit.Engine().Tiebreaker
	if dsl.IDKey(s.req.Sort) >= 0 {
		id, err := s.x.idFieldOf(ctx, alias)
		if err != nil {
			return err
		}
		if id.path != dsl.SeqNo {
			byID = id.path
		}
	}
	s.head = fmt.Appendf(nil, `{"track_total_hits":false,"query":%s,"sort":[`, w.Write(nil, s.req.Filter))
	for _, key := range s.req.Sort {
		s.head = append(dsl.AppendSort(s.head, key, byID), ',')
	}
	s.head = fmt.Appendf(s.head, `"%s"]`, s.pit.Engine().Tiebreaker)
	if s.pit.Engine().ScoreNestedSorts && sortsNested(s.req.Sort) {
		s.head = append(s.head, scoresMember...)
	}
	return w.Err
}

// page reads the next page into a buffer whose bytes the hits share. last reports that no page follows.
func (s *stream) page(ctx context.Context, size int, into *bytes.Buffer) (hits []index.Hit, last bool, err error) {
	source := s.meanSize.choose(s.req.Source, size)
	full := s.pit.PageSize(size)
	body := fmt.Appendf(s.pit.AppendPage(slices.Clone(s.head), size), `%s}`, dsl.AppendSource(nil, source))
	reply, err := s.x.client.Do(ctx, transport.SearchRequest(body), into)
	if err != nil {
		return nil, false, transport.AsSearchError(err)
	}
	keys := len(s.req.Sort)
	r := dsl.HitsReader{Source: source, SortKeys: keys, Copy: func(b []byte) []byte { return b }}
	if s.pit.Ambiguous() {
		r.SortKeys, r.WithIndex = keys+1, true
	}
	c := dsl.Reader{Data: reply.Body}
	a := dsl.Response{ReadHits: func(c *dsl.Reader) { hits = r.Read(c) }}
	a.Read(&c)
	s.pit.SetID(a.PIT)
	if err := a.Check(&c); err != nil {
		return nil, false, err
	}
	last = len(hits) < full
	if hits, err = s.advance(hits, &r); err != nil {
		return nil, false, err
	}
	dsl.NullMissing(hits, s.req.Sort)
	if !source.None && source.Paths == nil {
		s.meanSize.observe(len(hits), r.SourceBytes)
	}
	return hits, last, nil
}

// advance moves to the page after hits, and returns those that no previous page had.
func (s *stream) advance(hits []index.Hit, r *dsl.HitsReader) ([]index.Hit, error) {
	keys := len(s.req.Sort)
	if !s.pit.Ambiguous() {
		return hits, s.pit.Advance(r.LastSort, len(hits), nil)
	}
	fresh := make([]index.Hit, 0, len(hits))
	for i, hit := range hits {
		if len(hit.Sort) != keys+1 {
			return nil, transport.UnexpectedResponse()
		}
		if !s.pit.Returned(transport.Location{Index: r.Indices[i], ID: hit.ID}) {
			hit.Sort = hit.Sort[:keys]
			fresh = append(fresh, hit)
		}
	}
	return fresh, s.pit.Advance(r.LastSort, len(hits), func(i int) (transport.Location, []byte) {
		return transport.Location{Index: r.Indices[i], ID: hits[i].ID}, hits[i].Sort[keys]
	})
}
