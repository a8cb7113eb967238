package aliases

import (
	"context"
	"sync/atomic"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// ReadBatches is the number of consecutive batches that must add no field before documents are sent unread.
const ReadBatches = 2

// Alias caches what this process knows about one alias. It may be outdated: another process may have extended the mapping,
// or the alias may point to another index. Code that fails because of it reads the mapping again.
type Alias struct {
	// sem holds one token; its holder may change the mapping.
	sem chan struct{}
	// Tree is the mapping as last read or extended, nil before the first read. Trees are immutable.
	Tree atomic.Pointer[mapping.Field]
	// TrimFirst is set while so many documents have members without a value on unknown paths that removing them before sending is
	// cheaper than sending the documents twice.
	TrimFirst atomic.Bool
	// UnreadAfter is the number of consecutive batches that must still add no field before documents are sent unread.
	UnreadAfter atomic.Int32
	// PhysicalName is the name of the index behind the alias when last read, nil before.
	PhysicalName atomic.Pointer[string]
}

func newAliasState() *Alias { return &Alias{sem: make(chan struct{}, 1)} }

// Lock waits for the exclusive right to change the mapping.
func (st *Alias) Lock(ctx context.Context) error {
	select {
	case st.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "the index does not answer", ctx.Err())
	}
}

// Unlock ends the exclusive right.
func (st *Alias) Unlock() { <-st.sem }
