package elastic

import (
	"context"
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// null is the place of a document without a value.
const null = "null"

// absence gives what the cluster writes as the place of a document without a value by a key: for numbers the value beyond all
// others, which a document with that very value shares.
func absence(s index.Sort) string {
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

// sayAbsent writes null in the places of hits where the cluster has another word for that there is no value.
func sayAbsent(hits []index.Hit, sorts []index.Sort) {
	for i, s := range sorts {
		word := absence(s)
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

// resumed gives the place from which to go on in the cluster's words; nil for the beginning.
func resumed(after []json.RawMessage, sorts []index.Sort) []json.RawMessage {
	if len(after) == 0 || len(after) != len(sorts) {
		return after
	}
	out := make([]json.RawMessage, len(after))
	for i, value := range after {
		out[i] = value
		if string(flat(value)) == null {
			out[i] = json.RawMessage(absence(sorts[i]))
		}
	}
	return out
}

// orderIDs sets how p orders documents by their ids, and where its pages begin. A page that began in the order of sequence
// numbers is continued in it, also where a field is known to hold the ids by now.
func (x *Index) orderIDs(ctx context.Context, alias string, reqs []index.SearchRequest, p *inquiry) error {
	id, err := x.identityOf(ctx, alias)
	if err != nil {
		return err
	}
	p.alias, p.sealer, p.identity, p.several = alias, x.cursors, id.field, id.shards != 1
	p.from = make([]*position, len(reqs))
	resumed := false
	for i := range reqs {
		if p.from[i] = x.positionOf(alias, afterID(reqs[i].Hits)); p.from[i] != nil {
			p.identity, resumed = seqNo, true
		}
	}
	if p.indices = id.indices; resumed || p.identity == seqNo && id.until.IsZero() {
		if p.indices, err = x.indicesOf(ctx, alias); err != nil {
			return ofSearch(err)
		}
		if p.indices != id.indices && !id.until.IsZero() { // the alias moved: the next first page learns it anew
			x.state(alias).identity.CompareAndSwap(id, nil)
		}
	}
	for i := range reqs {
		raw := afterID(reqs[i].Hits)
		switch from := p.from[i]; {
		case raw == nil:
		case from == nil && (p.identity == seqNo || flat(raw)[0] != '"'), // checkHits has seen that there is one
			from != nil && (from.indices != p.indices || !from.scored && p.several && reqs[i].Hits.Restricted):
			return &core.Error{
				Code:    core.CodeInvalid,
				Message: "the cursor is not valid: it was changed, or returned in another order or by another version",
				Hint:    "start again from the first page, without a cursor",
			}
		}
	}
	return nil
}

// afterID returns what h has of the id after which the page begins, nil for nothing.
func afterID(h *index.HitsRequest) json.RawMessage {
	if h == nil || len(h.After) != len(h.Sort) {
		return nil
	}
	if at := idKey(h.Sort); at >= 0 {
		return h.After[at]
	}
	return nil
}

// positionOf returns the position in a cursor, nil where it has none.
func (x *Index) positionOf(alias string, raw json.RawMessage) *position {
	var text string
	if raw == nil || json.Unmarshal(raw, &text) != nil {
		return nil
	}
	if plain, ok := x.cursors.open(alias, text); ok {
		return decodePosition(plain)
	}
	return nil
}
