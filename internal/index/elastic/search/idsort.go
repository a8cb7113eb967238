package search

import (
	"context"
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
	"tutti/internal/index/elastic/transport"
)

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
		case from == nil && (p.idField == dsl.SeqNo || trimmed(raw)[0] != '"'), // checkHits has rejected empty values
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

// idCursor returns the id's value in h.After, nil for none.
func idCursor(h *index.HitsRequest) json.RawMessage {
	if h == nil || len(h.After) != len(h.Sort) {
		return nil
	}
	if at := dsl.IDKey(h.Sort); at >= 0 {
		return h.After[at]
	}
	return nil
}
