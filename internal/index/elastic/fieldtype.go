package elastic

import (
	"tutti/internal/core"
	"tutti/internal/index/query"
)

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
	if f.Path == idPath {
		return false
	}
	switch f.Type {
	case "keyword", "constant_keyword", "wildcard", "flattened", typeIP:
		return true
	default:
		return query.Keyed(f.Type)
	}
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

// refuseAnalyzed gives the error of asking an analyzed field for its values: the cluster keeps but their words.
func refuseAnalyzed(f query.Field) error {
	if !query.Analyzed(f.Type) {
		return nil
	}
	return &core.Error{
		Code:    core.CodeInvalid,
		Message: "the field " + f.Path + " is analyzed text, whose values can be searched but neither counted nor sorted by",
		Hint:    "use a sub-field of the type keyword",
	}
}
