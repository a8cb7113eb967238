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
	// idsFilter leaves nothing of an answer but what is read, which makes long lists of ids cheaper. It is for answers without
	// sources alone: with it the cluster would write each of these anew.
	idsFilter = "timed_out,_shards.failed,hits.total,hits.hits._id,hits.hits.sort,aggregations,error,status"
	// hitsHead and countsHead say of one search of several what requestOf says of one alone; counts are kept by the cluster until
	// the index changes.
	hitsHead   = `{"allow_partial_search_results":false}` + "\n"
	countsHead = `{"allow_partial_search_results":false,"request_cache":true}` + "\n"
)

// Search answers reqs in one round trip: documents by one search for each request, totals and facets by one for each distinct
// filter, which the cluster keeps for the next time. Facets with more values than fit one answer, histograms beside them,
// patterns of addresses and documents that are too large together cost further ones.
func (x *Index) Search(ctx context.Context, alias string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	if alias == "" {
		return nil, core.NewError(core.CodeInvalid, "the index has no name")
	}
	leave, err := x.enter(alias)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := checkSearch(reqs); err != nil {
		return nil, err
	}
	sources := &x.state(alias).sources
	if err := x.weighSome(ctx, alias, reqs); err != nil {
		return nil, err
	}
	reqs = cheapest(reqs, sources)
	for _, req := range reqs {
		if req.Hits != nil { // which are of this call alone
			req.Hits.After = resumed(req.Hits.After, req.Hits.Sort)
		}
	}
	values, err := x.valuesOf(ctx, alias, filtersOf(reqs))
	if err != nil {
		return nil, err
	}
	for {
		room := x.room
		p := inquiry{filter: filterWriter{values: values}, results: newResults(reqs), room: &room}
		if ordered(reqs) {
			if err := x.orderIDs(ctx, alias, reqs, &p); err != nil {
				return nil, err
			}
		}
		p.make(reqs)
		if p.filter.err != nil {
			return nil, p.filter.err
		}
		if err := x.ask(ctx, alias, p.searches); err != nil {
			return nil, err
		}
		if err := x.shorten(ctx, alias, &p); err != nil {
			return nil, err
		}
		if err := x.finish(ctx, alias, &p); err != nil {
			return nil, err
		}
		if !p.misled() {
			weigh(p.searches, sources)
			return p.results, nil
		}
		x.distrust(alias)
	}
}

// ordered tells whether an answer to reqs has documents in the order of their ids.
func ordered(reqs []index.SearchRequest) bool {
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

// ask sends searches and reads the answers, by fewer searches at a time where all answers together are longer than one may be. The
// error of one search is kept with it when its answer alone is too long, or would have held too many buckets, as that has a
// remedy; any other is given.
func (x *Index) ask(ctx context.Context, alias string, searches []*search) error {
	err := x.askTogether(ctx, alias, searches)
	switch half := len(searches) / 2; {
	case !overLimit(err):
		return err
	case half > 0:
		if err := x.ask(ctx, alias, searches[:half]); err != nil {
			return err
		}
		return x.ask(ctx, alias, searches[half:])
	default:
		searches[0].fault = tooMuch(err)
		return nil
	}
}

// askTogether sends searches in one request.
func (x *Index) askTogether(ctx context.Context, alias string, searches []*search) error {
	if len(searches) == 0 {
		return nil
	}
	for _, s := range searches {
		if s.hits != nil && *s.hits.room < 0 {
			return tooMuch(nil)
		}
	}
	into := x.buffer()
	defer x.recycle(into)
	reply, err := x.client.do(ctx, requestOf(alias, searches), into)
	if err != nil {
		err = ofSearch(err)
		if len(searches) == 1 && typeOf(err) == typeTooManyBuckets {
			searches[0].fault = err
			return nil
		}
		return err
	}
	c := cursor{data: reply.body}
	keep := new(arena).copy
	if len(searches) == 1 {
		return searches[0].read(&c, keep)
	}
	return readSeveral(&c, searches, keep)
}

// requestOf returns the request of one search or of several. Of several esapi names the index twice, in the address and in a
// parameter.
func requestOf(alias string, searches []*search) esapi.Request {
	if len(searches) > 1 {
		return esapi.MsearchRequest{
			Index: []string{alias}, Body: bytes.NewReader(several(searches)), Header: http.Header{contentType: {contentNDJSON}},
		}
	}
	r := searchRequest(searches[0].body, alias)
	switch h := searches[0].hits; {
	case h == nil:
		r.RequestCache = new(true)
	case h.request.Source.None && h.numbered != nil:
		r.FilterPath = []string{idsFilter, "hits.hits._index"}
	case h.request.Source.None:
		r.FilterPath = []string{idsFilter}
	}
	return r
}

// several gives the body of many searches.
func several(searches []*search) []byte {
	size := 0
	for _, s := range searches {
		size += len(countsHead) + len(s.body) + 1
	}
	body := make([]byte, 0, size)
	for _, s := range searches {
		head := hitsHead
		if s.hits == nil {
			head = countsHead
		}
		body = append(body, head...)
		body = append(body, s.body...)
		body = append(body, '\n')
	}
	return body
}

func readSeveral(c *cursor, searches []*search, keep func([]byte) []byte) error {
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
		return notAsked()
	default:
		return nil
	}
}

// search is one search of an inquiry: of documents, or of counts.
type search struct {
	body []byte
	// filter is what the documents match, nil for all.
	filter *query.Node
	// hits takes the documents; nil for a search of counts.
	hits *hitsTask
	// totals take the number of documents.
	totals []*index.SearchResult
	facets []*facetTask
	// fault is set when the answer would have held too many buckets, or too many bytes.
	fault error
}

// hitsTask is what one search of documents is for.
type hitsTask struct {
	request *index.HitsRequest
	into    *index.SearchResult
	// identity is the place of the key of the order that stands for ids by a field, -1 for none.
	identity int
	misled   bool
	// numbered is set where the order goes by sequence numbers.
	numbered *numbered
	fault    error
	// weight is how many bytes the documents had.
	weight int64
	// room is that of the inquiry.
	room *int64
}

// facetTask is a facet, and those who asked for it.
type facetTask struct {
	facetReader
	results []*index.FacetResult
	// asked tells equal ones.
	asked []byte
}

// read reads the answer to s.
func (s *search) read(c *cursor, keep func([]byte) []byte) error {
	var a searchAnswer
	if s.hits != nil {
		a.hits, a.cut = func(c *cursor) { s.hits.read(c, keep) }, s.hits.request.Source.None
	}
	if len(s.facets) > 0 {
		a.aggs = func(c *cursor) { readFacets(c, s.readers(keep)) }
	}
	a.read(c)
	if err := a.whole(c); err != nil {
		if typeOf(err) == typeTooManyBuckets {
			s.fault = err
			return nil
		}
		return err
	}
	if s.hits != nil && s.hits.fault != nil {
		return s.hits.fault
	}
	if len(s.totals) > 0 && !a.counted {
		return notAsked()
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
func (s *search) readers(keep func([]byte) []byte) []*facetReader {
	readers := make([]*facetReader, len(s.facets))
	for i, task := range s.facets {
		task.keep = keep
		readers[i] = &task.facetReader
	}
	return readers
}

// notAsked is the error of an answer in another form than that of an answer to the question.
func notAsked() error {
	return core.NewError(core.CodeUnavailable, "the answer of the index is not what was asked for")
}

func (t *hitsTask) read(c *cursor, keep func([]byte) []byte) {
	r := hitsReader{source: t.request.Source, keys: len(t.request.Sort), keep: keep, take: t.request.Read, most: t.request.Size}
	if t.numbered != nil {
		r.keys, r.located = t.numbered.keys(), true
	}
	t.into.Hits = r.read(c)
	if t.numbered != nil && !t.numbered.seal(t.into.Hits, r.indices, len(t.request.Sort)) {
		t.fault = notAsked()
	}
	t.weight = r.weight
	*t.room -= r.kept
	sayAbsent(t.into.Hits, t.request.Sort)
	if t.identity < 0 {
		return
	}
	for _, hit := range t.into.Hits {
		if t.identity >= len(hit.Sort) || !bytes.Equal(bytes.TrimSpace(hit.Sort[t.identity]), appendString(nil, hit.ID)) &&
			decoded(hit.Sort[t.identity]) != hit.ID {
			t.misled = true
		}
	}
}
