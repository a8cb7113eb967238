package heap_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tutti/internal/base/heap"
)

// TestHeap compares a heap with a sorted list.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 30).Draw(t, "items")
		model := slices.Sorted(slices.Values(items))
		heap.Init(items, cmp.Less)
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			n := rapid.IntRange(0, 20).Draw(t, "item")
			switch op := rapid.IntRange(0, 2).Draw(t, "operation"); {
			case op == 0 || len(items) == 0:
				items, model = heap.Push(items, n, cmp.Less), append(model, n)
			case op == 1:
				items, model = heap.Pop(items, cmp.Less), model[1:]
			default:
				items[0], model[0] = n, n
				heap.Fix(items, cmp.Less)
			}
			slices.Sort(model)
			if len(items) != len(model) || len(items) > 0 && items[0] != model[0] {
				t.Fatalf("the heap is %v, want a heap of %v", items, model)
			}
		}
	})
}
