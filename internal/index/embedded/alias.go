package embedded

import (
	"context"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded/indexfile"
)

// Swap moves spec.Alias to the index behind from in one transaction. Writes that have begun may still end in the index that it had.
func (x *admin) Swap(ctx context.Context, spec index.Spec, from, identity string) error {
	done, err := x.file.Begin()
	if err != nil {
		return err
	}
	defer done()
	x.ensureMu.Lock()
	defer x.ensureMu.Unlock()
	old, err := x.file.Alias(spec.Alias)
	if err != nil {
		return err
	}
	next, err := x.file.Alias(from)
	if err != nil {
		return err
	}
	if identity != "" && identity != next.Identity {
		return index.Replaced(from)
	}
	previous := core.PreviousAlias(spec.Alias)
	change := &indexfile.AliasChange{Set: map[string]*indexfile.Alias{from: nil, spec.Alias: next, previous: old}}
	if last, err := x.file.Alias(previous); err == nil && from != previous {
		change.Drop = last
		if len(x.file.Readers(change)) > 0 {
			change.Drop = nil
		}
	}
	if err := x.changeAliases(ctx, previous, change); err != nil {
		return err
	}
	x.cfg.Logger.Info("moved an alias to another index", "index", spec.Alias, "physical_index", next.Name(), "previous_index", old.Name())
	x.cfg.Grown(spec.Alias)
	return nil
}

// Drop deletes an alias with its index, if identity is "" or the index's. The index is kept, with CodeConflict, if it has another alias.
func (x *admin) Drop(ctx context.Context, name, identity string) error {
	done, err := x.file.Begin()
	if err != nil {
		return err
	}
	defer done()
	if err := validAlias(name); err != nil {
		return err
	}
	x.ensureMu.Lock()
	defer x.ensureMu.Unlock()
	a, err := x.file.Alias(name)
	if err != nil || identity != "" && identity != a.Identity {
		return nil
	}
	return x.changeAliases(ctx, name, &indexfile.AliasChange{Set: map[string]*indexfile.Alias{name: nil}, Drop: a})
}

// changeAliases applies a change. CodeUnavailable while the index to be deleted is still being loaded, and CodeConflict if it has another
// alias than own after the change.
func (x *admin) changeAliases(ctx context.Context, own string, change *indexfile.AliasChange) error {
	if others := x.file.Readers(change); len(others) > 0 {
		return index.Shared(change.Drop.Name(), own, others)
	}
	return x.file.ChangeAliases(ctx, change)
}
