package query

import (
	"math"
	"net/netip"
	"slices"
	"strconv"

	"tutti/internal/sqon"
)

// equal lowers the question whether a value is one of values, at the row of the field. What can be no value of it is left out.
func (s subject) equal(values []sqon.Value) *Node {
	if s.container || len(values) == 0 {
		return &Node{Op: Nothing}
	}
	if Dated(s.field.Type) {
		return s.onDates(values)
	}
	terms := make([]string, 0, len(values))
	for _, v := range values {
		if term, ok := s.term(v.Text); ok {
			terms = append(terms, term)
		}
	}
	return s.terms(terms)
}

// terms returns the clause on texts as Node.Terms says them.
func (s subject) terms(terms []string) *Node {
	if len(terms) == 0 {
		return &Node{Op: Nothing}
	}
	slices.Sort(terms)
	return &Node{Op: Terms, Field: s.field, Terms: slices.Compact(terms)}
}

// onDates asks for an instant that one of the dates covers.
func (s subject) onDates(values []sqon.Value) *Node {
	members := make([]*Node, 0, len(values))
	for _, v := range values {
		from, to, err := v.Date()
		if err != nil {
			continue
		}
		members = append(members, &Node{
			Op: Range, Field: s.field,
			From: Bound{Set: true, Inclusive: true, Time: from}, To: Bound{Set: true, Time: to},
		})
	}
	return either(members...)
}

// maxText is how long a text may be that is found as a whole, in bytes: engines keep no longer ones, and refuse to look for them.
const maxText = 32_766

// term returns the text by which a value of the field's type is asked for, false when the type has no such value.
func (s subject) term(text string) (string, bool) {
	switch familyOf(s.field.Type) {
	case textFamily, analyzedFamily:
		return text, len(text) <= maxText
	case addressFamily:
		address, err := netip.ParseAddr(text)
		return address.Unmap().WithZone("").String(), err == nil
	case booleanFamily:
		switch text {
		case "1":
			text = "true"
		case "0":
			text = "false"
		}
		return text, text == "true" || text == "false"
	case integerFamily, unsignedFamily:
		return s.integerTerm(text)
	case fractionFamily:
		v, err := strconv.ParseFloat(text, 64)
		v = rounded(s.field.Type, v)
		return Literal(v + 0), err == nil && !math.IsInf(v, 0) && numeral(text)
	case scaledFamily:
		key, ok := Key(s.field, text)
		return Literal(Number(s.field, key)), ok && numeral(text)
	default:
		return "", false
	}
}

// integerTerm returns an integer that the type has room for; one with a fraction is no value.
func (s subject) integerTerm(text string) (string, bool) {
	if !numeral(text) {
		return "", false
	}
	if v := decimal(text); !v.IsInt() {
		return "", false
	}
	key, ok := Key(s.field, text)
	return Text(s.field, key), ok
}

// like lowers the question whether a value matches a pattern, at the row of the field.
func (s subject) like(patterns []sqon.Pattern, fold bool) *Node {
	if s.container || len(patterns) == 0 {
		return &Node{Op: Nothing}
	}
	switch familyOf(s.field.Type) {
	case textFamily, analyzedFamily, addressFamily:
		patterns = slices.Clone(patterns)
		slices.Sort(patterns)
		return &Node{Op: Patterns, Field: s.field, Patterns: slices.Compact(patterns), Fold: fold}
	case booleanFamily:
		var terms []string
		for _, word := range []string{"false", "true"} {
			if slices.ContainsFunc(patterns, func(p sqon.Pattern) bool { return p.MatchFold(word) }) {
				terms = append(terms, word)
			}
		}
		return s.terms(terms)
	default:
		return &Node{Op: Nothing}
	}
}
