package elastic

import (
	"context"
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/elastic/transport"
)

// null is the sort value of a document without a value.
const null = "null"

// missingValue returns the sort value that the cluster returns for a document without a value: for numbers the value beyond all
// others, which documents with that very value share.
func missingValue(s index.Sort) string {
	high := s.Descending == s.MissingFirst
	switch {
	case s.Field.Path == idPath || !query.Keyed(s.Field.Type):
		return null
	case fractional(s.Field.Type) && high:
		return `"Infinity"`
	case fractional(s.Field.Type):
		return `"-Infinity"`
	case s.Field.Type == "unsigned_long" && high:
		return "18446744073709551615"
	case s.Field.Type == "unsigned_long":
		return "0"
	case high:
		return "9223372036854775807"
	default:
		return "-9223372036854775808"
	}
}

// nullMissing replaces the cluster's sort values for missing values by null.
func nullMissing(hits []index.Hit, sorts []index.Sort) {
	for i, s := range sorts {
		word := missingValue(s)
		if word == null {
			continue
		}
		for _, hit := range hits {
			if i < len(hit.Sort) && string(hit.Sort[i]) == word {
				hit.Sort[i] = json.RawMessage(null)
			}
		}
	}
}

// restoreMissing replaces null by the cluster's sort values for missing values; nil for the first page.
func restoreMissing(after []json.RawMessage, sorts []index.Sort) []json.RawMessage {
	if len(after) == 0 || len(after) != len(sorts) {
		return after
	}
	out := make([]json.RawMessage, len(after))
	for i, value := range after {
		out[i] = value
		if string(trimmed(value)) == null {
			out[i] = json.RawMessage(missingValue(sorts[i]))
		}
	}
	return out
}

// prepareIDSort sets how p sorts documents by id, and where its pages begin. Pages that began in the order of sequence numbers
// continue in it, even if an id field has been found since.
func (x *Index) prepareIDSort(ctx context.Context, alias string, reqs []index.SearchRequest, p *searchPlan) error {
	id, err := x.idFieldOf(ctx, alias)
	if err != nil {
		return err
	}
	p.alias, p.cursors, p.idField, p.sharded = alias, x.cursors, id.path, id.shards != 1
	p.positions = make([]*position, len(reqs))
	resumed := false
	for i := range reqs {
		if p.positions[i] = x.openCursor(alias, idCursor(reqs[i].Hits)); p.positions[i] != nil {
			p.idField, resumed = seqNo, true
		}
	}
	if p.indicesHash = id.indicesHash; resumed || p.idField == seqNo && id.expires.IsZero() {
		if p.indicesHash, err = x.indicesHash(ctx, alias); err != nil {
			return transport.AsSearchError(err)
		}
		if p.indicesHash != id.indicesHash && !id.expires.IsZero() { // the alias moved: the next first page determines it again
			x.state(alias).idField.CompareAndSwap(id, nil)
		}
	}
	for i := range reqs {
		raw := idCursor(reqs[i].Hits)
		switch from := p.positions[i]; {
		case raw == nil:
		case from == nil && (p.idField == seqNo || trimmed(raw)[0] != '"'), // checkHits has rejected empty values
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
	if at := idKey(h.Sort); at >= 0 {
		return h.After[at]
	}
	return nil
}

// openCursor returns the position in a cursor, nil if it has none.
func (x *Index) openCursor(alias string, raw json.RawMessage) *position {
	var text string
	if raw == nil || json.Unmarshal(raw, &text) != nil {
		return nil
	}
	if plain, ok := x.cursors.open(alias, text); ok {
		return decodePosition(plain)
	}
	return nil
}
