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
	sem  chan struct{}
	seen atomic.Pointer[Seen]
	// TrimFirst is set while so many documents have members without a value on unknown paths that removing them before sending is
	// cheaper than sending the documents twice.
	TrimFirst atomic.Bool
	// UnreadAfter is the number of consecutive batches that must still add no field before documents are sent unread.
	UnreadAfter atomic.Int32
}

// Seen is what was last read of the index behind an alias.
type Seen struct {
	Index string         // its name, "" before the first read
	Tree  *mapping.Field // its mapping as last read or extended, nil before the first read; immutable
}

func newAliasState() *Alias {
	st := &Alias{sem: make(chan struct{}, 1)}
	st.seen.Store(&Seen{})
	return st
}

// Seen returns what was last read of the index.
func (st *Alias) Seen() *Seen { return st.seen.Load() }

// See replaces what was last read.
func (st *Alias) See(seen *Seen) { st.seen.Store(seen) }

// Update replaces what was last read by seen, unless that was of another index.
func (st *Alias) Update(seen *Seen) {
	if before := st.Seen(); before.Index == seen.Index {
		st.seen.CompareAndSwap(before, seen)
	}
}

// SeeFirst notes the name of the index that was behind the alias before this process began, unless it has seen one.
func (st *Alias) SeeFirst(name string) {
	if seen := st.Seen(); seen.Index == "" {
		st.seen.CompareAndSwap(seen, &Seen{Index: name})
	}
}

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
