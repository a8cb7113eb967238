package graphql

import (
	"container/list"
	"context"
	"sync"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/view"
)

// Limits of the cached plans of a catalogue, in units of weight: members, requests, clauses. Each takes about 600 bytes at most.
const (
	maxPlanWeight  = 2_000
	maxPlansWeight = 20_000
	// maxPlansOfOne limits the plans of one operation, for concurrent executions of it.
	maxPlansOfOne = 16
	// maxPlanVariables limits the variables, in bytes.
	maxPlanVariables = 16 << 10
)

// planKey is everything that a plan depends on. The first page of a portal repeats the same operation.
type planKey struct {
	doc                  *prepared
	operation, variables string
	// identity is the field that identifies documents, which may change.
	identity string
}

// planCache caches finished executions, so that the same operation with the same variables is not planned again. An execution is
// used by one request at a time. The zero value is an empty cache.
type planCache struct {
	mu sync.Mutex
	// idle has the executions of a key in the order in which they finished; order has all of them, the latest first.
	idle   map[planKey][]*list.Element
	order  list.List
	weight int
}

type cachedPlan struct {
	key    planKey
	x      *execution
	weight int
}

// takeIdle takes an idle execution for exclusive use; nil for none.
func (c *planCache) takeIdle(key planKey) *execution {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.idle[key]
	if len(of) == 0 {
		return nil
	}
	return c.remove(of[len(of)-1], len(of)-1)
}

// remove removes the nth execution of its key.
func (c *planCache) remove(e *list.Element, nth int) *execution {
	kept, _ := c.order.Remove(e).(cachedPlan)
	c.weight -= kept.weight
	of := c.idle[kept.key]
	if len(of) == 1 {
		delete(c.idle, kept.key)
		return kept.x
	}
	copy(of[nth:], of[nth+1:])
	of[len(of)-1] = nil
	c.idle[kept.key] = of[:len(of)-1]
	return kept.x
}

// put stores an execution. The caller must not use it afterwards.
func (c *planCache) put(key planKey, x *execution) {
	if x.weight == 0 {
		x.weight = x.measure()
	}
	weight := x.weight
	if weight > maxPlanWeight || len(key.variables) > maxPlanVariables {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle[key]) >= maxPlansOfOne {
		return
	}
	if c.idle == nil {
		c.idle = map[planKey][]*list.Element{}
	}
	c.idle[key] = append(c.idle[key], c.order.PushFront(cachedPlan{key, x, weight}))
	for c.weight += weight; c.weight > maxPlansWeight; {
		c.remove(c.order.Back(), 0) // the last of all is the first of its key
	}
}

// measure returns the weight of a plan.
func (x *execution) measure() int {
	n := 1 + x.plannedFields
	for _, req := range x.batch.reqs {
		n += 8 + clauses(req.Filter)
		for _, f := range req.Facets {
			n += 4 + clauses(f.Elements) + len(f.Ranges)
			if f.Buckets != nil {
				for _, filter := range f.Buckets.Filters {
					n += clauses(filter)
				}
			}
		}
	}
	return n
}

// clauses counts the nodes and values of a filter.
func clauses(n *query.Node) int {
	if n == nil {
		return 0
	}
	count := 1 + len(n.Terms)
	for _, child := range n.Children {
		count += clauses(child)
	}
	return count
}

// reusable reports whether the plan can be used again: it depends only on the key and the index, and there was no error. After an
// index error a request may still be in use.
func (x *execution) reusable() bool {
	return !x.uncacheable && !x.view.UsedSets() && len(x.w.errors) == 0 && x.batch.err == nil
}

// reset clears everything but the plan.
func (x *execution) reset() {
	x.view, x.chunks, x.bytesRead = nil, nil, 0
	x.batch.results = nil
	x.w = responseWriter{}
	for _, r := range x.writers {
		r.w, r.hit = responseWriter{}, index.Hit{}
	}
}

// rerun executes a cached plan.
func (x *execution) rerun(ctx context.Context, view *view.View) core.GraphQLResponse {
	x.view = view
	return x.respond(ctx)
}
