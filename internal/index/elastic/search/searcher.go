package search

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/dsl"
	"tutti/internal/index/elastic/transport"
)

// Searcher evaluates searches. All methods are safe for concurrent use.
type Searcher struct {
	client  *transport.Client
	meta    *aliases.Aliases
	cursors *sealer
	now     func() time.Time
	// MaxSourceBytes limits the bytes of documents that one Search keeps in memory. It must not be changed after the first one.
	MaxSourceBytes int64
	// memory bounds the pages of streams; nil means no bound.
	memory  core.ResponseMemory
	aliases sync.Map // alias to *aliasStats
}

// New returns a Searcher whose cursors are encrypted with cursorKey, of CursorKeyBytes bytes or nil for a random one. now is the
// clock for the age of cached statistics. memory bounds the pages of streams; nil means no bound.
func New(
	client *transport.Client, meta *aliases.Aliases, cursorKey []byte, memory core.ResponseMemory, now func() time.Time,
) (*Searcher, error) {
	cursors, err := newSealer(cursorKey)
	if err != nil {
		return nil, err
	}
	return &Searcher{client: client, meta: meta, cursors: cursors, memory: memory, now: now, MaxSourceBytes: DefaultMaxSourceBytes}, nil
}

// Search evaluates reqs in one round trip: one search for the documents of each request, and one for the totals and facets of
// each distinct filter, which the cluster caches. Facets with more values than fit one response, histograms besides them,
// patterns of addresses, and documents over the response limit need further round trips.
func (x *Searcher) Search(ctx context.Context, alias string, reqs []index.SearchRequest) ([]index.SearchResult, error) {
	end, err := x.client.Begin(alias)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := checkSearch(reqs); err != nil {
		return nil, err
	}
	sources := &x.stats(alias).meanSize
	if err := x.sampleSizes(ctx, alias, reqs); err != nil {
		return nil, err
	}
	held := newMemory(reqs)
	if err := held.need(ctx, sources.memory(reqs, x.MaxSourceBytes)); err != nil {
		return nil, err
	}
	reqs = chooseSources(reqs, sources)
	for _, req := range reqs {
		if req.Hits != nil { // chooseSources has copied it
			if req.Hits.Sort, err = x.withoutConstants(ctx, req.Hits.Sort); err != nil {
				return nil, err
			}
			req.Hits.After = dsl.RestoreMissing(req.Hits.After, req.Hits.Sort)
		}
	}
	values, err := x.patternValues(ctx, alias, filtersOf(reqs))
	if err != nil {
		return nil, err
	}
	for {
		p, err := x.newPlan(ctx, alias, reqs, values, held)
		if err != nil {
			return nil, err
		}
		if err := p.run(ctx); err != nil {
			return nil, err
		}
		if !p.wrongIDField() {
			observeSizes(p.searches, sources)
			return p.results, x.nameConstants(ctx, reqs, p.results)
		}
		x.rejectIDField(alias)
	}
}

// newPlan returns the plan of reqs. values are those of dsl.FilterWriter.
func (x *Searcher) newPlan(ctx context.Context, alias string, reqs []index.SearchRequest, values map[*query.Node][]string, held *memory) (*searchPlan, error) {
	budget := x.MaxSourceBytes
	held.held = 0
	engine, err := x.client.Engine(ctx)
	if err != nil {
		return nil, transport.AsSearchError(err)
	}
	p := &searchPlan{
		engine: engine, client: x.client, alias: alias, cursors: x.cursors, filter: dsl.FilterWriter{Values: values}, results: newResults(reqs),
		budget: &budget, maxBytes: budget, memory: held, meanSize: &x.stats(alias).meanSize,
	}
	if sortsByID(reqs) {
		if err := x.prepareIDSort(ctx, alias, reqs, p); err != nil {
			return nil, err
		}
	}
	p.build(reqs)
	return p, p.filter.Err
}

// withoutConstants returns the order to request instead of sorts.
func (x *Searcher) withoutConstants(ctx context.Context, sorts []index.Sort) ([]index.Sort, error) {
	at := slices.IndexFunc(sorts, func(s index.Sort) bool { return s.Field.Constant != "" })
	if at < 0 {
		return sorts, nil
	}
	engine, err := x.client.Engine(ctx)
	if err != nil {
		return nil, transport.AsSearchError(err)
	}
	if engine.Faulty(sorts[at].Field.Type, fieldtype.MisnamedFacet) {
		sorts = dsl.WithoutConstants(sorts)
	}
	return sorts, nil
}

// nameConstants replaces the keys of buckets that are not the values of constants (fieldtype.MisnamedFacet).
func (x *Searcher) nameConstants(ctx context.Context, reqs []index.SearchRequest, results []index.SearchResult) error {
	for i := range reqs {
		for j := range reqs[i].Facets {
			constant, buckets := reqs[i].Facets[j].Field.Constant, results[i].Facets[j].Buckets
			if constant == "" || len(buckets) != 1 { // several indices may have several constants
				continue
			}
			engine, err := x.client.Engine(ctx)
			if err != nil {
				return transport.AsSearchError(err)
			}
			if engine.Faulty(reqs[i].Facets[j].Field.Type, fieldtype.MisnamedFacet) {
				buckets[0].Key = constant
			}
		}
	}
	return nil
}

// sortsByID reports whether a result of reqs is sorted by id.
func sortsByID(reqs []index.SearchRequest) bool {
	for i := range reqs {
		if h := reqs[i].Hits; h != nil && dsl.IDKey(h.Sort) >= 0 {
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

// prepareIDSort sets how p sorts documents by id, and where its pages begin. Pages that began in the order of sequence numbers
// continue in it, even if an id field has been found since.
func (x *Searcher) prepareIDSort(ctx context.Context, alias string, reqs []index.SearchRequest, p *searchPlan) error {
	id, err := x.idFieldOf(ctx, alias)
	if err != nil {
		return err
	}
	p.idField, p.sharded = id.path, id.shards != 1
	p.positions = make([]*position, len(reqs))
	resumed := false
	for i := range reqs {
		if p.positions[i] = x.cursors.position(alias, idCursor(reqs[i].Hits)); p.positions[i] != nil {
			p.idField, resumed = dsl.SeqNo, true
		}
	}
	if p.indicesHash = id.indicesHash; resumed || p.idField == dsl.SeqNo && id.expires.IsZero() {
		if p.indicesHash, err = x.meta.IndicesHash(ctx, alias); err != nil {
			return transport.AsSearchError(err)
		}
		if p.indicesHash != id.indicesHash && !id.expires.IsZero() { // the alias moved: the next first page determines it again
			x.stats(alias).idField.CompareAndSwap(id, nil)
		}
	}
	for i := range reqs {
		raw := idCursor(reqs[i].Hits)
		switch from := p.positions[i]; {
		case raw == nil:
		case from == nil && (p.idField == dsl.SeqNo || bytes.TrimSpace(raw)[0] != '"'), // checkHits has rejected empty values
			from != nil && (from.indicesHash != p.indicesHash || !from.scored && p.sharded && reqs[i].Hits.Restricted):
			return &core.Error{
				Code:    core.CodeInvalid,
				Message: "the cursor is not valid: it was changed, or returned in another order or by another version",
				Hint:    "start again from the first page, without a cursor",
			}
		}
	}
	return nil
}
