package lastwrite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
)

// Index is an engine that remembers the times of its writes. It is safe for concurrent use.
type Index struct {
	index.Index
	now func() time.Time
	mu  sync.Mutex
	// at holds the times by alias.
	at map[string]time.Time
}

var _ index.Index = (*Index)(nil)

// New returns an Index of an engine. now is the clock, time.Now if nil.
func New(engine index.Index, now func() time.Time) *Index {
	if now == nil {
		now = time.Now
	}
	return &Index{Index: engine, now: now, at: map[string]time.Time{}}
}

// Write implements index.Index.
func (x *Index) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	results, err := x.Index.Write(ctx, b)
	for _, r := range results {
		if r.Outcome == core.OutcomeIndexed || r.Outcome == core.OutcomeRemoved {
			x.note(b.Index, x.now())
			break
		}
	}
	return results, err
}

// Swap implements index.Index. What was written to the other index can be read from then on.
func (x *Index) Swap(ctx context.Context, spec index.Spec, from, identity string) error {
	err := x.Index.Swap(ctx, spec, from, identity)
	if err == nil {
		x.note(spec.Alias, x.now())
	}
	return err
}

// At returns when an alias was last written, the zero time if that is unknown.
func (x *Index) At(alias string) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.at[alias]
}

func (x *Index) note(alias string, at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at.After(x.at[alias]) {
		x.at[alias] = at
	}
}

// Share exchanges the times of aliases with other processes, and with this one after a restart. It returns the first error of a cell;
// one that another process has just set is exchanged by the next call.
func (x *Index) Share(ctx context.Context, cells core.Cells, aliases []string) error {
	for _, alias := range aliases {
		name := "written." + alias
		value, revision, err := cells.Cell(ctx, name)
		if err != nil {
			return fmt.Errorf("reading when an index was last written: %w", err)
		}
		stored, err := time.Parse(time.RFC3339Nano, value)
		if err == nil { // else there is none, or a later version wrote it
			x.note(alias, stored)
		}
		if at := x.At(alias); at.After(stored) {
			err := cells.SetCell(ctx, name, at.UTC().Format(time.RFC3339Nano), revision)
			if err != nil && core.CodeOf(err) != core.CodeConflict {
				return fmt.Errorf("storing when an index was last written: %w", err)
			}
		}
	}
	return nil
}
