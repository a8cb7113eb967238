package graph

import (
	"container/list"
	"context"
	"sync"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/query"
	"tutti/internal/search"
)

// Bounds of the plans that are kept of a catalogue, by what they are made of: members, questions, clauses. Each takes up to some
// 600 bytes.
const (
	maxPlanWeight  = 2_000
	maxPlansWeight = 20_000
	// maxPlansOfOne is how many are kept of one operation, for those who ask it at once.
	maxPlansOfOne = 16
	// maxPlanVariables is how long the variables may be, in bytes.
	maxPlanVariables = 16 << 10
)

// planKey is all that a plan depends on: what a portal shows first, it asks again and again.
type planKey struct {
	doc                  *prepared
	operation, variables string
	// identity is the field that tells documents apart, which may change.
	identity string
}

// planCache keeps executions that have ended, for others of the same operation with the same variables: they are planned already.
// One at a time has an execution. The zero value is empty.
type planCache struct {
	mu sync.Mutex
	// idle has those of a key in the order in which they ended, order all of them, the last first.
	idle   map[planKey][]*list.Element
	order  list.List
	weight int
}

type cachedPlan struct {
	key    planKey
	x      *execution
	weight int
}

// takeIdle returns an execution for nobody else; nil when there is none.
func (c *planCache) takeIdle(key planKey) *execution {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.idle[key]
	if len(of) == 0 {
		return nil
	}
	return c.remove(of[len(of)-1], len(of)-1)
}

// remove takes out what is nth of its key.
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

// put keeps an execution, which its caller does not use any more.
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

// measure tells how much there is to a plan.
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

// clauses counts the nodes of a filter, and its values.
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

// reusable reports whether the plan can be used again: all that it asks is asked of the index, by what stands in the key, and nothing was
// wrong. What an index that failed has still to do with it is not known.
func (x *execution) reusable() bool {
	return !x.uncacheable && !x.view.AskedSets() && len(x.w.errors) == 0 && x.batch.err == nil
}

// reset forgets all but the plan.
func (x *execution) reset() {
	x.view, x.chunks, x.bytesRead = nil, nil, 0
	x.batch.results = nil
	x.w = responseWriter{}
	for _, r := range x.writers {
		r.w, r.hit = responseWriter{}, index.Hit{}
	}
}

// rerun executes a plan once more.
func (x *execution) rerun(ctx context.Context, view *search.View) core.GraphQLResponse {
	x.view = view
	return x.respond(ctx)
}
