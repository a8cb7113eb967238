package dsl

import (
	"slices"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/jsontext"
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
	dst = append(dst, '{')
	dst = jsontext.AppendRawString(dst, name)
	dst = append(dst, `:{"order":"`...)
	if s.Descending {
		dst = append(dst, `desc"`...)
	} else {
		dst = append(dst, `asc"`...)
	}
	if s.MissingFirst {
		dst = append(dst, `,"missing":"_first"`...)
	}
	if known && s.Mode != "" {
		dst = append(dst, `,"mode":"`...)
		dst = append(dst, s.Mode...)
		dst = append(dst, '"')
	}
	switch s.Field.Type {
	case "byte", "short", "integer", dateNanos:
		// Otherwise a missing value sorts as the lowest or highest integer, or 1970 for dates, which are possible values.
		dst = append(dst, `,"numeric_type":"long"`...)
	case "half_float":
		// Its own comparison fails from the second page on (Elasticsearch 8.19: unsupported_operation_exception).
		dst = append(dst, `,"numeric_type":"double"`...)
	}
	if name != SeqNo && name != ShardDoc {
		dst = append(dst, `,"unmapped_type":"`...)
		dst = append(dst, unmapped...)
		dst = append(dst, '"')
	}
	if known {
		dst = appendNestedPaths(dst, s.Field.Nested)
	}
	return append(dst, "}}"...)
}

// appendNestedPaths appends the nested paths down to the values, each inside the one before.
func appendNestedPaths(dst []byte, paths []string) []byte {
	for _, path := range paths {
		dst = append(dst, `,"nested":{"path":`...)
		dst = jsontext.AppendRawString(dst, path)
	}
	for range paths {
		dst = append(dst, '}')
	}
	return dst
}

// unmappedType returns the type to assume in indices without the field.
func unmappedType(f query.Field) string {
	switch {
	case f.Type == "scaled_float":
		return "double"
	case query.Keyed(f.Type), f.Type == typeIP:
		return f.Type
	default:
		return "keyword"
	}
}
