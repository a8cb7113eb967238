package elastic

import (
	"bytes"
	"context"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/filter/query"
	"tutti/internal/index"
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

// Search evaluates reqs in one round trip: one search for the documents of each request, and one for the totals and facets of
// each distinct filter, which the cluster caches. Facets with more values than fit one response, histograms besides them,
// patterns of addresses, and documents over the response limit need further round trips.
func (x *Index) Search(ctx context.Context, alias string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	end, err := x.client.Begin(alias)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := checkSearch(reqs); err != nil {
		return nil, err
	}
	sources := &x.state(alias).meanSize
	if err := x.sampleSizes(ctx, alias, reqs); err != nil {
		return nil, err
	}
	reqs = chooseSources(reqs, sources)
	for _, req := range reqs {
		if req.Hits != nil { // a copy of this call's own
			req.Hits.After = restoreMissing(req.Hits.After, req.Hits.Sort)
		}
	}
	values, err := x.patternValues(ctx, alias, filtersOf(reqs))
	if err != nil {
		return nil, err
	}
	for {
		room := x.maxSourceBytes
		p := searchPlan{filter: filterWriter{values: values}, results: newResults(reqs), budget: &room}
		if sortsByID(reqs) {
			if err := x.prepareIDSort(ctx, alias, reqs, &p); err != nil {
				return nil, err
			}
		}
		p.build(reqs)
		if p.filter.err != nil {
			return nil, p.filter.err
		}
		if err := x.execute(ctx, alias, p.searches); err != nil {
			return nil, err
		}
		if err := x.splitOversized(ctx, alias, &p); err != nil {
			return nil, err
		}
		if err := x.finish(ctx, alias, &p); err != nil {
			return nil, err
		}
		if !p.wrongIDField() {
			observeSizes(p.searches, sources)
			return p.results, nil
		}
		x.rejectIDField(alias)
	}
}

// sortsByID reports whether a result of reqs is sorted by id.
func sortsByID(reqs []index.SearchRequest) bool {
	for i := range reqs {
		if h := reqs[i].Hits; h != nil && idKey(h.Sort) >= 0 {
			return true
		}
		for j := range reqs[i].Facets {
			if b := reqs[i].Facets[j].Buckets; b != nil && b.TopHits > 0 {
				return true
			}
		}
	}
	return false
}

// execute sends searches and reads the responses. It halves the list when the whole response is over the limit. Of a single
// search, a response over the limit or with too many buckets is stored in its err, as it can be split further; any other error is
// returned.
func (x *Index) execute(ctx context.Context, alias string, searches []*subsearch) error {
	err := x.sendSearches(ctx, alias, searches)
	switch half := len(searches) / 2; {
	case !transport.IsOverLimit(err):
		return err
	case half > 0:
		if err := x.execute(ctx, alias, searches[:half]); err != nil {
			return err
		}
		return x.execute(ctx, alias, searches[half:])
	default:
		searches[0].err = transport.TooLarge(err)
		return nil
	}
}

// sendSearches sends searches in one request.
func (x *Index) sendSearches(ctx context.Context, alias string, searches []*subsearch) error {
	if len(searches) == 0 {
		return nil
	}
	for _, s := range searches {
		if s.hits != nil && *s.hits.budget < 0 {
			return transport.TooLarge(nil)
		}
	}
	into := x.client.GetBuffer()
	defer x.client.PutBuffer(into)
	reply, err := x.client.Do(ctx, newSearchRequest(alias, searches), into)
	if err != nil {
		err = transport.AsSearchError(err)
		if len(searches) == 1 && transport.TypeOf(err) == transport.TypeTooManyBuckets {
			searches[0].err = err
			return nil
		}
		return err
	}
	c := jsonReader{data: reply.Body}
	keep := new(arena).copy
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

func readMsearch(c *jsonReader, searches []*subsearch, keep func([]byte) []byte) error {
	place := 0
	var first error
	c.object(func(name []byte) {
		if string(name) != "responses" {
			return
		}
		c.array(func() {
			if place < len(searches) && first == nil {
				first = searches[place].read(c, keep)
			}
			place++
		})
	})
	switch {
	case first != nil:
		return first
	case c.bad || place != len(searches):
		return transport.UnexpectedResponse()
	default:
		return nil
	}
}

// subsearch is one search of a plan: for documents, or for counts.
type subsearch struct {
	body []byte
	// filter selects the documents, nil for all.
	filter *query.Node
	// hits receives the documents; nil for a count search.
	hits *hitsTask
	// totals receive the number of documents.
	totals []*index.SearchResult
	facets []*facetTask
	// err is set when the response would have too many buckets or is over the limit of bytes.
	err error
}

// hitsTask is the part of a search for documents.
type hitsTask struct {
	request *index.HitsRequest
	into    *index.SearchResult
	// idKey is the index of the sort key for which a field replaces the id, -1 for none.
	idKey        int
	wrongIDField bool
	// seqNo is set when the order uses sequence numbers.
	seqNo *seqNoSort
	err   error
	// sourceBytes is the total size of the documents.
	sourceBytes int64
	// budget is the plan's.
	budget *int64
}

// facetTask is a facet and the results that it is for.
type facetTask struct {
	facetReader
	results []*index.FacetResult
	// body is the aggregation's body, to find equal facets.
	body []byte
}

// read reads the response to s.
func (s *subsearch) read(c *jsonReader, keep func([]byte) []byte) error {
	var a searchResponse
	if s.hits != nil {
		a.readHits, a.filtered = func(c *jsonReader) { s.hits.read(c, keep) }, s.hits.request.Source.None
	}
	if len(s.facets) > 0 {
		a.readAggs = func(c *jsonReader) { readFacets(c, s.readers(keep)) }
	}
	a.read(c)
	if err := a.check(c); err != nil {
		if transport.TypeOf(err) == transport.TypeTooManyBuckets {
			s.err = err
			return nil
		}
		return err
	}
	if s.hits != nil && s.hits.err != nil {
		return s.hits.err
	}
	if len(s.totals) > 0 && !a.hasTotal {
		return transport.UnexpectedResponse()
	}
	for _, into := range s.totals {
		into.Total = a.total
	}
	for _, task := range s.facets {
		if task.err != nil {
			return task.err
		}
	}
	return nil
}

// readers returns the readers of s's facets, which copy bytes with keep.
func (s *subsearch) readers(keep func([]byte) []byte) []*facetReader {
	readers := make([]*facetReader, len(s.facets))
	for i, task := range s.facets {
		task.keep = keep
		readers[i] = &task.facetReader
	}
	return readers
}

func (t *hitsTask) read(c *jsonReader, keep func([]byte) []byte) {
	r := hitsReader{source: t.request.Source, sortKeys: len(t.request.Sort), copy: keep, readSource: t.request.Read, maxHits: t.request.Size}
	if t.seqNo != nil {
		r.sortKeys, r.withIndex = t.seqNo.keys(), true
	}
	t.into.Hits = r.read(c)
	if t.seqNo != nil && !t.seqNo.seal(t.into.Hits, r.indices, len(t.request.Sort)) {
		t.err = transport.UnexpectedResponse()
	}
	t.sourceBytes = r.sourceBytes
	*t.budget -= r.keptBytes
	nullMissing(t.into.Hits, t.request.Sort)
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
