package elastic

import (
	"bytes"
	"context"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

const (
	// idsFilterPath leaves nothing of an answer but what is read, which makes long lists of ids cheaper. It is for answers without
	// sources alone: with it the cluster would write each of these anew.
	idsFilterPath = "timed_out,_shards.failed,hits.total,hits.hits._id,hits.hits.sort,aggregations,error,status"
	// hitsHeader and countsHead say of one search of several what requestOf says of one alone; counts are kept by the cluster until
	// the index changes.
	hitsHeader   = `{"allow_partial_search_results":false}` + "\n"
	countsHeader = `{"allow_partial_search_results":false,"request_cache":true}` + "\n"
)

// Search answers reqs in one round trip: documents by one search for each request, totals and facets by one for each distinct
// filter, which the cluster keeps for the next time. Facets with more values than fit one answer, histograms beside them,
// patterns of addresses and documents that are too large together cost further ones.
func (x *Index) Search(ctx context.Context, alias string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	if alias == "" {
		return nil, core.NewError(core.CodeInvalid, "the index has no name")
	}
	leave, err := x.begin(alias)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := checkSearch(reqs); err != nil {
		return nil, err
	}
	sources := &x.state(alias).meanSize
	if err := x.sampleSizes(ctx, alias, reqs); err != nil {
		return nil, err
	}
	reqs = chooseSources(reqs, sources)
	for _, req := range reqs {
		if req.Hits != nil { // which are of this call alone
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

// sortsByID tells whether an answer to reqs has documents in the order of their ids.
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

// execute sends searches and reads the answers, by fewer searches at a time where all answers together are longer than one may be. The
// error of one search is kept with it when its answer alone is too long, or would have held too many buckets, as that has a
// remedy; any other is given.
func (x *Index) execute(ctx context.Context, alias string, searches []*subsearch) error {
	err := x.sendSearches(ctx, alias, searches)
	switch half := len(searches) / 2; {
	case !isOverLimit(err):
		return err
	case half > 0:
		if err := x.execute(ctx, alias, searches[:half]); err != nil {
			return err
		}
		return x.execute(ctx, alias, searches[half:])
	default:
		searches[0].err = tooLarge(err)
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
			return tooLarge(nil)
		}
	}
	into := x.buffer()
	defer x.recycle(into)
	reply, err := x.client.do(ctx, newSearchRequest(alias, searches), into)
	if err != nil {
		err = asSearchError(err)
		if len(searches) == 1 && typeOf(err) == typeTooManyBuckets {
			searches[0].err = err
			return nil
		}
		return err
	}
	c := jsonReader{data: reply.body}
	keep := new(arena).copy
	if len(searches) == 1 {
		return searches[0].read(&c, keep)
	}
	return readMsearch(&c, searches, keep)
}

// newSearchRequest returns the request of one search or of several. Of several esapi names the index twice, in the address and in a
// parameter.
func newSearchRequest(alias string, searches []*subsearch) esapi.Request {
	if len(searches) > 1 {
		return esapi.MsearchRequest{
			Index: []string{alias}, Body: bytes.NewReader(msearchBody(searches)), Header: http.Header{contentType: {contentNDJSON}},
		}
	}
	r := searchRequest(searches[0].body, alias)
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

// msearchBody gives the body of many searches.
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
		return unexpectedResponse()
	default:
		return nil
	}
}

// subsearch is one search of an inquiry: of documents, or of counts.
type subsearch struct {
	body []byte
	// filter is what the documents match, nil for all.
	filter *query.Node
	// hits takes the documents; nil for a search of counts.
	hits *hitsTask
	// totals take the number of documents.
	totals []*index.SearchResult
	facets []*facetTask
	// err is set when the answer would have held too many buckets, or too many bytes.
	err error
}

// hitsTask is what one search of documents is for.
type hitsTask struct {
	request *index.HitsRequest
	into    *index.SearchResult
	// idKey is the place of the key of the order that stands for ids by a field, -1 for none.
	idKey        int
	wrongIDField bool
	// seqNo is set where the order goes by sequence numbers.
	seqNo *seqNoSort
	err   error
	// sourceBytes is how many bytes the documents had.
	sourceBytes int64
	// budget is that of the inquiry.
	budget *int64
}

// facetTask is a facet, and those who asked for it.
type facetTask struct {
	facetReader
	results []*index.FacetResult
	// body tells equal ones.
	body []byte
}

// read reads the answer to s.
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
		if typeOf(err) == typeTooManyBuckets {
			s.err = err
			return nil
		}
		return err
	}
	if s.hits != nil && s.hits.err != nil {
		return s.hits.err
	}
	if len(s.totals) > 0 && !a.hasTotal {
		return unexpectedResponse()
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

// readers gives those who read the facets of s, which keep what they need by keep.
func (s *subsearch) readers(keep func([]byte) []byte) []*facetReader {
	readers := make([]*facetReader, len(s.facets))
	for i, task := range s.facets {
		task.keep = keep
		readers[i] = &task.facetReader
	}
	return readers
}

// unexpectedResponse is the error of an answer in another form than that of an answer to the question.
func unexpectedResponse() error {
	return core.NewError(core.CodeUnavailable, "the answer of the index is not what was asked for")
}

func (t *hitsTask) read(c *jsonReader, keep func([]byte) []byte) {
	r := hitsReader{source: t.request.Source, sortKeys: len(t.request.Sort), copy: keep, readSource: t.request.Read, maxHits: t.request.Size}
	if t.seqNo != nil {
		r.sortKeys, r.withIndex = t.seqNo.keys(), true
	}
	t.into.Hits = r.read(c)
	if t.seqNo != nil && !t.seqNo.seal(t.into.Hits, r.indices, len(t.request.Sort)) {
		t.err = unexpectedResponse()
	}
	t.sourceBytes = r.sourceBytes
	*t.budget -= r.keptBytes
	nullMissing(t.into.Hits, t.request.Sort)
	if t.idKey < 0 {
		return
	}
	for _, hit := range t.into.Hits {
		if t.idKey >= len(hit.Sort) || !bytes.Equal(bytes.TrimSpace(hit.Sort[t.idKey]), appendString(nil, hit.ID)) &&
			decodeString(hit.Sort[t.idKey]) != hit.ID {
			t.wrongIDField = true
		}
	}
}
