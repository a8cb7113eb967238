package draw

import (
	"slices"
	"strings"

	"tutti/internal/filter/sqon"
	"tutti/internal/tools/searchtest/model"
)

// Filters generates filters on some fields.
type Filters struct {
	Choices
	// Leaves are the names of the fields with values.
	Leaves     []string
	fields     *model.FieldSet
	containers []string
	pivots     []string
	pools      map[string]pool // by name
	// Preferred is a field that is used more often.
	Preferred string
}

// NewFilters returns a generator of filters on fields.
func NewFilters(d Choices, fields *model.FieldSet) *Filters {
	m := &Filters{
		Choices: d, fields: fields, Leaves: fields.WithValues(), containers: fields.Containers(), pivots: fields.Pivots(), pools: map[string]pool{},
	}
	for _, name := range m.Leaves {
		m.pools[name] = poolAt(fields, name)
	}
	return m
}

// SavedSets returns the sets that filters may name.
func SavedSets() map[string][]string {
	return map[string][]string{
		"words":   {"a", "b", "a*b", "東京", "red", "*"},
		"numbers": {"7", "0.5", "2", "1000"},
		"none":    {},
	}
}

// Next returns the text of a random filter.
func (m *Filters) Next() string {
	if m.Percent(3) {
		return Pick(m.Choices, []string{`{}`, `null`})
	}
	return m.node(m.Between(1, 4), "")
}

// node returns a filter of at most the given depth; pivot is the innermost pivot around it.
func (m *Filters) node(depth int, pivot string) string {
	own := ""
	if len(m.pivots) > 0 && m.Percent(30) {
		own = Pick(m.Choices, m.pivots)
	}
	member := ""
	switch {
	case own != "":
		member = `,"pivot":` + Quoted(own)
		pivot = own
	case m.Percent(3):
		member = `,"pivot":null`
	}
	if depth <= 1 || m.Percent(25) {
		return m.clause(pivot, member)
	}
	content := make([]string, m.Between(1, 3))
	if m.Percent(3) {
		content = nil
	}
	for i := range content {
		content[i] = m.node(depth-1, pivot)
		if m.Percent(2) {
			content[i] = Pick(m.Choices, []string{`{}`, `null`})
		}
	}
	op := Pick(m.Choices, []string{"and", "and", "and", "or", "or", "not"})
	return `{"op":"` + op + `","content":[` + strings.Join(content, ",") + `]` + member + `}`
}

// field returns a random field, more often one below the pivot.
func (m *Filters) field(pivot string) string {
	if m.Preferred != "" && m.Percent(30) {
		return m.Preferred
	}
	name := Pick(m.Choices, m.Leaves)
	if pivot == "" || m.Percent(30) {
		return name
	}
	below := slices.DeleteFunc(slices.Clone(m.Leaves), func(name string) bool { return !strings.HasPrefix(name, pivot+".") })
	if len(below) == 0 {
		return name
	}
	return Pick(m.Choices, below)
}

// clause returns a clause with the given pivot member.
func (m *Filters) clause(pivot, member string) string {
	if len(m.containers) > 0 && m.Percent(3) {
		op := Pick(m.Choices, []string{"in", "not-in", "some-not-in", "all"})
		value := Pick(m.Choices, []string{`"__missing__"`, `["__missing__"]`, `["x","__missing__"]`, `["x"]`})
		return `{"op":"` + op + `","content":{"fieldName":` + Quoted(Pick(m.Choices, m.containers)) + `,"value":` + value + `}` + member + `}`
	}
	name := m.field(pivot)
	known := append(sqon.Operators(m.fields.ByName[name].Type), "all", "some-not-in", "in")
	op := Pick(m.Choices, known)
	if op == "filter" {
		return m.wildcard(pivot, member)
	}
	value := ""
	switch op {
	case "gt", "gte", "lt", "lte":
		value = Pick(m.Choices, m.pools[name].bounds)
		if m.Percent(10) {
			value = "[" + value + "]"
		}
	case "between":
		value = "[" + Pick(m.Choices, m.pools[name].bounds) + "," + Pick(m.Choices, m.pools[name].bounds) + "]"
	default:
		value = m.values(name)
	}
	return `{"op":"` + m.alias(op) + `","content":{"fieldName":` + Quoted(name) + `,"value":` + value + `}` + member + `}`
}

// values returns random values of in and similar operators.
func (m *Filters) values(name string) string {
	values := make([]string, m.Between(1, 3))
	if m.Percent(3) {
		values = nil
	}
	for i := range values {
		switch n := m.IntN(100); {
		case n < 12:
			values[i] = `"__missing__"`
		case n < 16 && model.ClassOf(m.fields.ByName[name].Type).Numeric():
			values[i] = `"set_id:numbers"`
		case n < 16:
			values[i] = `"set_id:` + Pick(m.Choices, []string{"words", "none"}) + `"`
		default:
			values[i] = Pick(m.Choices, m.pools[name].values)
		}
	}
	if len(values) == 1 && m.Percent(40) {
		return values[0]
	}
	return "[" + strings.Join(values, ",") + "]"
}

// alias returns one of the names of an operator.
func (m *Filters) alias(op string) string {
	aliases := map[string][]string{
		"in": {"in", "in", "=", "==", "==="}, "not-in": {"not-in", "!=", "!=="}, "gt": {"gt", ">"}, "gte": {"gte", ">="},
		"lt": {"lt", "<"}, "lte": {"lte", "<="}, "filter": {"filter", "wildcard"},
	}
	if names, has := aliases[op]; has {
		return Pick(m.Choices, names)
	}
	return op
}

// wildcard returns a clause on several fields.
func (m *Filters) wildcard(pivot, member string) string {
	var names []string
	for range m.Between(1, 3) {
		name := m.field(pivot)
		if !model.ClassOf(m.fields.ByName[name].Type).Numeric() {
			names = append(names, Quoted(name))
		}
	}
	if len(names) == 0 {
		names = []string{`"uid"`}
	}
	texts := []string{`a`, `A`, `?`, `a*`, ``, `*`, `É`, `\?`, `\*`, `RE*`, `green`, `T*e`, `10.*`, `db8`, `?x`, `*\\*`, `a?b`, `hla-a\*02:0?`, `東`, `d0`, `F`}
	value := Quoted(Pick(m.Choices, texts))
	if m.Percent(30) {
		value = "[" + value + "," + Quoted(Pick(m.Choices, texts)) + "]"
	}
	return `{"op":"` + m.alias("filter") + `","content":{"fieldNames":[` + strings.Join(names, ",") + `],"value":` + value + `}` + member + `}`
}
