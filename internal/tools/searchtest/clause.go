package searchtest

import (
	"slices"
	"strings"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
)

// test is a condition on the values of one field in some rows.
type test func(values []value) bool

// anyValue is the test that one of the values satisfies is.
func anyValue(is func(v value) bool) test {
	return func(values []value) bool { return slices.ContainsFunc(values, is) }
}

// testsOfValues returns the tests of a clause's values on a field (CONTRACT section 4), one per value.
func (o *oracle) testsOfValues(n *sqon.Node, f query.Field) []test {
	if slices.Contains([]sqon.Operator{sqon.Gt, sqon.Gte, sqon.Lt, sqon.Lte, sqon.Between}, n.Op) {
		return []test{anyValue(inRange(n, f))}
	}
	tests := make([]test, 0, len(n.Values))
	for _, v := range n.Values {
		if n.Op == sqon.Wildcard {
			tests = append(tests, anyValue(contains(v.Text)))
		} else {
			tests = append(tests, o.equal(v, f))
		}
	}
	return tests
}

// contains returns the condition of a value of a wildcard.
func contains(text string) func(v value) bool {
	pattern := parsePattern(text)
	if !has(pattern, '*') && !has(pattern, '?') {
		pattern = slices.Concat([]patternChar{{any: '*'}}, pattern, []patternChar{{any: '*'}})
	}
	return func(v value) bool { return matches(pattern, []rune(v.text), true) }
}

// equal returns the test of a value of in, not-in, some-not-in or all.
func (o *oracle) equal(v sqon.Value, f query.Field) test {
	id, set := strings.CutPrefix(v.Text, "set_id:")
	pattern := parsePattern(v.Text)
	switch {
	case v.Kind != sqon.String:
		return anyValue(equalTo(v, f))
	case v.Text == "__missing__":
		return func(values []value) bool { return len(values) == 0 }
	case set:
		members := make([]test, 0, len(o.sets[id]))
		for _, member := range o.sets[id] {
			members = append(members, anyValue(equalTo(sqon.Value{Text: member}, f)))
		}
		return func(values []value) bool {
			return slices.ContainsFunc(members, func(is test) bool { return is(values) })
		}
	case has(pattern, '*'):
		return anyValue(func(v value) bool { return matches(pattern, []rune(v.text), false) })
	default:
		return anyValue(equalTo(sqon.Value{Text: literal(pattern)}, f))
	}
}

// equalTo returns the condition that a value is v.
func equalTo(v sqon.Value, f query.Field) func(v value) bool {
	c := classOf(f.Type)
	switch c {
	case dateClass:
		from, to, err := v.Date()
		return func(v value) bool { return err == nil && !v.at.Before(from) && v.at.Before(to) }
	case integerClass:
		want, ok := numeral(v.Text)
		return func(v value) bool { return ok && compare(c, v, want) == 0 }
	case fractionClass:
		want, ok := fraction(f, v.Text)
		return func(v value) bool { return ok && want.number != nil && compare(c, v, want) == 0 }
	case addressClass:
		want, ok := storedValue(f, v.Text)
		return func(v value) bool { return ok && v == want }
	default:
		return func(other value) bool { return other.text == v.Text }
	}
}

// inRange returns the condition that a value is in the range of a clause.
func inRange(n *sqon.Node, f query.Field) func(v value) bool {
	ends := make([]bounds, len(n.Values))
	for i, v := range n.Values {
		ends[i] = boundsOf(v, f)
	}
	c := classOf(f.Type)
	switch first, last := ends[0], ends[len(ends)-1]; n.Op {
	case sqon.Gt:
		return func(v value) bool { return first.after(c, v) }
	case sqon.Gte:
		return func(v value) bool { return !first.before(c, v) }
	case sqon.Lt:
		return func(v value) bool { return first.before(c, v) }
	case sqon.Lte:
		return func(v value) bool { return !first.after(c, v) }
	default:
		return func(v value) bool { return !first.before(c, v) && !last.after(c, v) }
	}
}

// bounds is what a value of a range covers: a number itself, a date from its first instant to the first after it.
type bounds struct {
	from, to value
}

func boundsOf(v sqon.Value, f query.Field) bounds {
	switch classOf(f.Type) {
	case dateClass:
		from, to, _ := v.Date() // valid after Check
		return bounds{value{at: from}, value{at: to}}
	case fractionClass:
		x, _ := fraction(f, v.Text)
		return bounds{x, x}
	default:
		x, _ := numeral(v.Text)
		return bounds{x, x}
	}
}

// before reports whether v is before the bounds, after whether it is after them.
func (b bounds) before(c class, v value) bool { return order(c, v, b.from) < 0 }

func (b bounds) after(c class, v value) bool {
	if c == dateClass {
		return !v.at.Before(b.to.at)
	}
	return order(c, v, b.to) > 0
}

// order compares a value with a bound, which may be above or below all values.
func order(c class, v, bound value) int {
	if bound.inf != 0 {
		return -bound.inf
	}
	return compare(c, v, bound)
}
