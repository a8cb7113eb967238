package dsl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

const (
	// SeqNo sorts documents by their last write: unique within one shard. It also counts documents hidden from the caller, so
	// callers must never see it.
	SeqNo = "_seq_no"
	// ShardDoc sorts documents by their storage order, in a point in time only.
	ShardDoc = "_shard_doc"
	// noField is a path that no mapping has: all documents are equal by it.
	noField = "_tutti_nothing"
)

// IDKey returns the index of the sort key that is the id, -1 for none.
func IDKey(sorts []index.Sort) int {
	return slices.IndexFunc(sorts, func(s index.Sort) bool { return s.Field.Path == idPath })
}

// CheckSorts rejects sorts that the cluster does not support.
func CheckSorts(sorts []index.Sort) error {
	for _, s := range sorts {
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}

// AppendSorts appends a sort array with one key for each of sorts. idField is the field that replaces the id.
func AppendSorts(dst []byte, sorts []index.Sort, idField string) []byte {
	dst = append(dst, '[')
	for i, s := range sorts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendSort(dst, s, idField)
	}
	return append(dst, ']')
}

// AppendSort appends one key of an order. idField is the field that replaces the id.
func AppendSort(dst []byte, s index.Sort, idField string) []byte {
	name, unmapped := s.Field.Path, unmappedType(s.Field)
	known := Countable(s.Field)
	switch {
	case s.Field.Path == idPath:
		name = idField
	case !known:
		name = noField
	}
	order := "asc"
	if s.Descending {
		order = "desc"
	}
	dst = fmt.Appendf(dst, `{%s:{"order":"%s"`, quote(name), order)
	number := name == SeqNo || name == ShardDoc // every document has one
	switch {
	case known && (bounded(s) || estimated(s)):
		dst = fmt.Appendf(dst, `,"missing":%s`, missingValue(s))
	case s.MissingFirst:
		dst = append(dst, `,"missing":"_first"`...)
	case !number: // with its default, OpenSearch skips segments and shards although they have documents without a value
		dst = append(dst, `,"missing":"_last"`...)
	}
	if known && s.Mode != "" {
		dst = fmt.Appendf(dst, `,"mode":"%s"`, s.Mode)
	}
	switch t := fieldtype.Of(s.Field.Type); {
	case t.Group == fieldtype.Boolean, t.Group == fieldtype.Integer && t.Bits < 64, t.Group == fieldtype.Nanos:
		// Otherwise a missing value sorts as the lowest or highest integer, or 1970 for dates, which are possible values.
		dst = append(dst, `,"numeric_type":"long"`...)
	case t.Group == fieldtype.Float && t.Bits == 16:
		// Its own comparison fails from the second page on (Elasticsearch 8.19: unsupported_operation_exception).
		dst = append(dst, `,"numeric_type":"double"`...)
	}
	if !number {
		dst = fmt.Appendf(dst, `,"unmapped_type":"%s"`, unmapped)
	}
	if known { // the nested paths down to the values, each inside the one before
		for _, path := range s.Field.Nested {
			dst = fmt.Appendf(dst, `,"nested":{"path":%s`, quote(path))
		}
		dst = append(dst, strings.Repeat("}", len(s.Field.Nested))...)
	}
	return append(dst, "}}"...)
}

// unmappedType returns the type to assume in indices without the field.
func unmappedType(f query.Field) string {
	switch {
	case fieldtype.Of(f.Type).Group == fieldtype.Scaled:
		return "double"
	case query.Keyed(f.Type), f.Type == typeIP:
		return f.Type
	default:
		return "keyword"
	}
}

// bounded reports whether a key is a date whose format has no form for the instants that stand for missing values: OpenSearch writes them in the
// field's format when it reads a page of several shards, and fails.
func bounded(s index.Sort) bool {
	return fieldtype.Of(s.Field.Type).Group == fieldtype.Millis && s.Field.Format != nil && s.Field.Format.Bounded()
}

// estimated reports whether the cluster would skip a shard by a comparison of its highest and lowest instants with the last sort value of another
// shard's page, which is not one of these: a sum of instants (Elasticsearch 8.19), or a number that it reads as an instant and fails (OpenSearch 3.2).
// It does neither with a number for documents without a value.
func estimated(s index.Sort) bool {
	t := fieldtype.Of(s.Field.Type)
	return t.Group == fieldtype.Nanos || t.Group == fieldtype.Millis && s.Mode == "sum"
}

// The first and the last millisecond of the years of four digits.
const (
	firstMillis = "-62135596800000"
	lastMillis  = "253402300799999"
)

// Null is the sort value of a document without a value.
const Null = "null"

// missingValue returns the sort value that the cluster returns for a document without a value: for numbers the value beyond all
// others, which documents with that very value share.
func missingValue(s index.Sort) string {
	high, t := s.Descending == s.MissingFirst, fieldtype.Of(s.Field.Type)
	switch {
	case s.Field.Path == idPath || !t.Keyed():
		return Null
	case t.Fractional() && high:
		return `"Infinity"`
	case t.Fractional():
		return `"-Infinity"`
	case t.Group == fieldtype.Unsigned && high:
		return "18446744073709551615"
	case t.Group == fieldtype.Unsigned:
		return "0"
	case bounded(s) && high:
		return lastMillis
	case bounded(s):
		return firstMillis
	case high:
		return "9223372036854775807"
	default:
		return "-9223372036854775808"
	}
}

// WithoutConstants returns sorts with keys by which all documents are equal instead of those by a constant_keyword with a value, for an engine
// with fieldtype.MisnamedFacet: it would sort by the name of the index, and continue after it.
func WithoutConstants(sorts []index.Sort) []index.Sort {
	out := slices.Clone(sorts)
	for i := range out {
		if out[i].Field.Constant != "" {
			out[i].Field.Type = ""
		}
	}
	return out
}

// constant reports whether a key is one of WithoutConstants.
func constant(s index.Sort) bool { return s.Field.Constant != "" && s.Field.Type == "" }

// NullMissing replaces the cluster's sort values for missing values by null, and those of constants by the constant.
func NullMissing(hits []index.Hit, sorts []index.Sort) {
	for i, s := range sorts {
		if constant(s) {
			value := json.RawMessage(quote(s.Field.Constant))
			for _, hit := range hits {
				if i < len(hit.Sort) {
					hit.Sort[i] = value
				}
			}
			continue
		}
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
		if string(bytes.TrimSpace(value)) == Null || constant(sorts[i]) {
			out[i] = json.RawMessage(missingValue(sorts[i]))
		}
	}
	return out
}
