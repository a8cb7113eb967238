package search

import (
	"bytes"
	"context"
	"fmt"

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
	s, err := x.newStream(ctx, alias, req)
	if err != nil {
		return err
	}
	if s.pit, err = x.client.OpenPIT(ctx, alias); err != nil {
		return transport.AsSearchError(err)
	}
	defer func() { x.client.ClosePIT(ctx, s.pit) }()
	into := x.client.GetBuffer()
	defer func() { x.client.PutBuffer(into) }()
	for size := firstStreamPage; ; {
		into.Reset()
		hits, err := s.page(ctx, size, into)
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
		if len(hits) < size {
			return nil
		}
		size = max(1, min(maxStreamPage, maxStreamPageBytes/(into.Len()/len(hits)+1)))
	}
}

// stream is one call of Stream.
type stream struct {
	x   *Searcher
	req index.StreamRequest
	// head is the part of the body that all pages share.
	head     []byte
	meanSize *meanSize
	pit      string
	after    []byte
}

func (x *Searcher) newStream(ctx context.Context, alias string, req index.StreamRequest) (*stream, error) {
	s := &stream{x: x, req: req, meanSize: &x.stats(alias).meanSize}
	var w dsl.FilterWriter
	var err error
	if w.Values, err = x.patternValues(ctx, alias, []*query.Node{req.Filter}); err != nil {
		return nil, err
	}
	byID := dsl.ShardDoc
	if dsl.IDKey(req.Sort) >= 0 {
		id, err := x.idFieldOf(ctx, alias)
		if err != nil {
			return nil, err
		}
		if id.path != dsl.SeqNo {
			byID = id.path
		}
	}
	order := []byte(`["_shard_doc"]`)
	if len(req.Sort) > 0 {
		order = dsl.AppendSorts(nil, req.Sort, byID) // the cluster appends _shard_doc
	}
	s.head = fmt.Appendf(nil, `{"track_total_hits":false,"query":%s,"sort":%s`, w.Write(nil, req.Filter), order)
	return s, w.Err
}

// page reads the next page into a buffer whose bytes the hits share.
func (s *stream) page(ctx context.Context, size int, into *bytes.Buffer) ([]index.Hit, error) {
	after := ""
	if s.after != nil {
		after = fmt.Sprintf(`,"search_after":%s`, s.after)
	}
	source := s.meanSize.choose(s.req.Source, size)
	body := fmt.Appendf(nil, `%s,"size":%d%s%s%s}`, s.head, size, transport.AppendPIT(nil, s.pit), after, dsl.AppendSource(nil, source))
	reply, err := s.x.client.Do(ctx, transport.SearchRequest(body), into)
	if err != nil {
		return nil, transport.AsSearchError(err)
	}
	var hits []index.Hit
	r := dsl.HitsReader{Source: source, SortKeys: len(s.req.Sort), Copy: func(b []byte) []byte { return b }}
	c := dsl.Reader{Data: reply.Body}
	a := dsl.Response{ReadHits: func(c *dsl.Reader) { hits = r.Read(c) }}
	a.Read(&c)
	if a.PIT != "" {
		s.pit = a.PIT
	}
	if err := a.Check(&c); err != nil {
		return nil, err
	}
	if len(hits) > 0 && r.LastSort == nil {
		return nil, transport.UnexpectedResponse()
	}
	s.after = bytes.Clone(r.LastSort)
	dsl.NullMissing(hits, s.req.Sort)
	if !source.None && source.Paths == nil {
		s.meanSize.observe(len(hits), r.SourceBytes)
	}
	return hits, nil
}
