package bulk

// concurrency is the maximum number of concurrent requests to one index: it increases by one after a window of successes, and is
// halved when the index is overloaded (AIMD). It is guarded by the Writer's lock.
type concurrency struct {
	limit, max int
	// good counts the successes since the last change.
	good int
	// epoch counts the halvings: a request that started before the last one does not halve the limit again.
	epoch int
}

func newConcurrency(most int) *concurrency { return &concurrency{limit: min(2, most), max: most} }

// succeed records a request without a sign of overload.
func (c *concurrency) succeed() {
	c.good++
	if c.good >= c.limit && c.limit < c.max {
		c.limit++
		c.good = 0
	}
}

// overload records a request of the given epoch to an overloaded engine, and reports whether the limit changed.
func (c *concurrency) overload(epoch int) bool {
	c.good = 0
	if epoch != c.epoch {
		return false
	}
	c.epoch++
	before := c.limit
	c.limit = max(1, c.limit/2)
	return c.limit != before
}
