package auth

import (
	"sync"
	"time"

	"tutti/internal/core"
)

// cachedKey is a key that was not revoked when it was read, and what it grants.
type cachedKey struct {
	key       core.APIKey
	principal core.Principal
	until     time.Time
}

// keyCache keeps keys for a short time. Only keys that are there are in it: neither ids that are not known, which anybody
// could fill it with, nor failures.
type keyCache struct {
	size int

	mu      sync.Mutex
	entries map[string]cachedKey
	// generation counts the drops: what was read before a drop must not be kept after it.
	generation uint64
}

func newKeyCache(size int) *keyCache {
	return &keyCache{size: size, entries: make(map[string]cachedKey)}
}

// get returns the entry of an id, and the generation that put needs when there is none.
func (c *keyCache) get(id string, now time.Time) (entry cachedKey, generation uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok = c.entries[id]
	return entry, c.generation, ok && now.Before(entry.until)
}

// put keeps an entry that was read in a generation.
func (c *keyCache) put(id string, entry cachedKey, generation uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return
	}
	if len(c.entries) >= c.size {
		c.makeRoom(now)
	}
	c.entries[id] = entry
}

// makeRoom removes what has run out, or anything when nothing has; the lock must be held.
func (c *keyCache) makeRoom(now time.Time) {
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

// drop forgets a key, also for those who are reading it now.
func (c *keyCache) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	delete(c.entries, id)
}
