package schema

// Scalars of a schema.
const (
	scalarString  = "String"
	scalarInt     = "Int"
	scalarFloat   = "Float"
	scalarBoolean = "Boolean"
	scalarJSON    = "JSON"
)

// scalarOf returns the scalar that values of a type of the engine are in documents: what Arranger returns where it knows the type.
// Integers over 32 bits are no Int in GraphQL, so that Float stands for them, for unsigned_long too, of which Arranger's Int
// fails. What has no form of its own is JSON as the document holds it.
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

// aggregationsOf returns the type of the aggregations of a type of the engine, "" where there are none: containers, and what no
// engine counts the values of.
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
