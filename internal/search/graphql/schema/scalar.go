package schema

// Scalars of a schema.
const (
	scalarString  = "String"
	scalarInt     = "Int"
	scalarFloat   = "Float"
	scalarBoolean = "Boolean"
	scalarJSON    = "JSON"
)

// scalarOf returns the scalar for values of an engine type in documents: the same as Arranger for the types that it knows.
// Integers above 32 bits do not fit GraphQL's Int, so they are Float, including unsigned_long, for which Arranger's Int fails.
// Other values are JSON.
func scalarOf(fieldType string) string {
	switch fieldType {
	case "keyword", "constant_keyword", "counted_keyword", "wildcard", "text", "match_only_text", "search_as_you_type", "string",
		"ip", "version", "date", "date_nanos", "binary":
		return scalarString
	case "boolean":
		return scalarBoolean
	case "byte", "short":
		return scalarInt
	case "integer", "long", "unsigned_long", "half_float", "float", "double", "scaled_float":
		return scalarFloat
	default:
		return scalarJSON
	}
}

// Types of aggregations.
const (
	termsAggregations   = "Aggregations"
	numericAggregations = "NumericAggregations"
)

// aggregationsOf returns the aggregations type for an engine type, "" for types without aggregations: containers, and types whose
// values no engine counts.
func aggregationsOf(fieldType string) string {
	switch fieldType {
	case "keyword", "constant_keyword", "counted_keyword", "wildcard", "flattened", "text", "match_only_text", "search_as_you_type",
		"string", "ip", "version", "boolean":
		return termsAggregations
	case "byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double", "scaled_float", "date", "date_nanos":
		return numericAggregations
	default:
		return ""
	}
}
