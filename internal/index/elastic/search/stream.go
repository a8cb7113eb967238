package search

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
	"tutti/internal/index/elastic/transport"
)

const (
	// firstStreamPage is the number of documents in the first page of a stream, maxStreamPage that of others at most.
	firstStreamPage = 100
	maxStreamPage   = 1000
	// maxStreamPageBytes bounds a page of several documents, and the documents that the cluster reads for it.
	maxStreamPageBytes = 4 << 20
	// pageWeight is the memory that a page takes, as a multiple of its size.
	pageWeight = 2
)

// Stream calls each with pages of documents of one point in time, which it closes at the end, even if ctx has ended. It returns an error
// when the pages had not as many documents as the point in time.
func (x *Searcher) Stream(ctx context.Context, alias string, req index.StreamRequest, each func([]index.Hit) error) error {
	end, err := x.client.Begin(alias)
	if err != nil {
		return err
	}
	defer end()
	if err := dsl.CheckSorts(req.Sort); err != nil {
		return err
	}
	if req.Sort, err = x.withoutConstants(ctx, req.Sort); err != nil {
		return err
	}
	s := &stream{x: x, req: req, most: maxStreamPage, meanSize: &x.stats(alias).meanSize}
	if s.meanSize.needsSample(req.Source, maxStreamPage) {
		if _, err := x.sampleDocuments(ctx, alias); err != nil {
			return err
		}
	}
	if s.pit, err = x.client.OpenPIT(ctx, alias); err != nil {
		return transport.AsSearchError(err)
	}
	defer s.pit.Close(ctx)
	if err := s.prepare(ctx, alias); err != nil {
		return err
	}
	for size := s.meanSize.bound(firstStreamPage); size > 0; {
		if size, err = s.next(ctx, size, each); err != nil {
			return err
		}
	}
	return nil
}

// stream is one call of Stream.
type stream struct {
	x   *Searcher
	req index.StreamRequest
	// head is the part of the body that all pages share.
	head     []byte
	meanSize *meanSize
	// most is the largest page for which the cluster has memory.
	most int
	pit  *transport.PIT
}

// next calls each with the next page, of at most size documents, fewer when they are large, and returns the size of the page after it, 0 if
// none follows.
func (s *stream) next(ctx context.Context, size int, each func([]index.Hit) error) (int, error) {
	into := s.x.client.GetBuffer()
	defer func() { s.x.client.PutBuffer(into) }()
	for limit := int64(maxStreamPageBytes); ; {
		shrink, err := s.reserve(ctx, pageWeight*limit)
		if err != nil {
			return 0, err
		}
		into.Reset()
		hits, last, err := s.page(ctx, size, limit, into)
		if err == nil {
			shrink(pageWeight * int64(into.Len()))
			defer shrink(0)
			if len(hits) > 0 {
				if err := each(hits); err != nil {
					return 0, err
				}
			}
			if last {
				return 0, s.pit.Complete()
			}
			return s.meanSize.bound(max(1, min(s.most, maxStreamPageBytes/(into.Len()/max(1, len(hits))+1)))), nil
		}
		shrink(0)
		over := transport.IsOverLimit(err)
		switch largest := s.x.client.MaxResponseBytes(); {
		case size > 1 && over:
			size /= 2
		case size > 1 && transport.TypeOf(err) == transport.TypeCircuitBreaking:
			size /= 2
			s.most = size
		case over && limit < largest: // one large document
			limit = min(2*limit, largest)
		case over:
			return 0, transport.TooLarge(err)
		default:
			return 0, err
		}
	}
}

// reserve waits for n bytes of Searcher.memory.
func (s *stream) reserve(ctx context.Context, n int64) (shrink func(to int64), err error) {
	if s.x.memory == nil {
		return func(int64) {}, nil
	}
	return s.x.memory.Reserve(ctx, s.req.Caller, n)
}

// prepare writes the head.
func (s *stream) prepare(ctx context.Context, alias string) error {
	var w dsl.FilterWriter
	var err error
	if w.Values, err = s.x.patternValues(ctx, alias, []filterGroup{{documents: s.req.Filter}}); err != nil {
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
	s.head = fmt.Appendf(nil, `{"query":%s,"sort":[`, w.Write(nil, s.req.Filter))
	for _, key := range s.req.Sort {
		s.head = append(dsl.AppendSort(s.head, key, byID), ',')
	}
	s.head = fmt.Appendf(s.head, `"%s"]`, s.pit.Engine().Tiebreaker)
	if needsScores(s.pit.Engine(), s.req.Sort) {
		s.head = append(s.head, scoresMember...)
	}
	return w.Err
}

// page reads the next page, of at most limit bytes, into a buffer whose bytes the hits share. last reports that no page follows.
func (s *stream) page(ctx context.Context, size int, limit int64, into *bytes.Buffer) (hits []index.Hit, last bool, err error) {
	source := s.meanSize.choose(s.req.Source, size)
	full := s.pit.PageSize(size)
	body := fmt.Appendf(s.pit.AppendPage(slices.Clone(s.head), size), `%s}`, dsl.AppendSource(nil, source, s.pit.Engine()))
	reply, err := s.x.client.DoWithin(ctx, transport.SearchRequest(body), into, limit)
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
	if err := s.pit.SetTotal(a.Total, a.HasTotal); err != nil {
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
