package graphql

import (
	"container/list"
	"sync"
)

// Limits of the cached plans of a catalogue, in units of Plan.Weight.
const (
	maxPlanWeight  = 2_000
	maxPlansWeight = 20_000
	// maxKeyBytes limits the query and the variables of a cached plan, keyWeight is how many of their bytes count as one unit.
	maxKeyBytes = 16 << 10
	keyWeight   = 600
)

// planKey is everything that a plan depends on. The first page of a portal repeats the same operation.
type planKey struct {
	query, operation, variables string
	// identity is the field that identifies documents, which may change.
	identity string
}

// planCache caches plans, least recently used first out, so that the same operation with the same variables is not parsed and
// planned again. The zero value is an empty cache.
type planCache struct {
	mu    sync.Mutex
	byKey map[planKey]*list.Element
	// order has the most recently used plan first.
	order  list.List
	weight int
}

type cachedPlan struct {
	key    planKey
	plan   *Plan
	weight int
}

// get returns the plan of a key, nil if it is not cached.
func (c *planCache) get(key planKey) *Plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	kept, _ := e.Value.(cachedPlan)
	return kept.plan
}

// put stores a plan, unless it is too large.
func (c *planCache) put(key planKey, plan *Plan) {
	bytes := len(key.query) + len(key.variables)
	weight := plan.Weight + bytes/keyWeight
	if plan.Weight > maxPlanWeight || bytes > maxKeyBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[key] != nil {
		return
	}
	if c.byKey == nil {
		c.byKey = map[planKey]*list.Element{}
	}
	c.byKey[key] = c.order.PushFront(cachedPlan{key, plan, weight})
	for c.weight += weight; c.weight > maxPlansWeight; {
		last, _ := c.order.Remove(c.order.Back()).(cachedPlan)
		delete(c.byKey, last.key)
		c.weight -= last.weight
	}
}
