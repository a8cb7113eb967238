package auth

import (
	"sync"
	"time"

	"tutti/internal/core"
)

// cachedKey is a key that was not revoked when it was read, with its Principal.
type cachedKey struct {
	key       core.APIKey
	principal core.Principal
	until     time.Time
}

// keyCache caches keys for a short time. It contains only existing keys: neither unknown ids, with which anyone could fill it, nor
// errors.
type keyCache struct {
	size int

	mu      sync.Mutex
	entries map[string]cachedKey
	// generation counts the drops: a key read before a drop must not be cached after it.
	generation uint64
}

func newKeyCache(size int) *keyCache {
	return &keyCache{size: size, entries: make(map[string]cachedKey)}
}

// get returns the entry of an id, and the generation to pass to put when there is none.
func (c *keyCache) get(id string, now time.Time) (entry cachedKey, generation uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok = c.entries[id]
	return entry, c.generation, ok && now.Before(entry.until)
}

// put caches an entry that was read in a generation.
func (c *keyCache) put(id string, entry cachedKey, generation uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return
	}
	if len(c.entries) >= c.size {
		c.evict(now)
	}
	c.entries[id] = entry
}

// evict evicts expired entries, or any when none has expired; the lock must be held.
func (c *keyCache) evict(now time.Time) {
	for id, entry := range c.entries {
		if !now.Before(entry.until) {
			delete(c.entries, id)
		}
	}
	for id := range c.entries {
		if len(c.entries) < c.size {
			return
		}
		delete(c.entries, id)
	}
}

// invalidate removes a key, also from reads in flight.
func (c *keyCache) invalidate(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	delete(c.entries, id)
}
