package elastic

import (
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/query"
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

// checkPlaces refuses places of ids that were given where something else stood for them, or where that is not different for all
// documents: the cluster would go on from there, but somewhere else.
func checkPlaces(reqs []index.SearchRequest, id *identity) error {
	for _, req := range reqs {
		h := req.Hits
		if h == nil || len(h.After) != len(h.Sort) {
			continue
		}
		for i, s := range h.Sort {
			if s.Field.Path != idPath {
				continue
			}
			if err := id.takes(h.After[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// takes tells why a place cannot be gone on from.
func (id *identity) takes(place json.RawMessage) error {
	first := flat(place)[0] // checkHits has looked that there is one
	switch {
	case id.field != seqNo && first != '"', id.field == seqNo && (first < '0' || first > '9'):
		return &core.Error{
			Code:    core.CodeInvalid,
			Message: "the place from which to go on was given in another order of the ids, as the index has changed",
			Hint:    "begin anew, without the place",
		}
	case id.field == seqNo && id.shards > 1:
		return &core.Error{
			Code:    core.CodeInvalid,
			Message: "the order of the ids cannot be gone on in: the documents hold their ids in no field, and the index has several shards",
			Hint:    "keep the id in a keyword field at the top of the documents, sort by a field that differs in all of them, or page by number",
		}
	default:
		return nil
	}
}
