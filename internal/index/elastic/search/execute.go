package search

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
	"tutti/internal/index/elastic/transport"
)

const (
	// maxHitsBytes bounds a response with several documents, and the documents that the cluster reads for it. Parts of a larger page have
	// at most maxStreamPageBytes.
	maxHitsBytes = 16 << 20
	// maxResponseBytes bounds a response that cannot be split: one document, counts, or only ids.
	maxResponseBytes = 64 << 20
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
	if err := p.execute(ctx, slices.DeleteFunc(slices.Clone(p.searches), p.splits)); err != nil {
		return err
	}
	for _, s := range p.searches {
		if s.hits == nil || s.err == nil {
			continue
		}
		if err := p.readInParts(ctx, s); err != nil {
			return err
		}
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
	into := p.buffer
	if into == nil {
		into = p.client.GetBuffer()
		defer p.client.PutBuffer(into)
	}
	into.Reset()
	limit := p.limit(searches)
	var grow transport.Grow
	if searches[0].point == nil { // a page in parts has reserved what it needs
		grow = p.memory.response(ctx, limit)
	}
	reply, err := p.client.DoGrowing(ctx, newSearchRequest(p.alias, searches), into, limit, grow)
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
		err = searches[0].read(&c, keep)
	} else {
		err = readMsearch(&c, searches, keep)
	}
	for _, s := range searches {
		if s.hits != nil {
			p.memory.hold(s.hits.into.Hits)
		} else {
			p.memory.held += int64(len(reply.Body) / len(searches))
		}
	}
	if err == nil && p.budget != nil && *p.budget < 0 {
		return p.overBudget()
	}
	return err
}

// limit returns how many bytes the response to searches may have.
func (p *searchPlan) limit(searches []*subsearch) int64 {
	largest := min(p.client.MaxResponseBytes(), maxResponseBytes)
	switch h := searches[0].hits; {
	case len(searches) == 1 && (h == nil || h.request.Size < 2 || h.request.Source.None): // cannot be split
		return largest
	case searches[0].point != nil:
		return min(maxStreamPageBytes, largest)
	default:
		return min(maxHitsBytes, largest)
	}
}

// overBudget returns the error of documents that are together over the limit.
func (p *searchPlan) overBudget() error {
	return &core.Error{
		Code: core.CodeInvalid, Message: fmt.Sprintf("the documents of the result are larger than %d bytes", p.maxBytes),
		Hint: "request fewer documents, or fewer of their fields",
	}
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
	if searches[0].point != nil {
		return transport.SearchRequest(searches[0].body)
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
	if s.point != nil {
		s.point.SetID(a.PIT)
	}
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

// readInParts requests the documents of s, which are too large for one response, in several, as of one point in time: a document that is
// written in between is in one part only.
func (p *searchPlan) readInParts(ctx context.Context, s *subsearch) error {
	h := *s.hits.request
	if h.Size < 2 {
		return s.err
	}
	if err := p.memory.need(ctx, p.meanSize.inParts(p.maxBytes)); err != nil {
		return err
	}
	point, err := p.client.OpenPIT(ctx, p.alias)
	if err != nil {
		return transport.AsSearchError(err)
	}
	defer point.Close(ctx)
	p.buffer = p.client.GetBuffer()
	defer func() { p.client.PutBuffer(p.buffer); p.buffer = nil }()
	s.err, s.hits.into.Hits = nil, nil
	most := p.meanSize.part(h.Source)
	for size := min(most, h.Size/2); h.Size > 0; {
		asked := h
		asked.Size = min(size, h.Size)
		part, err := p.readPart(ctx, s, &asked, point)
		switch over := transport.IsOverLimit(err); {
		case over && asked.Size > 1:
			size = asked.Size / 2
			continue
		case over:
			return transport.TooLarge(err)
		case err != nil:
			return err
		}
		found := part.hits.into.Hits
		s.hits.into.Hits = append(s.hits.into.Hits, found...)
		if len(found) < asked.Size || notNeeded(found[len(found)-1]) {
			return nil
		}
		if h.Size -= asked.Size; len(h.After) > 0 {
			h.After = dsl.RestoreMissing(found[len(found)-1].Sort, h.Sort)
		} else {
			h.From += asked.Size
		}
		if 2*part.hits.sourceBytes < maxStreamPageBytes {
			size = min(most, 2*asked.Size)
		}
	}
	return nil
}

// notNeeded reports whether no document from hit on is needed (index.HitsRequest.Read).
func notNeeded(hit index.Hit) bool { return hit.Read && len(hit.Source) == 0 }

// readPart requests some of the documents of s, and their total number in the first part.
func (p *searchPlan) readPart(ctx context.Context, s *subsearch, h *index.HitsRequest, point *transport.PIT) (*subsearch, error) {
	q := *p
	q.searches, q.results, q.positions = nil, nil, nil
	var from *position
	if s.hits.seqNo != nil {
		from = p.cursors.position(p.alias, idCursor(h))
	}
	first := len(s.totals) > 0 && s.hits.sourceBytes == 0
	var into index.SearchResult
	q.addHits(&index.SearchRequest{Filter: s.filter, Hits: h}, q.filter.Write(nil, s.filter), from, &into, first)
	part := q.searches[0]
	part.point = point
	part.body = append(point.Append(part.body[:len(part.body)-1]), '}')
	if err := q.sendSearches(ctx, q.searches); err != nil {
		return nil, err
	}
	if first {
		for _, to := range s.totals {
			to.Total = into.Total
		}
	}
	s.hits.wrongIDField = s.hits.wrongIDField || part.hits.wrongIDField
	s.hits.sourceBytes += part.hits.sourceBytes
	return part, nil
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
	if string(selected) == dsl.MatchAll && f.Field.Row() == "" {
		selected = []byte(dsl.MatchEach)
	}
	w := dsl.FacetWriter{Filter: &p.filter, IDField: p.idField, Engine: p.engine}
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
	limit := min(p.client.MaxResponseBytes(), maxResponseBytes)
	reply, err := p.client.DoGrowing(ctx, transport.SearchRequest(body), into, limit, p.memory.response(ctx, limit))
	switch {
	case transport.IsOverLimit(err):
		return transport.TooLarge(err)
	case err != nil:
		return transport.AsSearchError(err)
	}
	reader.Copy = new(dsl.Arena).Copy
	c := dsl.Reader{Data: reply.Body}
	a := dsl.Response{ReadAggs: func(c *dsl.Reader) { dsl.ReadFacets(c, []*dsl.FacetReader{reader}) }}
	a.Read(&c)
	point.SetID(a.PIT)
	return a.Check(&c)
}
