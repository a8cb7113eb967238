package searchtest

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"time"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/tools/searchtest/model"
)

// sorted returns documents sorted by the keys.
func (o *oracle) sorted(documents []*model.Element, by []index.Sort) []*model.Element {
	out := slices.Clone(documents)
	slices.SortStableFunc(out, func(a, b *model.Element) int {
		for _, s := range by {
			if c := compareBy(s, a, b); c != 0 {
				return c
			}
		}
		return 0
	})
	return out
}

// compareBy compares two documents by one key.
func compareBy(s index.Sort, a, b *model.Element) int {
	if s.Field.Path == "_id" {
		return directed(s, cmp.Compare(a.ID, b.ID))
	}
	x, hasX := sortValue(s, a)
	y, hasY := sortValue(s, b)
	switch {
	case hasX && hasY:
		return directed(s, model.Compare(model.ClassOf(s.Field.Type), x, y))
	case hasX == hasY:
		return 0
	case hasX == s.MissingFirst:
		return 1
	default:
		return -1
	}
}

func directed(s index.Sort, c int) int {
	if s.Descending {
		return -c
	}
	return c
}

// sortValue returns the value by which a document is sorted, false when it has none.
func sortValue(s index.Sort, d *model.Element) (model.Value, bool) {
	c := model.ClassOf(s.Field.Type)
	all := model.ValuesOf(s.Field, d.At(s.Field.Row()))
	if len(all) == 0 {
		return model.Value{}, false
	}
	slices.SortFunc(all, func(a, b model.Value) int { return model.Compare(c, a, b) })
	switch {
	case s.Mode == "max" || s.Mode == "" && s.Descending:
		return all[len(all)-1], true
	case s.Mode == "" || s.Mode == "min":
		return all[0], true
	}
	sum := 0.0
	for _, v := range all {
		sum += model.Float(c, v)
	}
	x := sum
	switch s.Mode {
	case "avg":
		x = rounded(s.Field, sum/float64(len(all)))
	case "median":
		x = rounded(s.Field, (model.Float(c, all[(len(all)-1)/2])+model.Float(c, all[len(all)/2]))/2)
	}
	if c == model.DateClass {
		return model.Value{At: time.UnixMilli(int64(x))}, true
	}
	return model.Value{Number: new(big.Rat).SetFloat64(x)}, true
}

// rounded rounds a result between two integers or milliseconds to the nearest, a half up, as the engine does.
func rounded(f query.Field, x float64) float64 {
	if model.ClassOf(f.Type) == model.FractionClass {
		return x
	}
	return math.Floor(x + 0.5)
}
