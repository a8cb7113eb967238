package searchtest

import (
	"slices"
	"strings"

	"tutti/internal/filter/sqon"
	"tutti/internal/tools/searchtest/model"
)

// filterGenerator generates filters on some fields.
type filterGenerator struct {
	draw
	fields             *model.FieldSet
	leaves, containers []string
	pivots             []string
	// names are of pools.
	pools map[string]pool
	// preferred is a field that is used more often.
	preferred string
}

func newFilterGenerator(d draw, fields *model.FieldSet) *filterGenerator {
	m := &filterGenerator{
		draw: d, fields: fields, leaves: fields.WithValues(), containers: fields.Containers(), pivots: fields.Pivots(), pools: map[string]pool{},
	}
	for _, name := range m.leaves {
		m.pools[name] = poolAt(fields, name)
	}
	return m
}

// savedSets returns the sets that filters may name.
func savedSets() map[string][]string {
	return map[string][]string{
		"words":   {"a", "b", "a*b", "東京", "red", "*"},
		"numbers": {"7", "0.5", "2", "1000"},
		"none":    {},
	}
}

// filter returns the text of a random filter.
func (m *filterGenerator) filter() string {
	if m.percent(3) {
		return pick(m.draw, []string{`{}`, `null`})
	}
	return m.node(m.between(1, 4), "")
}

// node returns a filter of at most the given depth; pivot is the innermost pivot around it.
func (m *filterGenerator) node(depth int, pivot string) string {
	own := ""
	if len(m.pivots) > 0 && m.percent(30) {
		own = pick(m.draw, m.pivots)
	}
	member := ""
	switch {
	case own != "":
		member = `,"pivot":` + quoted(own)
		pivot = own
	case m.percent(3):
		member = `,"pivot":null`
	}
	if depth <= 1 || m.percent(25) {
		return m.clause(pivot, member)
	}
	content := make([]string, m.between(1, 3))
	if m.percent(3) {
		content = nil
	}
	for i := range content {
		content[i] = m.node(depth-1, pivot)
		if m.percent(2) {
			content[i] = pick(m.draw, []string{`{}`, `null`})
		}
	}
	op := pick(m.draw, []string{"and", "and", "and", "or", "or", "not"})
	return `{"op":"` + op + `","content":[` + strings.Join(content, ",") + `]` + member + `}`
}

// field returns a random field, more often one below the pivot.
func (m *filterGenerator) field(pivot string) string {
	if m.preferred != "" && m.percent(30) {
		return m.preferred
	}
	name := pick(m.draw, m.leaves)
	if pivot == "" || m.percent(30) {
		return name
	}
	below := slices.DeleteFunc(slices.Clone(m.leaves), func(name string) bool { return !strings.HasPrefix(name, pivot+".") })
	if len(below) == 0 {
		return name
	}
	return pick(m.draw, below)
}

// clause returns a clause with the given pivot member.
func (m *filterGenerator) clause(pivot, member string) string {
	if len(m.containers) > 0 && m.percent(3) {
		op := pick(m.draw, []string{"in", "not-in", "some-not-in", "all"})
		value := pick(m.draw, []string{`"__missing__"`, `["__missing__"]`, `["x","__missing__"]`, `["x"]`})
		return `{"op":"` + op + `","content":{"fieldName":` + quoted(pick(m.draw, m.containers)) + `,"value":` + value + `}` + member + `}`
	}
	name := m.field(pivot)
	known := append(sqon.Operators(m.fields.ByName[name].Type), "all", "some-not-in", "in")
	op := pick(m.draw, known)
	if op == "filter" {
		return m.wildcard(pivot, member)
	}
	value := ""
	switch op {
	case "gt", "gte", "lt", "lte":
		value = pick(m.draw, m.pools[name].bounds)
		if m.percent(10) {
			value = "[" + value + "]"
		}
	case "between":
		value = "[" + pick(m.draw, m.pools[name].bounds) + "," + pick(m.draw, m.pools[name].bounds) + "]"
	default:
		value = m.values(name)
	}
	return `{"op":"` + m.alias(op) + `","content":{"fieldName":` + quoted(name) + `,"value":` + value + `}` + member + `}`
}

// values returns random values of in and similar operators.
func (m *filterGenerator) values(name string) string {
	values := make([]string, m.between(1, 3))
	if m.percent(3) {
		values = nil
	}
	for i := range values {
		switch n := m.IntN(100); {
		case n < 12:
			values[i] = `"__missing__"`
		case n < 16 && model.ClassOf(m.fields.ByName[name].Type).Numeric():
			values[i] = `"set_id:numbers"`
		case n < 16:
			values[i] = `"set_id:` + pick(m.draw, []string{"words", "none"}) + `"`
		default:
			values[i] = pick(m.draw, m.pools[name].values)
		}
	}
	if len(values) == 1 && m.percent(40) {
		return values[0]
	}
	return "[" + strings.Join(values, ",") + "]"
}

// alias returns one of the names of an operator.
func (m *filterGenerator) alias(op string) string {
	aliases := map[string][]string{
		"in": {"in", "in", "=", "==", "==="}, "not-in": {"not-in", "!=", "!=="}, "gt": {"gt", ">"}, "gte": {"gte", ">="},
		"lt": {"lt", "<"}, "lte": {"lte", "<="}, "filter": {"filter", "wildcard"},
	}
	if names, has := aliases[op]; has {
		return pick(m.draw, names)
	}
	return op
}

// wildcard returns a clause on several fields.
func (m *filterGenerator) wildcard(pivot, member string) string {
	var names []string
	for range m.between(1, 3) {
		name := m.field(pivot)
		if !model.ClassOf(m.fields.ByName[name].Type).Numeric() {
			names = append(names, quoted(name))
		}
	}
	if len(names) == 0 {
		names = []string{`"uid"`}
	}
	texts := []string{`a`, `A`, `?`, `a*`, ``, `*`, `É`, `\?`, `\*`, `RE*`, `green`, `T*e`, `10.*`, `db8`, `?x`, `*\\*`, `a?b`, `hla-a\*02:0?`, `東`, `d0`, `F`}
	value := quoted(pick(m.draw, texts))
	if m.percent(30) {
		value = "[" + value + "," + quoted(pick(m.draw, texts)) + "]"
	}
	return `{"op":"` + m.alias("filter") + `","content":{"fieldNames":[` + strings.Join(names, ",") + `],"value":` + value + `}` + member + `}`
}
