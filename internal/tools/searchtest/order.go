package searchtest

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"time"

	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// sorted returns documents sorted by the keys.
func (o *oracle) sorted(documents []*element, by []index.Sort) []*element {
	out := slices.Clone(documents)
	slices.SortStableFunc(out, func(a, b *element) int {
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
func compareBy(s index.Sort, a, b *element) int {
	if s.Field.Path == "_id" {
		return directed(s, cmp.Compare(a.id, b.id))
	}
	x, hasX := sortValue(s, a)
	y, hasY := sortValue(s, b)
	switch {
	case hasX && hasY:
		return directed(s, compare(classOf(s.Field.Type), x, y))
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
func sortValue(s index.Sort, d *element) (value, bool) {
	c := classOf(s.Field.Type)
	all := valuesOf(s.Field, d.at(s.Field.Row()))
	if len(all) == 0 {
		return value{}, false
	}
	slices.SortFunc(all, func(a, b value) int { return compare(c, a, b) })
	switch {
	case s.Mode == "max" || s.Mode == "" && s.Descending:
		return all[len(all)-1], true
	case s.Mode == "" || s.Mode == "min":
		return all[0], true
	}
	sum := 0.0
	for _, v := range all {
		sum += float(c, v)
	}
	x := sum
	switch s.Mode {
	case "avg":
		x = rounded(s.Field, sum/float64(len(all)))
	case "median":
		x = rounded(s.Field, (float(c, all[(len(all)-1)/2])+float(c, all[len(all)/2]))/2)
	}
	if c == dateClass {
		return value{at: time.UnixMilli(int64(x))}, true
	}
	return value{number: new(big.Rat).SetFloat64(x)}, true
}

// rounded rounds a result between two integers or milliseconds to the nearest, a half up, as the engine does.
func rounded(f query.Field, x float64) float64 {
	if classOf(f.Type) == fractionClass {
		return x
	}
	return math.Floor(x + 0.5)
}
