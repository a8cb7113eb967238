package model

// Class groups the types that the oracle treats alike.
type Class int

// The classes.
const (
	// OpaqueClass is every type that no other class has: its values are found by no filter.
	OpaqueClass Class = iota
	// TextClass is text that is compared as a whole.
	TextClass
	// AnalyzedClass is text that is matched by its words.
	AnalyzedClass
	flattenedClass
	AddressClass
	booleanClass
	IntegerClass
	FractionClass
	DateClass
)

// ClassOf returns the class of a type.
func ClassOf(fieldType string) Class {
	switch fieldType {
	case "text", "match_only_text", "search_as_you_type":
		return AnalyzedClass
	case "flattened", "flat_object":
		return flattenedClass
	case "ip":
		return AddressClass
	case "boolean":
		return booleanClass
	case "byte", "short", "integer", "long", "unsigned_long":
		return IntegerClass
	case "half_float", "float", "double", "scaled_float":
		return FractionClass
	case "date", "date_nanos":
		return DateClass
	case "keyword", "wildcard", "constant_keyword":
		return TextClass
	default:
		return OpaqueClass
	}
}

// Numeric reports whether values of a class have statistics, histograms and ranges.
func (c Class) Numeric() bool { return c == IntegerClass || c == FractionClass || c == DateClass }
