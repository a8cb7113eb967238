package validation

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"sync/atomic"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"tutti/schemas/jsontree"
)

// verdict is whether a value satisfies a schema.
type verdict uint8

const (
	undecided verdict = iota // only the library can say
	valid
	invalid
)

// and returns the verdict of a value about which two are known.
func (x verdict) and(y verdict) verdict {
	switch {
	case x == invalid || y == invalid:
		return invalid
	case x == undecided || y == undecided:
		return undecided
	default:
		return valid
	}
}

// maxQuickDepth bounds how deep the schemas of a value are followed: a schema may refer to itself without going to a part of the value.
const maxQuickDepth = 256

// quick is a compiled schema that decides about most values in a fraction of the library's time: the library makes maps of the parts of each
// value and their locations, in case that one of them fails. It is as exact as the library where it decides, and leaves the others to it.
type quick struct {
	schema *jsonschema.Schema
	own    *extension
	format func(any) bool
	// undecided is set for a schema with a keyword that quick does not know.
	undecided bool
	kinds     kindSet
	// integers is set if numbers must be whole.
	integers bool

	ref, not, condition, then, otherwise *quick
	allOf, anyOf, oneOf                  []*quick
	properties                           map[string]*quick
	patterns                             []*quick // of own.patterns
	additional                           *quick
	first                                []*quick // items before own.from
	items                                *quick
}

// newQuick returns the quick form of a compiled schema, whose checks takeOver has moved. formats are those that the compiler adds to the
// library's own.
func newQuick(root *jsonschema.Schema, formats map[string]func(any) bool) *quick {
	known := map[*jsonschema.Schema]*quick{}
	var of func(*jsonschema.Schema) *quick
	each := func(schemas []*jsonschema.Schema) (all []*quick) {
		for _, s := range schemas {
			all = append(all, of(s))
		}
		return all
	}
	of = func(s *jsonschema.Schema) *quick {
		if s == nil || known[s] != nil {
			return known[s]
		}
		q := &quick{schema: s, own: extensionOf(s), kinds: kindsNamed(s.Types), undecided: hasRare(s)}
		known[s] = q
		q.integers = slices.Contains(s.Types, "integer") && !slices.Contains(s.Types, "number")
		var own bool
		if q.format, own = formats[s.Format]; !own {
			q.format = jsonschema.Formats[s.Format]
		}
		q.ref, q.not, q.condition, q.then, q.otherwise = of(s.Ref), of(s.Not), of(s.If), of(s.Then), of(s.Else)
		q.allOf, q.anyOf, q.oneOf = each(s.AllOf), each(s.AnyOf), each(s.OneOf)
		q.properties = make(map[string]*quick, len(q.own.named))
		for name, property := range q.own.named {
			q.properties[name] = of(property)
		}
		for _, p := range q.own.patterns {
			q.patterns = append(q.patterns, of(p.schema))
		}
		q.additional, q.items, q.first = of(q.own.additional), of(q.own.items), each(s.PrefixItems)
		if tuple, ok := s.Items.([]*jsonschema.Schema); ok {
			q.first = each(tuple)
		}
		return q
	}
	return of(root)
}

// hasRare reports whether a schema has a keyword that quick does not know.
func hasRare(s *jsonschema.Schema) bool {
	_, list := s.Items.(*jsonschema.Schema)
	allowed, _ := s.AdditionalProperties.(bool)
	switch {
	case s.Format == "regex": // it panics once a validation is stopped
	case s.RecursiveRef != nil, s.DynamicRef != nil:
	case s.ContentEncoding != "", s.ContentMediaType != "", s.ContentSchema != nil, s.Pattern != nil:
	case s.Contains != nil, s.UnevaluatedItems != nil, s.AdditionalItems != nil, list, s.Items2020 != nil:
	default:
		return s.AdditionalProperties != nil && !allowed || hasRareOfObjects(s)
	}
	return true
}

func hasRareOfObjects(s *jsonschema.Schema) bool {
	return s.UnevaluatedProperties != nil || s.PropertyNames != nil || extensionOf(s).names != nil || s.RegexProperties ||
		len(s.PatternProperties) > 0 || len(s.Properties) > 0 || len(s.Dependencies) > 0 || len(s.DependentRequired) > 0 || len(s.DependentSchemas) > 0
}

// decide returns whether a value satisfies the schema. What it returns after stop is set means nothing.
func (q *quick) decide(v *jsontree.Value, stop *atomic.Bool, depth int) verdict {
	switch {
	case q.schema.Always != nil && *q.schema.Always:
		return valid
	case q.schema.Always != nil || q.own.nothing:
		return invalid
	case q.undecided || depth == maxQuickDepth || stop.Load():
		return undecided
	case !q.allows(v) || !q.meets(v, stop):
		return invalid
	}
	result := q.decideWhole(v, stop, depth)
	switch {
	case result == invalid:
	case v.Kind == jsontree.KindObject:
		result = q.decideMembers(v, stop, depth, result)
	case v.Kind == jsontree.KindArray:
		result = q.decideItems(v, stop, depth, result)
	}
	return result
}

// decideWhole returns whether a value satisfies the schemas that apply to the whole of it.
func (q *quick) decideWhole(v *jsontree.Value, stop *atomic.Bool, depth int) verdict {
	result := valid
	for _, part := range q.allOf {
		if result = result.and(part.decide(v, stop, depth+1)); result == invalid {
			return invalid
		}
	}
	if q.ref != nil {
		result = result.and(q.ref.decide(v, stop, depth+1))
	}
	if q.not != nil {
		result = result.and([...]verdict{valid: invalid, invalid: valid}[q.not.decide(v, stop, depth+1)])
	}
	if len(q.anyOf) > 0 && result != invalid {
		result = result.and(among(q.anyOf, len(q.anyOf), v, stop, depth))
	}
	if len(q.oneOf) > 0 && result != invalid {
		result = result.and(among(q.oneOf, 1, v, stop, depth))
	}
	if q.condition != nil && result != invalid {
		result = result.and(q.chosen(v, stop, depth))
	}
	return result
}

// among returns whether a value satisfies at least one and at most a number of alternatives.
func among(alternatives []*quick, most int, v *jsontree.Value, stop *atomic.Bool, depth int) verdict {
	satisfied, open := 0, false
	for _, q := range alternatives {
		switch q.decide(v, stop, depth+1) {
		case valid:
			if satisfied++; most == len(alternatives) {
				return valid
			}
		case undecided:
			open = true
		case invalid:
		}
	}
	switch {
	case satisfied > most:
		return invalid
	case open:
		return undecided
	case satisfied == 0:
		return invalid
	default:
		return valid
	}
}

// chosen returns the verdict of then or else.
func (q *quick) chosen(v *jsontree.Value, stop *atomic.Bool, depth int) verdict {
	branch := q.otherwise
	switch q.condition.decide(v, stop, depth+1) {
	case undecided:
		return undecided
	case valid:
		branch = q.then
	case invalid:
	}
	if branch == nil {
		return valid
	}
	return branch.decide(v, stop, depth+1)
}

func (q *quick) decideMembers(v *jsontree.Value, stop *atomic.Bool, depth int, result verdict) verdict {
	if len(q.properties) == 0 && q.patterns == nil && q.additional == nil {
		return result
	}
	for i := range v.Members() {
		m := &v.Members()[i]
		property, known := q.properties[m.Name]
		if known {
			result = result.and(property.decide(&m.Value, stop, depth+1))
		}
		for n, p := range q.patterns {
			if q.own.patterns[n].expression.Match(m.Name, stop) {
				known = true
				result = result.and(p.decide(&m.Value, stop, depth+1))
			}
		}
		if !known && q.additional != nil {
			result = result.and(q.additional.decide(&m.Value, stop, depth+1))
		}
		if result == invalid {
			return invalid
		}
	}
	return result
}

func (q *quick) decideItems(v *jsontree.Value, stop *atomic.Bool, depth int, result verdict) verdict {
	if q.schema.UniqueItems {
		result = result.and(distinct(v.Items()))
	}
	for i := range v.Items() {
		part := q.items
		if i < len(q.first) {
			part = q.first[i]
		} else if part == nil {
			return result
		}
		if result = result.and(part.decide(&v.Items()[i], stop, depth+1)); result == invalid {
			return invalid
		}
	}
	return result
}

// allows reports whether a value has one of the types, and is one of the constants.
func (q *quick) allows(v *jsontree.Value) bool {
	kind := [...]kindSet{nulls, booleans, numbers, texts, arrays, objects}[v.Kind]
	equal := func(decoded any) bool { return v.Equals(decoded) }
	return q.kinds&kind != 0 && (kind != numbers || !q.integers || jsontree.IsInteger(v.Text)) &&
		(len(q.schema.Constant) == 0 || equal(q.schema.Constant[0])) &&
		(len(q.schema.Enum) == 0 || slices.ContainsFunc(q.schema.Enum, equal))
}

// meets reports whether a value keeps the bounds of its type.
func (q *quick) meets(v *jsontree.Value, stop *atomic.Bool) bool {
	s := q.schema
	switch v.Kind {
	case jsontree.KindString:
		length := len(v.Text)
		if s.MinLength > 0 || s.MaxLength >= 0 && length > s.MaxLength {
			length = utf8.RuneCountInString(v.Text)
		}
		return within(length, s.MinLength, s.MaxLength) && (q.format == nil || q.format(v.Text)) &&
			(q.own.pattern == nil || q.own.pattern.Match(v.Text, stop))
	case jsontree.KindNumber:
		return q.keepsNumber(v.Text)
	case jsontree.KindArray:
		return within(len(v.Items()), s.MinItems, s.MaxItems)
	case jsontree.KindObject:
		return within(len(v.Members()), s.MinProperties, s.MaxProperties) &&
			!slices.ContainsFunc(s.Required, func(name string) bool { return v.Member(name) == nil })
	case jsontree.KindNull, jsontree.KindBool:
	}
	return true
}

// within reports whether a number keeps its bounds, -1 for none.
func within(n, least, most int) bool { return n >= least && (most < 0 || n <= most) }

// keepsNumber reports whether a number keeps its bounds.
func (q *quick) keepsNumber(literal string) bool {
	s := q.schema
	return (s.Minimum == nil || compare(literal, s.Minimum) >= 0) && (s.ExclusiveMinimum == nil || compare(literal, s.ExclusiveMinimum) > 0) &&
		(s.Maximum == nil || compare(literal, s.Maximum) <= 0) && (s.ExclusiveMaximum == nil || compare(literal, s.ExclusiveMaximum) < 0) &&
		(s.MultipleOf == nil || new(big.Rat).Quo(jsontree.Rational(literal), s.MultipleOf).IsInt())
}

// compare compares a number with a bound. For small whole numbers it does not make an exact number.
func compare(literal string, bound *big.Rat) int {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil && bound.IsInt() && bound.Num().IsInt64() {
		return cmp.Compare(n, bound.Num().Int64())
	}
	return jsontree.Rational(literal).Cmp(bound)
}

// maxCompared is the number of items up to which those other than texts are compared with each other.
const maxCompared = 20

// distinct returns whether no two items are equal.
func distinct(items []jsontree.Value) verdict {
	texts := make(map[string]bool, len(items))
	var others []any
	for i := range items {
		item := &items[i]
		if item.Kind == jsontree.KindString {
			if texts[item.Text] {
				return invalid
			}
			texts[item.Text] = true
			continue
		}
		if len(others) == maxCompared {
			return undecided
		}
		if slices.ContainsFunc(others, item.Equals) {
			return invalid
		}
		others = append(others, item.Plain())
	}
	return valid
}
