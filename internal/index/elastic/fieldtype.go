package elastic

import "tutti/internal/filter/query"

const (
	// idPath is the path of the document's id.
	idPath    = "_id"
	typeIP    = "ip"
	dateNanos = "date_nanos"
)

// searchable tells whether values of a field can be found by what they are.
func searchable(f query.Field) bool {
	return f.Path == idPath || query.Analyzed(f.Type) || countable(f)
}

// countable tells whether values of a field can be counted and put in order: others have no bucket and no place.
func countable(f query.Field) bool {
	return f.Path != idPath && query.Countable(f.Type)
}

// fractional tells whether values of a type may have fractions.
func fractional(fieldType string) bool {
	switch fieldType {
	case "half_float", "float", "double", "scaled_float":
		return true
	default:
		return false
	}
}
