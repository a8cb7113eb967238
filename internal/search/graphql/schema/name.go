package schema

import (
	"slices"
	"strconv"
	"strings"

	"tutti/internal/filter/fieldtype"
)

// graphQLName converts a string to a GraphQL name as Arranger does: characters other than ASCII letters, digits and underscores
// become underscores, and a leading digit gets an underscore before it.
func graphQLName(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 1)
	if text == "" || text[0] >= '0' && text[0] <= '9' {
		b.WriteByte('_')
	}
	for _, r := range text {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	return b.String()
}

// fieldName returns the GraphQL name of a field, which must not start with two underscores.
func fieldName(text string) string {
	name := graphQLName(text)
	if strings.HasPrefix(name, "__") {
		return "_" + strings.TrimLeft(name, "_")
	}
	return name
}

// aggregationName returns the name of a field in aggregations, with two underscores for each dot.
func aggregationName(dotted string) string { return fieldName(strings.ReplaceAll(dotted, ".", "__")) }

// IsName reports whether a string is a GraphQL name that is not reserved for introspection.
func IsName(text string) bool { return text != "" && fieldName(text) == text }

// typeName returns the name of the type of a field below another type. As in Arranger, all but the first letter of the field's
// name become lower case.
func typeName(base, field string) string {
	return fieldName(base + strings.ToUpper(field[:1]) + strings.ToLower(field[1:]))
}

// names assigns unique names.
type names struct {
	taken map[string]struct{}
	// next is the next suffix for a name that is taken.
	next map[string]int
}

// newNames returns an empty set of names with the given names reserved.
func newNames(reserved ...string) names {
	n := names{taken: make(map[string]struct{}, len(reserved)), next: map[string]int{}}
	for _, name := range reserved {
		n.taken[name] = struct{}{}
	}
	return n
}

// claim returns the wanted name, or if it is taken, the first free one with the suffix _2, _3 and so on.
func (n names) claim(wish string) string {
	name := wish
	if _, taken := n.taken[name]; taken {
		i := max(n.next[wish], 2)
		before := wish + "_"
		if wish == "_" { // two leading underscores are reserved for introspection
			before = wish
		}
		for ; taken; i++ {
			name = before + strconv.Itoa(i)
			_, taken = n.taken[name]
		}
		n.next[wish] = i
	}
	n.taken[name] = struct{}{}
	return name
}

// claimAll assigns each text a name and returns the names in the order of texts. It assigns names with a lower rank first, so
// that texts which are valid names keep them. rank returns how much a name differs from its text, 0 for not at all.
func (n names) claimAll(texts []string, name func(string) string, rank func(text, name string) int) []string {
	out := make([]string, len(texts))
	order := make([]int, len(texts))
	ranks := make([]int, len(texts))
	for i, text := range texts {
		out[i], order[i] = name(text), i
		ranks[i] = rank(text, out[i])
	}
	slices.SortStableFunc(order, func(a, b int) int { return ranks[a] - ranks[b] })
	for _, i := range order {
		out[i] = n.claim(out[i])
	}
	return out
}

// rankChange ranks changed names after unchanged ones.
func rankChange(text, name string) int {
	if text == name {
		return 0
	}
	return 1
}

// rankPathChange is rankChange for dotted names: names in which only the dots change rank in between.
func rankPathChange(dotted, name string) int {
	if strings.ReplaceAll(dotted, ".", "__") == name {
		return rankChange(dotted, name)
	}
	return 2
}

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
	switch t := fieldtype.Of(fieldType); t.JSON() {
	case fieldtype.Text:
		return scalarString
	case fieldtype.Bool:
		return scalarBoolean
	case fieldtype.Number:
		if t.Bits <= 16 && t.Integral() {
			return scalarInt
		}
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
	switch t := fieldtype.Of(fieldType); {
	case t.Ordered():
		return numericAggregations
	case t.Countable(), t.Analyzed():
		return termsAggregations
	default:
		return ""
	}
}
