package schema

import (
	"slices"
	"strconv"
	"strings"
)

// graphQLName returns the name in GraphQL that a text becomes: what is no ASCII letter, digit or underscore is an underscore, and
// one stands before a digit at the start, as Arranger does it and definitions say it.
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

// fieldName returns the name of a field, which must not begin with two underscores.
func fieldName(text string) string {
	name := graphQLName(text)
	if strings.HasPrefix(name, "__") {
		return "_" + strings.TrimLeft(name, "_")
	}
	return name
}

// aggregationName returns the name of a field among aggregations, where two underscores stand for the dot.
func aggregationName(dotted string) string { return fieldName(strings.ReplaceAll(dotted, ".", "__")) }

// isName reports whether a text is a name in GraphQL that is not kept for introspection.
func isName(text string) bool { return text != "" && fieldName(text) == text }

// typeName returns the name of the type of a field below another type, as Arranger does: all but the first letter of the field's name
// become small.
func typeName(base, field string) string {
	return fieldName(base + strings.ToUpper(field[:1]) + strings.ToLower(field[1:]))
}

// names gives out names, each once.
type names struct {
	taken map[string]struct{}
	// next is the number that the next one to ask for a taken name is given.
	next map[string]int
}

// newNames returns all names but the reserved ones.
func newNames(reserved ...string) names {
	n := names{taken: make(map[string]struct{}, len(reserved)), next: map[string]int{}}
	for _, name := range reserved {
		n.taken[name] = struct{}{}
	}
	return n
}

// claim returns the name that was wished for, or where that is taken the first that is not with _2, _3 and so on behind it.
func (n names) claim(wish string) string {
	name := wish
	if _, taken := n.taken[name]; taken {
		i := max(n.next[wish], 2)
		before := wish + "_"
		if wish == "_" { // two underscores at the start are kept for introspection
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

// claimAll returns each text a name, in their order, but those first whose name needs the least change: rank tells how much, 0 for
// none. So what is a name already keeps it, whatever else there is.
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

// rankChange ranks names that are not what they stand for behind those that are.
func rankChange(text, name string) int {
	if text == name {
		return 0
	}
	return 1
}

// rankPathChange is changed for dotted names, of which those come in between where the dots alone are other.
func rankPathChange(dotted, name string) int {
	if strings.ReplaceAll(dotted, ".", "__") == name {
		return rankChange(dotted, name)
	}
	return 2
}
