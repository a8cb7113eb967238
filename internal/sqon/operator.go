package sqon

// Operator is what a clause asks of the values of its field, or how a group combines its clauses.
type Operator string

// Operators. A parsed filter has these names only; aliases are resolved.
const (
	And Operator = "and"
	Or  Operator = "or"
	Not Operator = "not"

	In        Operator = "in"
	NotIn     Operator = "not-in"
	SomeNotIn Operator = "some-not-in"
	All       Operator = "all"
	Gt        Operator = "gt"
	Gte       Operator = "gte"
	Lt        Operator = "lt"
	Lte       Operator = "lte"
	Between   Operator = "between"
	Wildcard  Operator = "wildcard"
)

// shape is what an operator needs beside its name.
type shape int

const (
	unknownShape shape = iota
	// groupShape has a list of filters.
	groupShape
	// listShape has a field and any number of values.
	listShape
	// rangeShape has a field and one bound.
	rangeShape
	// betweenShape has a field and two bounds.
	betweenShape
	// patternShape has fields and one text or more.
	patternShape
)

// shape returns what o needs, unknownShape when it is no operator.
func (o Operator) shape() shape {
	switch o {
	case And, Or, Not:
		return groupShape
	case In, NotIn, SomeNotIn, All:
		return listShape
	case Gt, Gte, Lt, Lte:
		return rangeShape
	case Between:
		return betweenShape
	case Wildcard:
		return patternShape
	default:
		return unknownShape
	}
}

// alias is another name of an operator.
type alias struct {
	name string
	op   Operator
}

// aliases returns all aliases, in the order in which they are told.
func aliases() []alias {
	return []alias{
		{"filter", Wildcard},
		{"=", In},
		{"==", In},
		{"===", In},
		{"!=", NotIn},
		{"!==", NotIn},
		{">", Gt},
		{">=", Gte},
		{"<", Lt},
		{"<=", Lte},
	}
}

// resolve returns the operator of a name or an alias, false when it is neither. The case counts.
func resolve(name string) (Operator, bool) {
	if op := Operator(name); op.shape() != unknownShape {
		return op, true
	}
	for _, a := range aliases() {
		if a.name == name {
			return a.op, true
		}
	}
	return "", false
}

// fieldOperators returns the operators of clauses, in the order in which they are told.
func fieldOperators() []Operator {
	return []Operator{In, NotIn, SomeNotIn, All, Gt, Gte, Lt, Lte, Between, Wildcard}
}

// Operators returns the operators that clauses on a field of the search engine's type may have, by the names and in the order
// of CONTRACT section 2, where Wildcard goes by its alias filter. All and SomeNotIn are understood for every type, told or
// not. The slice is the caller's.
func Operators(fieldType string) []string {
	switch classOf(fieldType) {
	case exactClass, addressClass, booleanClass:
		return []string{"in", "not-in", "some-not-in", "all", "filter"}
	case numberClass, dateClass:
		return []string{"in", "not-in", "gt", "gte", "lt", "lte", "between"}
	default:
		return []string{"in", "not-in", "filter"}
	}
}

// class is what the types of the search engine have in common for filters.
type class int

const (
	otherClass class = iota
	// exactClass holds texts that are found as a whole.
	exactClass
	// addressClass holds addresses of the internet.
	addressClass
	booleanClass
	numberClass
	dateClass
)

// classOf returns the class of a type.
func classOf(fieldType string) class {
	switch fieldType {
	case "keyword", "wildcard", "constant_keyword", "flattened":
		return exactClass
	case "ip":
		return addressClass
	case "boolean":
		return booleanClass
	case "byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double", "scaled_float":
		return numberClass
	case "date", "date_nanos":
		return dateClass
	default:
		return otherClass
	}
}

// rangeTypes returns the types that ranges apply to.
func rangeTypes() []string {
	return []string{
		"byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double", "scaled_float", "date", "date_nanos",
	}
}

// patternTypes returns the types that Wildcard applies to: all of Elasticsearch 8 but numbers and dates.
func patternTypes() []string {
	return []string{
		"keyword", "boolean", "ip", "wildcard", "constant_keyword", "flattened",
		"text", "match_only_text", "semantic_text", "search_as_you_type", "version", "object", "nested", "passthrough", "join",
		"binary", "completion", "token_count", "murmur3", "percolator", "histogram", "aggregate_metric_double",
		"integer_range", "float_range", "long_range", "double_range", "date_range", "ip_range",
		"geo_point", "geo_shape", "point", "shape", "dense_vector", "sparse_vector", "rank_vectors", "rank_feature", "rank_features",
	}
}

// applies reports whether a clause with o may be about a field of a type.
func (o Operator) applies(fieldType string) bool {
	ordered := classOf(fieldType) == numberClass || classOf(fieldType) == dateClass
	switch o.shape() {
	case listShape:
		return true
	case rangeShape, betweenShape:
		return ordered
	case patternShape:
		return !ordered
	default:
		return false
	}
}
