package schemas

import (
	"container/list"
	"sync"
)

// cache keeps what was used last, up to a sum of costs.
type cache[K comparable, V any] struct {
	limit int64

	mu         sync.Mutex
	cost       int64
	generation uint64
	order      *list.List // the last used first
	entries    map[K]*list.Element
}

type cached[K comparable, V any] struct {
	key   K
	value V
	cost  int64
}

func newCache[K comparable, V any](limit int64) *cache[K, V] {
	return &cache[K, V]{limit: limit, order: list.New(), entries: map[K]*list.Element{}}
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		var none V
		return none, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached[K, V]).value, true
}

// now returns the current generation: values loaded in an older one are not cached.
func (c *cache[K, V]) now() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation
}

// put caches a value that was loaded in a generation, unless it costs more than the limit.
func (c *cache[K, V]) put(generation uint64, key K, v V, cost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation || cost > c.limit {
		return
	}
	c.remove(key)
	c.entries[key] = c.order.PushFront(&cached[K, V]{key, v, cost})
	for c.cost += cost; c.cost > c.limit; {
		c.remove(c.order.Back().Value.(*cached[K, V]).key)
	}
}

// forget removes keys and begins a generation, so that a load that is under way is not put.
func (c *cache[K, V]) forget(keys ...K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	for _, key := range keys {
		c.remove(key)
	}
}

// drop removes a key; a load in flight may still cache its value.
func (c *cache[K, V]) drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
}

func (c *cache[K, V]) remove(key K) {
	if e, ok := c.entries[key]; ok {
		c.cost -= c.order.Remove(e).(*cached[K, V]).cost
		delete(c.entries, key)
	}
}
