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
	// turn holds one token: who has it may change the mapping.
	turn chan struct{}
	// tree is the mapping as last read or grown, nil before. Trees are never changed.
	tree atomic.Pointer[mapping.Field]
	// eager is set while so many documents bring members without a value on unknown paths that trimming them before
	// sending is cheaper than sending them twice.
	eager atomic.Bool
	// learning is how many batches in a row must still bring nothing new before documents are sent unread.
	learning atomic.Int32
	// identity is the field that stands for the documents' ids in orders, nil before one was asked for.
	identity atomic.Pointer[identity]
	// seen is the name of the index that the alias stood for when that was last read, nil before.
	seen atomic.Pointer[string]
	// sources is what its documents weigh.
	sources weight
}

func newAliasState() *aliasState { return &aliasState{turn: make(chan struct{}, 1)} }

// lock waits for the turn to change the mapping.
func (st *aliasState) lock(ctx context.Context) error {
	select {
	case st.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "the index does not answer", ctx.Err())
	}
}

func (st *aliasState) unlock() { <-st.turn }
