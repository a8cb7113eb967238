package cache_test

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tutti/internal/base/cache"
)

// TestLRU holds a cache against a list of its entries, the most recently used first.
func TestLRU(t *testing.T) {
	type entry struct {
		key, value int
		cost       int64
	}
	const limit = 20
	rapid.Check(t, func(t *rapid.T) {
		c := cache.NewLRU[int, int](limit)
		var model []entry
		var generation, read uint64
		without := func(key int) (rest []entry, old *entry) {
			for _, e := range model {
				if e.key == key {
					old = &e
				} else {
					rest = append(rest, e)
				}
			}
			return rest, old
		}
		put := func(e entry) {
			if e.cost > limit {
				return
			}
			rest, _ := without(e.key)
			model = append([]entry{e}, rest...)
			sum := int64(0)
			for i, e := range model {
				if sum += e.cost; sum > limit {
					model = model[:i]
					break
				}
			}
		}
		key := rapid.IntRange(0, 8)
		value, cost := rapid.Int(), rapid.Int64Range(1, limit+2)
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				k := key.Draw(t, "key")
				got, ok := c.Get(k)
				rest, old := without(k)
				if ok != (old != nil) || ok && got != old.value {
					t.Fatalf("%d is %d, %t; want %+v", k, got, ok, old)
				}
				if ok {
					model = append([]entry{*old}, rest...)
				}
			},
			"put": func(t *rapid.T) {
				e := entry{key.Draw(t, "key"), value.Draw(t, "value"), cost.Draw(t, "cost")}
				c.Put(e.key, e.value, e.cost)
				put(e)
			},
			"read": func(*rapid.T) { read = c.Generation() },
			"put what was read": func(t *rapid.T) {
				e := entry{key.Draw(t, "key"), value.Draw(t, "value"), cost.Draw(t, "cost")}
				c.PutIn(read, e.key, e.value, e.cost)
				if read == generation {
					put(e)
				}
			},
			"invalidate": func(t *rapid.T) {
				k := key.Draw(t, "key")
				c.Invalidate(k)
				generation++
				model, _ = without(k)
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				c.Remove(k)
				model, _ = without(k)
			},
			"": func(t *rapid.T) {
				sum := int64(0)
				for _, e := range model {
					sum += e.cost
				}
				if c.Len() != len(model) || c.Cost() != sum || c.Generation() != generation {
					t.Fatalf("%d values of %d in generation %d, want %d of %d in %d", c.Len(), c.Cost(), c.Generation(), len(model), sum, generation)
				}
			},
		})
		got, want := map[int]int{}, map[int]int{}
		for k := range 9 {
			if v, ok := c.Get(k); ok {
				got[k] = v
			}
		}
		for _, e := range model {
			want[e.key] = e.value
		}
		if !maps.Equal(got, want) {
			t.Fatal(cmp.Diff(want, got))
		}
	})
}

// TestLRUConcurrently: the race detector sees no unguarded access, and the bound holds.
func TestLRUConcurrently(t *testing.T) {
	c := cache.NewLRU[string, int](50)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 500 {
				key := strconv.Itoa((worker*31 + i) % 100)
				if _, ok := c.Get(key); !ok {
					c.PutIn(c.Generation(), key, i, 1)
				}
				if i%50 == 0 {
					c.Invalidate(key)
				}
			}
		})
	}
	all.Wait()
	if n := c.Len(); n == 0 || n > 50 {
		t.Errorf("%d values", n)
	}
}

func ExampleLRU() {
	texts := cache.NewLRU[string, string](10) // bytes
	texts.Put("a", "1234", 4)
	texts.Put("b", "5678", 4)
	texts.Get("a")
	texts.Put("c", "90", 4)
	_, ok := texts.Get("b")
	fmt.Println(texts.Len(), ok)
	// Output: 2 false
}
