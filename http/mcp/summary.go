package mcp

import (
	"strconv"
	"strings"

	"tutti/internal/filter/sqon"
)

// maxNamed is how many values a summary names.
const maxNamed = 10

// summary describes a filter in words.
func summary(n *sqon.Node) string {
	switch {
	case n == nil:
		return "all documents"
	case n.Pivot != "":
		inner := *n
		inner.Pivot = ""
		return "one element of " + n.Pivot + " with: " + summary(&inner)
	case n.Group():
		return groupSummary(n)
	default:
		return strings.Join(n.Fields, " or ") + " " + comparison(n.Op) + " " + valuesSummary(n)
	}
}

func groupSummary(n *sqon.Node) string {
	if len(n.Content) == 0 {
		if n.Op == sqon.Or {
			return "no document"
		}
		return "all documents"
	}
	parts := make([]string, len(n.Content))
	for i, member := range n.Content {
		if parts[i] = summary(member); member.Pivot != "" || member.Group() && len(member.Content) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	switch n.Op {
	case sqon.Or:
		return strings.Join(parts, " or ")
	case sqon.Not:
		return "not " + strings.Join(parts, " and not ")
	default:
		return strings.Join(parts, " and ")
	}
}

// comparison returns an operator in words.
func comparison(op sqon.Operator) string {
	switch op {
	case sqon.In:
		return "is"
	case sqon.NotIn:
		return "is not"
	case sqon.SomeNotIn:
		return "has some value that is not"
	case sqon.All:
		return "has all of"
	case sqon.Gt:
		return "is greater than"
	case sqon.Gte:
		return "is at least"
	case sqon.Lt:
		return "is less than"
	case sqon.Lte:
		return "is at most"
	case sqon.Between:
		return "is between"
	default:
		return "matches"
	}
}

// valuesSummary returns the values of a clause, the first ones of many.
func valuesSummary(n *sqon.Node) string {
	conjunction := " or "
	if n.Op == sqon.All || n.Op == sqon.Between {
		conjunction = " and "
	}
	var values []string
	for _, v := range n.Values[:min(len(n.Values), maxNamed)] {
		values = append(values, valueSummary(n.Op, v))
	}
	switch more := len(n.Values) - maxNamed; {
	case len(n.Values) == 0:
		return "no value"
	case more > 0:
		return strings.Join(values, ", ") + conjunction + strconv.Itoa(more) + " other values"
	case len(values) == 1:
		return values[0]
	default:
		last := len(values) - 1
		return strings.Join(values[:last], ", ") + conjunction + values[last]
	}
}

// valueSummary returns a value: quoted as the text it stands for, and a pattern as what it matches.
func valueSummary(op sqon.Operator, v sqon.Value) string {
	if v.Kind != sqon.String {
		return v.Text
	}
	if op == sqon.In || op == sqon.NotIn || op == sqon.SomeNotIn || op == sqon.All {
		switch term := v.Term(); term.Kind {
		case sqon.TermPattern:
			return "something that matches " + strconv.Quote(v.Text)
		case sqon.TermText:
			return strconv.Quote(term.Text)
		default: // as it is written
		}
	}
	return strconv.Quote(v.Text)
}
