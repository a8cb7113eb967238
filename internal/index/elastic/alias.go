package elastic

import (
	"context"
	"sync/atomic"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// aliasState is what a process remembers of one alias. It is only ever a guess: another process may have grown the
// mapping, or the alias stand for another index, so whoever is let down by it reads the mapping again.
type aliasState struct {
	// sem holds one token: who has it may change the mapping.
	sem chan struct{}
	// tree is the mapping as last read or grown, nil before. Trees are never changed.
	tree atomic.Pointer[mapping.Field]
	// trimFirst is set while so many documents bring members without a value on unknown paths that trimming them before
	// sending is cheaper than sending them twice.
	trimFirst atomic.Bool
	// unreadAfter is how many batches in a row must still bring nothing new before documents are sent unread.
	unreadAfter atomic.Int32
	// idField is the field that stands for the documents' ids in orders, nil before one was asked for.
	idField atomic.Pointer[idField]
	// physicalName is the name of the index that the alias stood for when that was last read, nil before.
	physicalName atomic.Pointer[string]
	// meanSize is what its documents weigh.
	meanSize meanSize
}

func newAliasState() *aliasState { return &aliasState{sem: make(chan struct{}, 1)} }

// lock waits for the turn to change the mapping.
func (st *aliasState) lock(ctx context.Context) error {
	select {
	case st.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "the index does not answer", ctx.Err())
	}
}

func (st *aliasState) unlock() { <-st.sem }
