package searchtest

// class groups the types that the oracle treats alike.
type class int

const (
	textClass class = iota
	// analyzedClass is text that is matched by its words.
	analyzedClass
	flattenedClass
	addressClass
	booleanClass
	integerClass
	fractionClass
	dateClass
)

// classOf returns the class of a type.
func classOf(fieldType string) class {
	switch fieldType {
	case "text":
		return analyzedClass
	case "flattened":
		return flattenedClass
	case "ip":
		return addressClass
	case "boolean":
		return booleanClass
	case "byte", "short", "integer", "long", "unsigned_long":
		return integerClass
	case "half_float", "float", "double", "scaled_float":
		return fractionClass
	case "date", "date_nanos":
		return dateClass
	default:
		return textClass
	}
}

// numeric reports whether values of a class have statistics, histograms and ranges.
func (c class) numeric() bool { return c == integerClass || c == fractionClass || c == dateClass }
