package search

import (
	"bytes"
	"context"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/index/elastic/dsl"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/jsontext"
)

const (
	// idsFilterPath requests only what is read, which makes long lists of ids cheaper. It is only for responses without sources,
	// which the cluster would otherwise encode again.
	idsFilterPath = "timed_out,_shards.failed,hits.total,hits.hits._id,hits.hits.sort,aggregations,error,status"
	// hitsHeader and countsHeader are the headers of searches in an msearch body; the parameters are those of newSearchRequest.
	// The cluster caches counts until the index changes.
	hitsHeader   = `{"allow_partial_search_results":false}` + "\n"
	countsHeader = `{"allow_partial_search_results":false,"request_cache":true}` + "\n"
)

// run sends the plan's searches and completes the results: documents over the response limit and facets with too many values need
// further requests.
func (p *searchPlan) run(ctx context.Context) error {
	if err := p.execute(ctx, p.searches); err != nil {
		return err
	}
	if err := p.splitOversized(ctx); err != nil {
		return err
	}
	return p.finish(ctx)
}

// finish copies the results of facets to all requests for them, after further searches for what did not fit one response.
func (p *searchPlan) finish(ctx context.Context) error {
	for _, s := range slices.Clone(p.searches) {
		if s.err != nil {
			if err := p.splitFacets(ctx, s); err != nil {
				return err
			}
		}
		for _, task := range s.facets {
			if err := p.readAllBuckets(ctx, s, task); err != nil {
				return err
			}
			for _, result := range task.results {
				*result = task.Into
			}
		}
	}
	return nil
}

// execute sends searches and reads the responses. It halves the list when the whole response is over the limit. Of a single
// search, a response over the limit or with too many buckets is stored in its err, as it can be split further; any other error is
// returned.
func (p *searchPlan) execute(ctx context.Context, searches []*subsearch) error {
	err := p.sendSearches(ctx, searches)
	switch half := len(searches) / 2; {
	case !transport.IsOverLimit(err):
		return err
	case half > 0:
		if err := p.execute(ctx, searches[:half]); err != nil {
			return err
		}
		return p.execute(ctx, searches[half:])
	default:
		searches[0].err = transport.TooLarge(err)
		return nil
	}
}

// sendSearches sends searches in one request.
func (p *searchPlan) sendSearches(ctx context.Context, searches []*subsearch) error {
	if len(searches) == 0 {
		return nil
	}
	for _, s := range searches {
		if s.hits != nil && *s.hits.budget < 0 {
			return transport.TooLarge(nil)
		}
	}
	into := p.client.GetBuffer()
	defer p.client.PutBuffer(into)
	reply, err := p.client.Do(ctx, newSearchRequest(p.alias, searches), into)
	if err != nil {
		err = transport.AsSearchError(err)
		if len(searches) == 1 && transport.TypeOf(err) == transport.TypeTooManyBuckets {
			searches[0].err = err
			return nil
		}
		return err
	}
	c := dsl.Reader{Data: reply.Body}
	keep := new(dsl.Arena).Copy
	if len(searches) == 1 {
		return searches[0].read(&c, keep)
	}
	return readMsearch(&c, searches, keep)
}

// newSearchRequest returns the request of one or several searches. For several, esapi puts the index both in the path and in a
// parameter.
func newSearchRequest(alias string, searches []*subsearch) esapi.Request {
	if len(searches) > 1 {
		return esapi.MsearchRequest{
			Index: []string{alias}, Body: bytes.NewReader(msearchBody(searches)), Header: transport.NDJSON(),
		}
	}
	r := transport.SearchRequest(searches[0].body, alias)
	switch h := searches[0].hits; {
	case h == nil:
		r.RequestCache = new(true)
	case h.request.Source.None && h.seqNo != nil:
		r.FilterPath = []string{idsFilterPath, "hits.hits._index"}
	case h.request.Source.None:
		r.FilterPath = []string{idsFilterPath}
	}
	return r
}

// msearchBody returns the body of several searches.
func msearchBody(searches []*subsearch) []byte {
	size := 0
	for _, s := range searches {
		size += len(countsHeader) + len(s.body) + 1
	}
	body := make([]byte, 0, size)
	for _, s := range searches {
		head := hitsHeader
		if s.hits == nil {
			head = countsHeader
		}
		body = append(body, head...)
		body = append(body, s.body...)
		body = append(body, '\n')
	}
	return body
}

func readMsearch(c *dsl.Reader, searches []*subsearch, keep func([]byte) []byte) error {
	place := 0
	var first error
	c.Object(func(name []byte) {
		if string(name) != "responses" {
			return
		}
		c.Array(func() {
			if place < len(searches) && first == nil {
				first = searches[place].read(c, keep)
			}
			place++
		})
	})
	switch {
	case first != nil:
		return first
	case c.Bad || place != len(searches):
		return transport.UnexpectedResponse()
	default:
		return nil
	}
}

// read reads the response to s.
func (s *subsearch) read(c *dsl.Reader, keep func([]byte) []byte) error {
	var a dsl.Response
	if s.hits != nil {
		a.ReadHits, a.Filtered = func(c *dsl.Reader) { s.hits.read(c, keep) }, s.hits.request.Source.None
	}
	if len(s.facets) > 0 {
		a.ReadAggs = func(c *dsl.Reader) { dsl.ReadFacets(c, s.readers(keep)) }
	}
	a.Read(c)
	if err := a.Check(c); err != nil {
		if transport.TypeOf(err) == transport.TypeTooManyBuckets {
			s.err = err
			return nil
		}
		return err
	}
	if s.hits != nil && s.hits.err != nil {
		return s.hits.err
	}
	if len(s.totals) > 0 && !a.HasTotal {
		return transport.UnexpectedResponse()
	}
	for _, into := range s.totals {
		into.Total = a.Total
	}
	for _, task := range s.facets {
		if task.Err != nil {
			return task.Err
		}
	}
	return nil
}

// readers returns the readers of s's facets, which copy bytes with keep.
func (s *subsearch) readers(keep func([]byte) []byte) []*dsl.FacetReader {
	readers := make([]*dsl.FacetReader, len(s.facets))
	for i, task := range s.facets {
		task.Copy = keep
		readers[i] = &task.FacetReader
	}
	return readers
}

func (t *hitsTask) read(c *dsl.Reader, keep func([]byte) []byte) {
	r := dsl.HitsReader{Source: t.request.Source, SortKeys: len(t.request.Sort), Copy: keep, ReadSource: t.request.Read, MaxHits: t.request.Size}
	if t.seqNo != nil {
		r.SortKeys, r.WithIndex = t.seqNo.keys(), true
	}
	t.into.Hits = r.Read(c)
	if t.seqNo != nil && !t.seqNo.seal(t.into.Hits, r.Indices, len(t.request.Sort)) {
		t.err = transport.UnexpectedResponse()
	}
	t.sourceBytes = r.SourceBytes
	*t.budget -= r.KeptBytes
	dsl.NullMissing(t.into.Hits, t.request.Sort)
	if t.idKey < 0 {
		return
	}
	for _, hit := range t.into.Hits {
		if t.idKey >= len(hit.Sort) || !bytes.Equal(bytes.TrimSpace(hit.Sort[t.idKey]), jsontext.AppendRawString(nil, hit.ID)) &&
			jsontext.Unquote(hit.Sort[t.idKey]) != hit.ID {
			t.wrongIDField = true
		}
	}
}
