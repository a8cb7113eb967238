package segment

import "iter"

// tournament merges sources, each of which is sorted.
type tournament struct {
	// advance goes to the next item of a source; false when there is none.
	advance func(source int) bool
	// less compares the items that two sources stand at.
	less func(a, b int) bool
	heap []int
}

// run returns the source of the lowest item, again and again, of n sources that stand before their first.
func (t *tournament) run(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if t.advance(i) {
				t.heap = append(t.heap, i)
			}
		}
		for i := len(t.heap)/2 - 1; i >= 0; i-- {
			t.sink(i)
		}
		for len(t.heap) > 0 {
			if !yield(t.heap[0]) {
				return
			}
			if !t.advance(t.heap[0]) {
				end := len(t.heap) - 1
				t.heap[0] = t.heap[end]
				t.heap = t.heap[:end]
			}
			t.sink(0)
		}
	}
}

// sink moves the source at i down to its place in the heap.
func (t *tournament) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(t.heap) {
			return
		}
		if child+1 < len(t.heap) && t.less(t.heap[child+1], t.heap[child]) {
			child++
		}
		if !t.less(t.heap[child], t.heap[i]) {
			return
		}
		t.heap[i], t.heap[child] = t.heap[child], t.heap[i]
		i = child
	}
}
