package bulk

// concurrency is how many requests of one index may be in flight: one more after a window of successes, half when the
// index is overloaded (AIMD). The Writer's lock guards it.
type concurrency struct {
	limit, max int
	// good counts the successes since the last change.
	good int
	// epoch counts the halvings: requests that began before the last one do not halve again.
	epoch int
}

func newConcurrency(most int) *concurrency { return &concurrency{limit: min(2, most), max: most} }

// succeed notes a request that the engine took without a sign of overload.
func (c *concurrency) succeed() {
	c.good++
	if c.good >= c.limit && c.limit < c.max {
		c.limit++
		c.good = 0
	}
}

// overload notes a request of the given epoch that met an overloaded engine, and reports whether the limit changed.
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
