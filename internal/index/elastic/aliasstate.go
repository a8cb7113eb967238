package elastic

import (
	"context"
	"sync/atomic"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// aliasState caches what this process knows about one alias. It may be outdated: another process may have extended the mapping,
// or the alias may point to another index. Code that fails because of it reads the mapping again.
type aliasState struct {
	// sem holds one token; its holder may change the mapping.
	sem chan struct{}
	// tree is the mapping as last read or extended, nil before the first read. Trees are immutable.
	tree atomic.Pointer[mapping.Field]
	// trimFirst is set while so many documents have members without a value on unknown paths that removing them before sending is
	// cheaper than sending the documents twice.
	trimFirst atomic.Bool
	// unreadAfter is the number of consecutive batches that must still add no field before documents are sent unread.
	unreadAfter atomic.Int32
	// physicalName is the name of the index behind the alias when last read, nil before.
	physicalName atomic.Pointer[string]
}

func newAliasState() *aliasState { return &aliasState{sem: make(chan struct{}, 1)} }

// lock waits for the exclusive right to change the mapping.
func (st *aliasState) lock(ctx context.Context) error {
	select {
	case st.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "the index does not answer", ctx.Err())
	}
}

func (st *aliasState) unlock() { <-st.sem }
