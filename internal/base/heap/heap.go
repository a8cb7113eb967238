// Package heap implements binary heaps on slices, as container/heap does, without an interface to implement: a function compares
// two items. The least item is the first of the slice.
package heap

// Init reorders items into a heap.
func Init[T any](items []T, less func(a, b T) bool) {
	for i := len(items)/2 - 1; i >= 0; i-- {
		down(items, i, less)
	}
}

// Fix restores the order after a change of the first item.
func Fix[T any](items []T, less func(a, b T) bool) { down(items, 0, less) }

// Push adds an item.
func Push[T any](items []T, item T, less func(a, b T) bool) []T {
	items = append(items, item)
	for i := len(items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !less(items[i], items[parent]) {
			break
		}
		items[i], items[parent] = items[parent], items[i]
		i = parent
	}
	return items
}

// Pop removes the first item.
func Pop[T any](items []T, less func(a, b T) bool) []T {
	last := len(items) - 1
	items[0] = items[last]
	items = items[:last]
	down(items, 0, less)
	return items
}

// down moves the item at i behind those below it that are less.
func down[T any](items []T, i int, less func(a, b T) bool) {
	for child := 2*i + 1; child < len(items); child = 2*i + 1 {
		if child+1 < len(items) && less(items[child+1], items[child]) {
			child++
		}
		if !less(items[child], items[i]) {
			return
		}
		items[i], items[child] = items[child], items[i]
		i = child
	}
}
