package consumers

// KindsCell returns the name of the cell of what the last run has counted.
func KindsCell(form, code, indexName string) string { return indexCell("kinds."+form, code, indexName) }

// PendingProgress counts the organizations whose progress is held in memory.
func (c *Consumers) PendingProgress() int {
	n := 0
	for _, r := range c.repos {
		n += r.runs.PendingProgress()
	}
	return n
}

// InFlight counts the records, pages and messages that are held in memory as being in flight.
func (c *Consumers) InFlight() int {
	n := c.process.Held()
	for _, r := range c.repos {
		n += r.records.InFlight() + r.runs.InFlight()
	}
	return n
}
