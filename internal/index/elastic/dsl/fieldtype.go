package dsl

import "tutti/internal/filter/query"

const (
	// idPath is the path of the document's id.
	idPath    = "_id"
	typeIP    = "ip"
	dateNanos = "date_nanos"
)

// searchable reports whether the field can be searched by value.
func searchable(f query.Field) bool {
	return f.Path == idPath || query.Analyzed(f.Type) || Countable(f)
}

// Countable reports whether values of a field can be counted and sorted; other fields have no buckets and no order.
func Countable(f query.Field) bool {
	return f.Path != idPath && query.Countable(f.Type)
}

// fractional reports whether a type has fractional values.
func fractional(fieldType string) bool {
	switch fieldType {
	case "half_float", "float", "double", "scaled_float":
		return true
	default:
		return false
	}
}
