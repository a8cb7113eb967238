package sets

import (
	"container/list"
	"sync"
)

// memberOverhead is the approximate cost of a member in addition to its bytes: its string header.
const memberOverhead = 16

// cache holds the members of the recently used sets. Members never change, and callers look up the set in the store first, so
// that no expired set is served.
type cache struct {
	mu       sync.Mutex
	maxBytes int
	bytes    int
	// order holds *cached, the most recently used first.
	order *list.List
	byID  map[string]*list.Element
}

type cached struct {
	id      string
	members []string
	cost    int
}

func newCache(most int) *cache {
	return &cache{maxBytes: most, order: list.New(), byID: map[string]*list.Element{}}
}

// get returns the members of a set; false if they are not cached.
func (c *cache) get(id string) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byID[id]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	entry, ok := e.Value.(*cached)
	if !ok {
		return nil, false
	}
	return entry.members, true
}

// put adds the members of a set and evicts others. A set larger than the cache is not added.
func (c *cache) put(id string, members []string) {
	entry := &cached{id: id, members: members, cost: sizeOf(members) + memberOverhead*len(members)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, kept := c.byID[id]; kept || entry.cost > c.maxBytes {
		return
	}
	c.byID[id] = c.order.PushFront(entry)
	c.bytes += entry.cost
	for c.bytes > c.maxBytes {
		c.drop(c.order.Back())
	}
}

// remove removes a set.
func (c *cache) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.byID[id])
}

func (c *cache) drop(e *list.Element) {
	if e == nil {
		return
	}
	if entry, ok := c.order.Remove(e).(*cached); ok {
		delete(c.byID, entry.id)
		c.bytes -= entry.cost
	}
}
