package graphql

import (
	"tutti/internal/cache"
	"tutti/internal/search/graphql/plan"
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

// planCache caches plans, so that the same operation with the same variables is not parsed and planned again.
type planCache struct {
	*cache.LRU[planKey, *plan.Plan]
}

func newPlanCache() planCache { return planCache{cache.NewLRU[planKey, *plan.Plan](maxPlansWeight)} }

// put stores a plan, unless it is too large.
func (c planCache) put(key planKey, p *plan.Plan) {
	bytes := len(key.query) + len(key.variables)
	if p.Weight <= maxPlanWeight && bytes <= maxKeyBytes {
		c.Put(key, p, int64(p.Weight+bytes/keyWeight))
	}
}
