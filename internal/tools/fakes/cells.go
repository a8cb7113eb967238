package fakes

import (
	"context"
	"sync"

	"tutti/internal/core"
)

// Cells implements core.Cells in memory. Its zero value has no cell.
type Cells struct {
	// Values are the values of all cells.
	Values    map[string]string
	revisions map[string]uint64
	mu        sync.Mutex
}

// Cell implements core.Cells.
func (c *Cells) Cell(_ context.Context, name string) (string, uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Values[name], c.revisions[name], nil
}

// SetCell implements core.Cells.
func (c *Cells) SetCell(_ context.Context, name, value string, revision uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revisions[name] != revision {
		return core.NewError(core.CodeConflict, "the cell has changed")
	}
	if c.revisions == nil {
		c.revisions = map[string]uint64{}
	}
	if c.Values == nil {
		c.Values = map[string]string{}
	}
	c.Values[name], c.revisions[name] = value, revision+1
	return nil
}
