// Package cache provides a bounded cache.
package cache

import (
	"container/list"
	"sync"
)

// LRU caches values up to a total cost; the least recently used are evicted first. It is safe for concurrent use.
type LRU[K comparable, V any] struct {
	limit int64

	mu         sync.Mutex
	cost       int64
	generation uint64
	order      *list.List // of *entry[K, V], the most recently used first
	entries    map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
	cost  int64
}

// NewLRU returns an empty LRU for values of a total cost up to limit, in any unit.
func NewLRU[K comparable, V any](limit int64) *LRU[K, V] {
	return &LRU[K, V]{limit: limit, order: list.New(), entries: map[K]*list.Element{}}
}

// Get returns the value of a key, and reports whether there is one.
func (c *LRU[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry[K, V]).value, true
}

// Put caches a value in place of an earlier one of the key. A value that costs more than the limit is not cached.
func (c *LRU[K, V]) Put(key K, value V, cost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, value, cost)
}

// Generation returns the number of calls of Invalidate, for PutIn.
func (c *LRU[K, V]) Generation() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation
}

// PutIn is Put for a value that was read in a generation. It does nothing if Invalidate has been called since then.
func (c *LRU[K, V]) PutIn(generation uint64, key K, value V, cost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation == c.generation {
		c.put(key, value, cost)
	}
}

// Invalidate removes keys and begins a generation, so that values being read now are not cached.
func (c *LRU[K, V]) Invalidate(keys ...K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	for _, key := range keys {
		c.remove(key)
	}
}

// Remove removes a key. A value being read now may still be cached.
func (c *LRU[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
}

// Len returns the number of cached values.
func (c *LRU[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// Cost returns the total cost of the cached values.
func (c *LRU[K, V]) Cost() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cost
}

func (c *LRU[K, V]) put(key K, value V, cost int64) {
	if cost > c.limit {
		return
	}
	c.remove(key)
	c.entries[key] = c.order.PushFront(&entry[K, V]{key, value, cost})
	for c.cost += cost; c.cost > c.limit; {
		c.remove(c.order.Back().Value.(*entry[K, V]).key)
	}
}

func (c *LRU[K, V]) remove(key K) {
	if e, ok := c.entries[key]; ok {
		c.cost -= c.order.Remove(e).(*entry[K, V]).cost
		delete(c.entries, key)
	}
}
