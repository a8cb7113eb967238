package oracle

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"tutti/internal/index"
	"tutti/internal/tools/searchtest/model"
)

// Sorted returns documents sorted by the keys.
func (o *Oracle) Sorted(documents []*model.Element, by []index.Sort) []*model.Element {
	out := slices.Clone(documents)
	ranks := make([]map[*model.Element]int, len(by))
	for i, s := range by {
		ranks[i] = o.RanksBy(s)
	}
	slices.SortStableFunc(out, func(a, b *model.Element) int {
		for i, s := range by {
			if c := compareRanks(s, ranks[i][a], ranks[i][b]); c != 0 {
				return c
			}
		}
		return 0
	})
	return out
}

// compareRanks compares two documents by the ranks of their values, 0 for none.
func compareRanks(s index.Sort, a, b int) int {
	switch {
	case a == b:
		return 0
	case (a == 0 || b == 0) && (a == 0) == s.MissingFirst:
		return -1
	case a == 0 || b == 0:
		return 1
	case s.Descending:
		return cmp.Compare(b, a)
	default:
		return cmp.Compare(a, b)
	}
}

// rankKey is what the ranks of the values of a field depend on.
type rankKey struct {
	path, mode string
	// downwards and missingFirst matter where an engine conflates values.
	downwards, missingFirst bool
}

// RanksBy returns the ranks of all documents by a key, from 1 on; of those without a value there is none.
func (o *Oracle) RanksBy(s index.Sort) map[*model.Element]int {
	if s.Mode == "" {
		s.Mode = "min"
		if s.Descending {
			s.Mode = "max"
		}
	}
	key := rankKey{s.Field.Path, s.Mode, o.Conflates && s.Descending, o.Conflates && s.MissingFirst}
	if ranks, known := o.ranks[key]; known {
		return ranks
	}
	type valued struct {
		document *model.Element
		value    model.Value
	}
	var all []valued
	for _, d := range o.Documents {
		if s.Field.Path == "_id" {
			all = append(all, valued{d, model.Value{Text: d.ID}})
		} else if v, has := o.sortValue(s, d); has {
			all = append(all, valued{d, v})
		}
	}
	c := model.ClassOf(s.Field.Type)
	if computed(s.Mode) {
		c = model.FractionClass
	}
	slices.SortFunc(all, func(a, b valued) int { return model.Compare(c, a.value, b.value) })
	ranks := make(map[*model.Element]int, len(all))
	for i, v := range all {
		if i > 0 && model.Compare(c, all[i-1].value, v.value) == 0 {
			ranks[v.document] = ranks[all[i-1].document]
		} else {
			ranks[v.document] = i + 1
		}
	}
	if o.ranks == nil {
		o.ranks = map[rankKey]map[*model.Element]int{}
	}
	o.ranks[key] = ranks
	return ranks
}

func computed(mode string) bool { return mode == "sum" || mode == "avg" || mode == "median" }

// bits63 is the lowest number that needs 64 bits.
var bits63 = new(big.Rat).SetUint64(1 << 63)

// sortValue returns the value by which a document is sorted, false when it has none.
func (o *Oracle) sortValue(s index.Sort, d *model.Element) (model.Value, bool) {
	v, has := o.chosenValue(s, d)
	if c := model.ClassOf(s.Field.Type); has && computed(s.Mode) && c != model.FractionClass && !o.Conflates { // nothing is computed to the limits
		v.Number = new(big.Rat).SetInt64(min(max(v.Number.Num().Int64(), math.MinInt64+1), math.MaxInt64-1))
	}
	return v, has && (!o.Conflates || !beside(s, v))
}

// beside reports whether v is the value of its type beside which documents without a value are.
func beside(s index.Sort, v model.Value) bool {
	sign, limit := -1, new(big.Rat).SetInt64(math.MinInt64)
	if s.Descending == s.MissingFirst {
		sign, limit = 1, new(big.Rat).SetInt64(math.MaxInt64)
	}
	switch {
	case v.Inf != 0:
		return v.Inf == sign
	case s.Field.Type == "date_nanos" && v.Number == nil:
		return sign > 0 && v.At.UnixNano() == math.MaxInt64
	case v.Number == nil || model.ClassOf(s.Field.Type) == model.FractionClass:
		return false
	case s.Field.Type == "unsigned_long" && sign < 0:
		limit = new(big.Rat)
	case s.Field.Type == "unsigned_long":
		limit = new(big.Rat).SetUint64(math.MaxUint64)
	}
	return v.Number.Cmp(limit) == 0
}

// chosenValue returns the lowest or highest value of a document, or the one that is computed from all.
func (o *Oracle) chosenValue(s index.Sort, d *model.Element) (model.Value, bool) {
	c := model.ClassOf(s.Field.Type)
	var all []model.Value
	for _, row := range d.At(s.Field.Row()) { // numbers are added in this order
		values := slices.Clone(row.Values[s.Field.Path])
		slices.SortFunc(values, func(a, b model.Value) int { return model.Compare(c, a, b) })
		if n := len(values); o.Signed && n > 1 && s.Field.Type == "unsigned_long" && values[0].Number.Sign() == 0 && values[n-1].Number.Cmp(bits63) < 0 {
			values = values[1:]
		}
		all = append(all, values...)
	}
	byValue := func(a, b model.Value) int { return model.Compare(c, a, b) }
	switch {
	case len(all) == 0:
		return model.Value{}, false
	case s.Mode == "max" || s.Mode == "" && s.Descending:
		return slices.MaxFunc(all, byValue), true
	case !computed(s.Mode):
		return slices.MinFunc(all, byValue), true
	case s.Mode == "median": // not of nested elements
		all = all[(len(all)-1)/2 : len(all)/2+1]
	}
	if c == model.FractionClass {
		return computedFraction(s, all), true
	}
	return computedWhole(s, all), true
}

// computedWhole computes with integers of 64 bits, whose sums overflow except for medians, and rounds a half up.
func computedWhole(s index.Sort, all []model.Value) model.Value {
	sum, double := int64(0), 0.0
	for _, v := range all {
		sum += model.Whole(s.Field.Type, v)
		double += float64(model.Whole(s.Field.Type, v))
	}
	if s.Mode == "avg" {
		double = float64(sum)
	}
	if s.Mode != "sum" && len(all) > 1 {
		exact := double / float64(len(all))
		x := math.Floor(exact)
		if exact-x >= 0.5 {
			x++
		}
		switch {
		case x >= 1<<63:
			sum = math.MaxInt64
		case x < -1<<63:
			sum = math.MinInt64
		default:
			sum = int64(x)
		}
	}
	return model.Value{Number: new(big.Rat).SetInt64(sum)}
}

// computedFraction computes with floating-point numbers of 64 bits, of which float has those of 32 bits as a result.
func computedFraction(s index.Sort, all []model.Value) model.Value {
	x := 0.0
	for _, v := range all {
		x += model.Float(model.FractionClass, v)
	}
	if s.Mode != "sum" {
		x /= float64(len(all))
	}
	if s.Field.Type == "float" {
		x = float64(float32(x))
	}
	switch {
	case math.IsInf(x, 1):
		return model.Value{Inf: 1}
	case math.IsInf(x, -1):
		return model.Value{Inf: -1}
	default:
		return model.Value{Number: new(big.Rat).SetFloat64(x)}
	}
}
