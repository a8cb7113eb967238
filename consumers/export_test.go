package consumers

// PendingProgress counts the organizations whose progress is remembered.
func (c *Consumers) PendingProgress() int {
	n := 0
	for _, r := range c.order {
		r.progress.mu.Lock()
		n += len(r.progress.pending)
		r.progress.mu.Unlock()
	}
	return n
}

// InFlight counts the records, pages and messages that are remembered as being worked on.
func (c *Consumers) InFlight() int {
	c.heartbeat.mu.Lock()
	n := len(c.heartbeat.held)
	c.heartbeat.mu.Unlock()
	for _, r := range c.order {
		r.mu.Lock()
		n += len(r.records) + len(r.pagesInFlight)
		r.mu.Unlock()
	}
	return n
}
