package consumers

// Lanes counts the organizations whose progress is remembered.
func (c *Consumers) Lanes() int {
	n := 0
	for _, r := range c.order {
		r.progress.mu.Lock()
		n += len(r.progress.lanes)
		r.progress.mu.Unlock()
	}
	return n
}

// InHand counts the records, pages and messages that are remembered as being worked on.
func (c *Consumers) InHand() int {
	c.keeper.mu.Lock()
	n := len(c.keeper.held)
	c.keeper.mu.Unlock()
	for _, r := range c.order {
		r.mu.Lock()
		n += len(r.records) + len(r.pagesInHand)
		r.mu.Unlock()
	}
	return n
}
