package order_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"tutti/internal/base/order"
)

type pair struct{ key, place int }

func byKey(a, b pair) int { return cmp.Compare(a.key, b.key) }

// TestSort compares both with package slices on lists with equal keys.
func TestSort(t *testing.T) {
	for n := range 200 {
		list := make([]pair, n)
		for i := range list {
			list[i] = pair{rand.IntN(1 + n/3), i}
		}
		want, stable, sorted := slices.Clone(list), slices.Clone(list), slices.Clone(list)
		slices.SortStableFunc(want, byKey)
		order.Stable(stable, byKey)
		if !slices.Equal(stable, want) {
			t.Fatalf("Stable of %v: %v, want %v", list, stable, want)
		}
		order.Sort(sorted, func(a, b pair) int { return cmp.Or(byKey(a, b), a.place-b.place) })
		if !slices.Equal(sorted, want) {
			t.Fatalf("Sort of %v: %v, want %v", list, sorted, want)
		}
	}
}
