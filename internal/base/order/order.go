// Package order sorts lists with one copy of the algorithm for all types of elements. The compiler writes those of package slices anew for each
// struct, about 12 KB of program; this one costs under 1 KB. It calls through an interface, so hot paths keep package slices.
package order

import "sort"

// Sort sorts a list by compare, as slices.SortFunc does: elements that compare as equal are in any order.
func Sort[T any](list []T, compare func(a, b T) int) { sort.Sort(sorter[T]{list, compare}) }

// Stable sorts a list by compare, as slices.SortStableFunc does: elements that compare as equal keep their order.
func Stable[T any](list []T, compare func(a, b T) int) { sort.Stable(sorter[T]{list, compare}) }

type sorter[T any] struct {
	list    []T
	compare func(a, b T) int
}

// Len implements sort.Interface.
func (s sorter[T]) Len() int { return len(s.list) }

// Less implements sort.Interface.
func (s sorter[T]) Less(i, j int) bool { return s.compare(s.list[i], s.list[j]) < 0 }

// Swap implements sort.Interface.
func (s sorter[T]) Swap(i, j int) { s.list[i], s.list[j] = s.list[j], s.list[i] }
