package searchtest

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"time"

	"tutti/internal/index"
	"tutti/internal/index/query"
)

// sorted returns documents in an order.
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

// compareBy orders two documents by one key.
func compareBy(s index.Sort, a, b *element) int {
	if s.Field.Path == "_id" {
		return turned(s, cmp.Compare(a.id, b.id))
	}
	x, hasX := sortValue(s, a)
	y, hasY := sortValue(s, b)
	switch {
	case hasX && hasY:
		return turned(s, compare(classOf(s.Field.Type), x, y))
	case hasX == hasY:
		return 0
	case hasX == s.MissingFirst:
		return 1
	default:
		return -1
	}
}

func turned(s index.Sort, c int) int {
	if s.Descending {
		return -c
	}
	return c
}

// sortValue returns what counts of a document in an order, false when it has no value.
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
		x = whole(s.Field, sum/float64(len(all)))
	case "median":
		x = whole(s.Field, (float(c, all[(len(all)-1)/2])+float(c, all[len(all)/2]))/2)
	}
	if c == dateClass {
		return value{at: time.UnixMilli(int64(x))}, true
	}
	return value{number: new(big.Rat).SetFloat64(x)}, true
}

// whole rounds what comes between two integers or milliseconds as the engine does: to the nearest, upwards in the middle.
func whole(f query.Field, x float64) float64 {
	if classOf(f.Type) == fractionClass {
		return x
	}
	return math.Floor(x + 0.5)
}
