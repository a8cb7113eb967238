package oracle

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/tools/searchtest/model"
)

// test is a condition on the values of one field in some rows.
type test func(values []model.Value) bool

// anyValue is the test that one of the values satisfies is.
func anyValue(is func(v model.Value) bool) test {
	return func(values []model.Value) bool { return slices.ContainsFunc(values, is) }
}

// testsOfValues returns the tests of a clause's values on a field (CONTRACT section 4), one per value.
func (o *Oracle) testsOfValues(n *sqon.Node, f query.Field) []test {
	if slices.Contains([]sqon.Operator{sqon.Gt, sqon.Gte, sqon.Lt, sqon.Lte, sqon.Between}, n.Op) {
		return []test{anyValue(inRange(n, f))}
	}
	tests := make([]test, 0, len(n.Values))
	for _, v := range n.Values {
		if o.Fields.Lowercased(f.Path) && v.Text != "__missing__" {
			v.Text = strings.ToLower(v.Text)
		}
		_, ranged := model.EndOf(f)
		switch opaque := model.ClassOf(f.Type) == model.OpaqueClass && !ranged; {
		case opaque && (n.Op == sqon.Wildcard || v.Text != "__missing__"):
			tests = append(tests, func([]model.Value) bool { return false })
		case n.Op == sqon.Wildcard:
			tests = append(tests, anyValue(contains(v.Text)))
		default:
			tests = append(tests, o.equal(v, f))
		}
	}
	return tests
}

// contains returns the condition of a value of a wildcard.
func contains(text string) func(v model.Value) bool {
	pattern := model.ParsePattern(text)
	if !model.Has(pattern, '*') && !model.Has(pattern, '?') {
		pattern = slices.Concat([]model.PatternChar{{Any: '*'}}, pattern, []model.PatternChar{{Any: '*'}})
	}
	return func(v model.Value) bool { return model.Matches(pattern, []rune(v.Text), true) }
}

// equal returns the test of a value of in, not-in, some-not-in or all.
func (o *Oracle) equal(v sqon.Value, f query.Field) test {
	id, set := strings.CutPrefix(v.Text, "set_id:")
	pattern := model.ParsePattern(v.Text)
	switch {
	case v.Kind != sqon.String:
		return anyValue(equalTo(v, f))
	case v.Text == "__missing__":
		return func(values []model.Value) bool { return len(values) == 0 }
	case set:
		members := make([]test, 0, len(o.Sets[id]))
		for _, member := range o.Sets[id] {
			members = append(members, anyValue(equalTo(sqon.Value{Text: member}, f)))
		}
		return func(values []model.Value) bool {
			return slices.ContainsFunc(members, func(is test) bool { return is(values) })
		}
	case model.Has(pattern, '*'):
		return anyValue(func(v model.Value) bool { return model.Matches(pattern, []rune(v.Text), false) })
	default:
		return anyValue(equalTo(sqon.Value{Text: model.Literal(pattern)}, f))
	}
}

// equalTo returns the condition that a value is v.
func equalTo(v sqon.Value, f query.Field) func(v model.Value) bool {
	if end, ranged := model.EndOf(f); ranged {
		return withinRange(v, end)
	}
	c := model.ClassOf(f.Type)
	switch c {
	case model.DateClass:
		from, to, err := instants(v, f)
		return func(v model.Value) bool { return err == nil && !v.At.Before(from) && v.At.Before(to) }
	case model.IntegerClass:
		want, ok := model.Numeral(v.Text)
		return func(v model.Value) bool { return ok && model.Compare(c, v, want) == 0 }
	case model.FractionClass:
		want, ok := model.Fraction(f, v.Text)
		return func(v model.Value) bool { return ok && want.Number != nil && model.Compare(c, v, want) == 0 }
	case model.AddressClass:
		want, ok := model.StoredValue(f, v.Text)
		return func(v model.Value) bool { return ok && v == want }
	default:
		return func(other model.Value) bool { return other.Text == v.Text }
	}
}

// withinRange returns the condition that a range contains v, a value of end. A number with a fraction is no value of an integer type.
func withinRange(v sqon.Value, end query.Field) func(v model.Value) bool {
	if model.ClassOf(end.Type) == model.DateClass {
		from, to, err := instants(v, end)
		return func(v model.Value) bool { return err == nil && v.Range.MeetsPeriod(from, to) }
	}
	want, ok := model.StoredValue(end, v.Text)
	ok = ok && want.Inf == 0 // it is no value of the type
	if whole, numeral := model.Numeral(v.Text); model.ClassOf(end.Type) == model.IntegerClass && numeral {
		most := map[string]uint{"integer": 31, "long": 63}[end.Type]
		limit := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), most))
		ok = whole.Number.IsInt() && whole.Number.Cmp(limit) < 0 && whole.Number.Cmp(limit.Neg(limit)) >= 0
	}
	return func(v model.Value) bool { return ok && v.Range.Meets(want, want) }
}

// inRange returns the condition that a value is in the range of a clause.
func inRange(n *sqon.Node, f query.Field) func(v model.Value) bool {
	ends := make([]bounds, len(n.Values))
	for i, v := range n.Values {
		ends[i] = boundsOf(v, f)
	}
	c := model.ClassOf(f.Type)
	switch first, last := ends[0], ends[len(ends)-1]; n.Op {
	case sqon.Gt:
		return func(v model.Value) bool { return first.after(c, v) }
	case sqon.Gte:
		return func(v model.Value) bool { return !first.before(c, v) }
	case sqon.Lt:
		return func(v model.Value) bool { return first.before(c, v) }
	case sqon.Lte:
		return func(v model.Value) bool { return !first.after(c, v) }
	default:
		if first.beyond(c, last) {
			first, last = last, first
		}
		return func(v model.Value) bool { return !first.before(c, v) && !last.after(c, v) }
	}
}

// instants returns the first instant of a date, and the first after it: a date has whole milliseconds, and a fraction of a second
// names one instant of a date_nanos.
func instants(v sqon.Value, f query.Field) (from, to time.Time, err error) {
	from, to, err = v.Date()
	if f.Type == "date_nanos" {
		if strings.Contains(v.Text, ":") && strings.Contains(v.Text, ".") {
			to = from.Add(time.Nanosecond)
		}
		return from, to, err
	}
	if last := time.UnixMilli(from.UnixMilli() + 1).UTC(); to.Before(last) {
		from, to = time.UnixMilli(from.UnixMilli()).UTC(), last
	}
	return from, to, err
}

// bounds is what a value of a range covers: a number itself, a date from its first instant to the first after it.
type bounds struct {
	from, to model.Value
}

func boundsOf(v sqon.Value, f query.Field) bounds {
	switch model.ClassOf(f.Type) {
	case model.DateClass:
		from, to, _ := instants(v, f) // valid after Check
		return bounds{model.Value{At: from}, model.Value{At: to}}
	case model.FractionClass:
		x, _ := model.Fraction(f, v.Text)
		return bounds{x, x}
	default:
		x, _ := model.Numeral(v.Text)
		return bounds{x, x}
	}
}

// before reports whether v is before the bounds, after whether it is after them.
func (b bounds) before(c model.Class, v model.Value) bool {
	return model.CompareBound(c, v, b.from) < 0
}

// beyond reports whether all of b comes after all of other.
func (b bounds) beyond(c model.Class, other bounds) bool {
	if c == model.DateClass {
		return !b.from.At.Before(other.to.At)
	}
	return model.CompareBound(c, b.from, other.to) > 0
}

func (b bounds) after(c model.Class, v model.Value) bool {
	if c == model.DateClass {
		return !v.At.Before(b.to.At)
	}
	return model.CompareBound(c, v, b.to) > 0
}
