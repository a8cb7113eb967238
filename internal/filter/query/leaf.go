package query

import (
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"tutti/internal/base/jsontext"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/sqon"
)

// equal lowers the condition that a value is one of values, at the row of the field. Values that are invalid for the type are
// omitted.
func (s subject) equal(values []sqon.Value) *Node {
	if s.container || len(values) == 0 {
		return &Node{Op: Nothing}
	}
	if Dated(s.field.End().Type) {
		return s.dateRanges(values)
	}
	terms := make([]string, 0, len(values))
	for _, v := range values {
		if term, ok := s.term(v.Text); ok {
			terms = append(terms, term)
		}
	}
	return s.terms(terms)
}

// terms returns the clause of texts in the form of Node.Terms.
func (s subject) terms(terms []string) *Node {
	if len(terms) == 0 {
		return &Node{Op: Nothing}
	}
	slices.Sort(terms)
	return &Node{Op: Terms, Field: s.field, Terms: slices.Compact(terms)}
}

// dateRanges lowers the condition that a value is an instant within one of the dates.
func (s subject) dateRanges(values []sqon.Value) *Node {
	members := make([]*Node, 0, len(values))
	for _, v := range values {
		from, to, err := s.timeRange(v)
		if err != nil {
			continue
		}
		members = append(members, &Node{
			Op: Range, Field: s.field,
			From: Bound{Set: true, Inclusive: true, Time: from}, To: Bound{Set: true, Time: to},
		})
	}
	return anyOf(members...)
}

// timeRange returns the time range of a date for the field, from its first instant to the first after it. A field of milliseconds has
// the millisecond of a smaller fraction, as in documents; one of nanoseconds has the instant of any fraction.
func (s subject) timeRange(v sqon.Value) (from, to time.Time, err error) {
	from, to, err = v.DateIn(s.field.Format)
	switch precision, group := to.Sub(from), groupOf(s.field.End().Type); {
	case group == fieldtype.Millis && precision < time.Millisecond:
		from = from.Truncate(time.Millisecond)
		to = from.Add(time.Millisecond)
	case group == fieldtype.Nanos && precision < time.Second && strings.Contains(v.Text, "T"):
		to = from.Add(1)
	}
	return from, to, err
}

// maxText is the length in bytes of the longest text that is matched as a whole: engines do not index longer ones, and reject them
// in queries.
const maxText = 32_766

// term returns the form of a text that Node.Terms has for the field's type, false when the type has no such value.
func (s subject) term(text string) (string, bool) {
	s.field = s.field.End()
	switch groupOf(s.field.Type) {
	case fieldtype.Exact, fieldtype.Flattened, fieldtype.Analyzed:
		return text, len(text) <= maxText
	case fieldtype.Address:
		address, err := netip.ParseAddr(text)
		return address.Unmap().WithZone("").String(), err == nil
	case fieldtype.Boolean:
		switch text {
		case "1":
			text = "true"
		case "0":
			text = "false"
		}
		return text, text == "true" || text == "false"
	case fieldtype.Integer, fieldtype.Unsigned:
		return s.integerTerm(text)
	case fieldtype.Float:
		v, err := strconv.ParseFloat(text, 64)
		v = roundToType(s.field.Type, v)
		return jsontext.Number(v + 0), err == nil && !math.IsInf(v, 0) && isNumeral(text)
	case fieldtype.Scaled:
		key, ok := Key(s.field, text)
		return jsontext.Number(Number(s.field, key)), ok && isNumeral(text)
	default:
		return "", false
	}
}

// integerTerm returns an integer within the range of the type. A number with a fraction is not a value.
func (s subject) integerTerm(text string) (string, bool) {
	if !isNumeral(text) {
		return "", false
	}
	if v := decimal(text); !v.IsInt() {
		return "", false
	}
	key, ok := Key(s.field, text)
	return Text(s.field, key), ok
}

// like lowers the condition that a value matches a pattern, at the row of the field.
func (s subject) like(patterns []sqon.Pattern, fold bool) *Node {
	if s.container || len(patterns) == 0 {
		return &Node{Op: Nothing}
	}
	switch groupOf(s.field.Type) {
	case fieldtype.Exact, fieldtype.Flattened, fieldtype.Analyzed, fieldtype.Address:
		patterns = slices.Clone(patterns)
		slices.Sort(patterns)
		return &Node{Op: Patterns, Field: s.field, Patterns: slices.Compact(patterns), Fold: fold}
	case fieldtype.Boolean:
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
