package search

import (
	"bytes"
	"encoding/json"
	"fmt"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/elastic/transport"
)

// newResults returns empty results for reqs.
func newResults(reqs []index.SearchRequest) []index.SearchResult {
	results := make([]index.SearchResult, len(reqs))
	for i := range reqs {
		results[i].Facets = newFacetResults(reqs[i].Facets)
	}
	return results
}

func newFacetResults(facets []index.Facet) []index.FacetResult {
	if facets == nil {
		return nil
	}
	results := make([]index.FacetResult, len(facets))
	for i := range facets {
		results[i] = emptyFacet(&facets[i])
	}
	return results
}

func emptyFacet(f *index.Facet) index.FacetResult {
	var r index.FacetResult
	if f.Ranges != nil {
		r.Ranges = make([]int64, len(f.Ranges))
	}
	return r
}

// searchPlan is the list of searches that evaluate a list of requests.
type searchPlan struct {
	client  *transport.Client
	alias   string
	cursors *sealer
	filter  dsl.FilterWriter
	idField string
	// sharded is set when the index may have several shards. positions are where the requests' pages begin in the order of
	// sequence numbers, nil for the first page and for other orders. Cursors are encrypted for alias.
	sharded   bool
	positions []*position
	// indicesHash identifies the alias' indices.
	indicesHash uint64
	engine      flavour.Engine
	searches    []*subsearch
	results     []index.SearchResult
	// budget is the number of bytes of documents that may still be kept, of maxBytes, shared by all parts of a split search.
	budget   *int64
	maxBytes int64
	memory   *memory
	meanSize *meanSize
	// buffer is that of the responses while a page is read in parts.
	buffer *bytes.Buffer
}

// countSearch is a search for the counts of one filter whose body is not written yet.
type countSearch struct {
	*subsearch
	filter []byte
}

// build adds the searches for reqs. Counts are separate from documents, one search per distinct filter: the cluster caches only
// responses without documents, and counts all documents for them in any case.
func (p *searchPlan) build(reqs []index.SearchRequest) {
	filters := make([][]byte, len(reqs))
	var counts []*countSearch
	for i := range reqs {
		filters[i] = p.filter.Write(nil, reqs[i].Filter)
		// A page that excludes documents does not count all of them.
		hits := wantsHits(reqs[i].Hits) && p.position(i) == nil
		if len(reqs[i].Facets) == 0 && (hits || !reqs[i].Total) {
			continue
		}
		of := findCountSearch(counts, filters[i])
		if of == nil {
			of = &countSearch{subsearch: &subsearch{filter: reqs[i].Filter}, filter: filters[i]}
			counts = append(counts, of)
		}
		p.addFacets(of.subsearch, reqs[i].Facets, p.results[i].Facets)
	}
	for i := range reqs {
		result := &p.results[i]
		of := findCountSearch(counts, filters[i])
		if reqs[i].Total && of != nil {
			of.totals = append(of.totals, result)
		}
		if wantsHits(reqs[i].Hits) {
			p.addHits(&reqs[i], filters[i], p.position(i), result, reqs[i].Total && of == nil)
		}
	}
	for _, of := range counts {
		if len(of.facets) == 0 && len(of.totals) == 0 {
			continue
		}
		p.writeCounts(of.subsearch, of.filter)
		p.searches = append(p.searches, of.subsearch)
	}
}

// wantsHits reports whether documents are requested.
func wantsHits(h *index.HitsRequest) bool { return h != nil && h.Size > 0 }

func findCountSearch(all []*countSearch, filter []byte) *countSearch {
	for _, one := range all {
		if bytes.Equal(one.filter, filter) {
			return one
		}
	}
	return nil
}

// addFacets adds facets to a count search. Equal ones are evaluated once.
func (p *searchPlan) addFacets(s *subsearch, facets []index.Facet, results []index.FacetResult) {
	for i := range facets {
		asked := p.facetBody("", &facets[i])
		if len(asked) == 0 {
			continue // the field's type supports none of it
		}
		task := findFacetTask(s.facets, asked, &facets[i])
		if task == nil {
			task = &facetTask{body: asked}
			task.Facet, task.Into = &facets[i], emptyFacet(&facets[i])
			s.facets = append(s.facets, task)
		}
		task.results = append(task.results, &results[i])
	}
}

// findFacetTask returns the task of an equal facet. The aggregation's body does not show everything: ranges that contain no
// value, the maximum number of addresses, and whether an empty source was requested.
func findFacetTask(tasks []*facetTask, asked []byte, f *index.Facet) *facetTask {
	for _, task := range tasks {
		if !bytes.Equal(task.body, asked) || len(task.Facet.Ranges) != len(f.Ranges) {
			continue
		}
		a, b := task.Facet.Buckets, f.Buckets
		if a == nil || b == nil || a.Max == b.Max && a.TopSource.None == b.TopSource.None {
			return task
		}
	}
	return nil
}

func (p *searchPlan) facetBody(name string, f *index.Facet) []byte {
	w := dsl.FacetWriter{Filter: &p.filter, IDField: p.idField, Engine: p.engine}
	return w.Write(name, f)
}

// writeCounts writes the body of a count search.
func (p *searchPlan) writeCounts(s *subsearch, filter []byte) {
	var aggs []byte
	if len(s.facets) > 0 {
		parts := make([][]byte, len(s.facets))
		for i, task := range s.facets {
			parts[i] = p.facetBody(dsl.FacetName(i), task.Facet)
		}
		aggs = fmt.Appendf(nil, `,"aggs":{%s}`, dsl.Join(parts...))
	}
	s.body = fmt.Appendf(nil, `{"size":0,"track_total_hits":true,"query":%s%s}`, filter, aggs)
}

// position returns where the page of a request begins in the order of sequence numbers, nil for the first page.
func (p *searchPlan) position(i int) *position {
	if p.positions == nil {
		return nil
	}
	return p.positions[i]
}

// seqNoSort returns the order by sequence numbers for h, nil when h uses another order.
func (p *searchPlan) seqNoSort(h *index.HitsRequest, from *position) *seqNoSort {
	at := dsl.IDKey(h.Sort)
	if at < 0 || p.idField != dsl.SeqNo {
		return nil
	}
	scored := h.Restricted && p.sharded // the numbers of several shards show how much was written to each
	if from != nil {
		scored = from.scored
	}
	return &seqNoSort{key: at, descending: h.Sort[at].Descending, scored: scored, start: from, cursors: p.cursors, alias: p.alias, indicesHash: p.indicesHash}
}

// addHits adds the search for a request's documents.
func (p *searchPlan) addHits(req *index.SearchRequest, filter []byte, start *position, into *index.SearchResult, total bool) {
	h := req.Hits
	task := &hitsTask{request: h, into: into, idKey: -1, budget: p.budget, seqNo: p.seqNoSort(h, start)}
	s := &subsearch{filter: req.Filter, hits: task}
	if total {
		s.totals = []*index.SearchResult{into}
	}
	from, order := "", []byte(nil)
	if h.From > 0 && h.After == nil {
		from = fmt.Sprintf(`,"from":%d`, h.From)
	}
	if n := task.seqNo; n != nil {
		filter, order = n.filter(filter), n.order(h)
	} else {
		order = p.order(h)
		task.idKey = dsl.IDKey(h.Sort)
	}
	scores := ""
	if needsScores(p.engine, h.Sort) {
		scores = scoresMember
	}
	s.body = fmt.Appendf(nil, `{"size":%d%s,"track_total_hits":%t,"query":%s,"sort":%s%s%s}`,
		h.Size, from, total, filter, order, scores, dsl.AppendSource(nil, h.Source, p.engine))
	p.searches = append(p.searches, s)
}

// order returns the sort of h's documents and the values to continue after.
func (p *searchPlan) order(h *index.HitsRequest) []byte {
	order := []byte(`["_doc"]`)
	if len(h.Sort) > 0 {
		order = dsl.AppendSorts(nil, h.Sort, p.idField)
	}
	if len(h.After) == 0 {
		return order
	}
	return fmt.Appendf(order, `,"search_after":[%s]`, dsl.Join(trimmed(h.After)...))
}

// scoresMember is the member of a search that requests scores.
const scoresMember = `,"track_scores":true`

// needsScores reports whether the first sort key is one for which an engine must compute scores.
func needsScores(engine flavour.Engine, sorts []index.Sort) bool {
	return len(sorts) > 0 && (engine.ScoreComputed && computes(sorts[0]) || engine.Faulty(sorts[0].Field.Type, fieldtype.UnscoredSort))
}

// computes reports whether the engine computes the values of a sort key: those of nested documents, or of several values.
func computes(s index.Sort) bool {
	return len(s.Field.Nested) > 0 || s.Mode != "" && s.Mode != "min" && s.Mode != "max"
}

// trimmed returns values without surrounding line feeds, which would end the search in an msearch body.
func trimmed(values []json.RawMessage) [][]byte {
	out := make([][]byte, len(values))
	for i, value := range values {
		out[i] = bytes.TrimSpace(value)
	}
	return out
}

// wrongIDField reports whether the presumed id field of a document was not its id.
func (p *searchPlan) wrongIDField() bool {
	for _, s := range p.searches {
		if s.hits != nil && s.hits.wrongIDField {
			return true
		}
	}
	return false
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
	// point is the point in time of a part.
	point *transport.PIT
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
	dsl.FacetReader
	results []*index.FacetResult
	// body is the aggregation's body, to find equal facets.
	body []byte
}
