package dsl

import (
	"bytes"
	"encoding/json"

	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// Null is the sort value of a document without a value.
const Null = "null"

// missingValue returns the sort value that the cluster returns for a document without a value: for numbers the value beyond all
// others, which documents with that very value share.
func missingValue(s index.Sort) string {
	high := s.Descending == s.MissingFirst
	switch {
	case s.Field.Path == idPath || !query.Keyed(s.Field.Type):
		return Null
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

// NullMissing replaces the cluster's sort values for missing values by null.
func NullMissing(hits []index.Hit, sorts []index.Sort) {
	for i, s := range sorts {
		word := missingValue(s)
		if word == Null {
			continue
		}
		for _, hit := range hits {
			if i < len(hit.Sort) && string(hit.Sort[i]) == word {
				hit.Sort[i] = json.RawMessage(Null)
			}
		}
	}
}

// RestoreMissing replaces null by the cluster's sort values for missing values; nil for the first page.
func RestoreMissing(after []json.RawMessage, sorts []index.Sort) []json.RawMessage {
	if len(after) == 0 || len(after) != len(sorts) {
		return after
	}
	out := make([]json.RawMessage, len(after))
	for i, value := range after {
		out[i] = value
		if string(bytes.TrimSpace(value)) == Null {
			out[i] = json.RawMessage(missingValue(sorts[i]))
		}
	}
	return out
}
