package search

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/jsontext"
)

const (
	// maxHitsBytes bounds a response with several documents, and the documents that the cluster reads for it.
	maxHitsBytes = 16 << 20
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
	searches = slices.DeleteFunc(slices.Clone(searches), p.splits)
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
	limit := int64(maxHitsBytes)
	if h := searches[0].hits; len(searches) == 1 && (h == nil || h.request.Size < 2 || h.request.Source.None) { // cannot be split
		limit = p.client.MaxResponseBytes()
	}
	reply, err := p.client.DoWithin(ctx, newSearchRequest(p.alias, searches), into, limit)
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

// splits reports whether the documents of s are too large to be requested at once, and sets the error with which they are split.
func (p *searchPlan) splits(s *subsearch) bool {
	if s.hits == nil || p.meanSize == nil {
		return false
	}
	h := s.hits.request
	if h.Size < 2 || h.Source.None || p.meanSize.bytes.Load()*int64(h.Size) <= maxHitsBytes {
		return false
	}
	s.err = transport.TooLarge(transport.ErrOverLimit)
	return true
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
		if len(p.facetBody("", &remaining)) > 0 {
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
		t.Into.Buckets, t.Into.Omitted = part.Into.Buckets, part.Into.Omitted
	case part.Facet.Histogram != 0:
		t.Into.Histogram = part.Into.Histogram
	default:
		all := t.Into
		t.Into = part.Into
		t.Into.Buckets, t.Into.Omitted, t.Into.Histogram = all.Buckets, all.Omitted, all.Histogram
	}
}

// maxPagedValues is the maximum number of values of a field that are read page by page, when one response cannot hold them.
const maxPagedValues = 1_000_000

// readAllBuckets reads the buckets of a facet again, page by page, if the field has more values than one response can hold, and
// keeps those with the most documents. Each page of maxBuckets values costs the cluster a pass over the documents; it happens
// only when more than maxBuckets values are requested.
func (p *searchPlan) readAllBuckets(ctx context.Context, s *subsearch, task *facetTask) error {
	if !task.More {
		return nil
	}
	f := task.Facet
	task.More = false
	var all []index.Bucket
	values := 0
	err := p.eachBucketPage(ctx, s.filter, f, func(page []index.Bucket) error {
		all, values = append(all, page...), values+len(page)
		if len(all) > 2*f.Buckets.Max {
			all = dsl.SortBuckets(f, all)
		}
		return nil
	})
	task.Into.Buckets = dsl.SortBuckets(f, all)
	if f.Buckets.Max == index.MaxBuckets {
		task.Into.Omitted = int64(values - len(task.Into.Buckets))
	}
	return err
}

// eachBucketPage calls each with all buckets of f in the documents that match filter, in pages ordered by value, as of one point
// in time. each may keep their bytes.
func (p *searchPlan) eachBucketPage(ctx context.Context, filter *query.Node, f *index.Facet, each func([]index.Bucket) error) error {
	point, err := p.client.OpenPIT(ctx, p.alias)
	if err != nil {
		return transport.AsSearchError(err)
	}
	defer func() { point.Close(ctx) }()
	selected := p.filter.Write(nil, filter)
	w := dsl.FacetWriter{Filter: &p.filter, IDField: p.idField}
	reader := dsl.FacetReader{Facet: f}
	for read := 0; ; {
		body := fmt.Appendf(nil, `{"size":0,"track_total_hits":false,"query":%s%s,"aggs":{%s}}`,
			selected, point.Append(nil), w.Page(dsl.FacetName(0), f, reader.After))
		reader.Into.Buckets, reader.After = nil, nil
		if err := p.readBucketPage(ctx, body, point, &reader); err != nil {
			return err
		}
		if read += len(reader.Into.Buckets); read > maxPagedValues {
			return core.NewError(core.CodeInvalid, fmt.Sprintf("the field %s has more than %d values", f.Field.Path, maxPagedValues))
		}
		if err := each(reader.Into.Buckets); err != nil {
			return err
		}
		if reader.After == nil {
			return nil
		}
	}
}

// readBucketPage reads one page of buckets.
func (p *searchPlan) readBucketPage(ctx context.Context, body []byte, point *transport.PIT, reader *dsl.FacetReader) error {
	into := p.client.GetBuffer()
	defer p.client.PutBuffer(into)
	reply, err := p.client.Do(ctx, transport.SearchRequest(body), into)
	if err != nil {
		return transport.AsSearchError(err)
	}
	reader.Copy = new(dsl.Arena).Copy
	c := dsl.Reader{Data: reply.Body}
	a := dsl.Response{ReadAggs: func(c *dsl.Reader) { dsl.ReadFacets(c, []*dsl.FacetReader{reader}) }}
	a.Read(&c)
	point.SetID(a.PIT)
	return a.Check(&c)
}
