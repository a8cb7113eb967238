package segment

import "iter"

// kWayMerge merges sorted sources.
type kWayMerge struct {
	// advance moves a source to its next item; false at the end.
	advance func(source int) bool
	// less compares the current items of two sources.
	less func(a, b int) bool
	heap []int
}

// run yields, for each item in ascending order, its source. Each of the n sources must be positioned before its first item.
func (t *kWayMerge) run(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if t.advance(i) {
				t.heap = append(t.heap, i)
			}
		}
		for i := len(t.heap)/2 - 1; i >= 0; i-- {
			t.siftDown(i)
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
			t.siftDown(0)
		}
	}
}

// siftDown moves the source at i down the heap.
func (t *kWayMerge) siftDown(i int) {
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
