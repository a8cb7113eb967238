package embedded

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
)

// aliasChange is a change of the aliases that the committer applies.
type aliasChange struct {
	// set are the indices that aliases get, nil for an alias that is removed.
	set map[string]*alias
	// drop is the index that is deleted, nil for none.
	drop *alias
	done chan error
}

// Swap moves spec.Alias to the index behind from in one transaction. Writes that have begun may still end in the index that it had.
func (x *admin) Swap(ctx context.Context, spec index.Spec, from, identity string) error {
	if err := x.beginCall(); err != nil {
		return err
	}
	defer x.calls.Done()
	x.ensureMu.Lock()
	defer x.ensureMu.Unlock()
	old, err := x.alias(spec.Alias)
	if err != nil {
		return err
	}
	next, err := x.alias(from)
	if err != nil {
		return err
	}
	if identity != "" && identity != next.identity {
		return index.Replaced(from)
	}
	previous := core.PreviousAlias(spec.Alias)
	change := &aliasChange{set: map[string]*alias{from: nil, spec.Alias: next, previous: old}}
	if last, err := x.alias(previous); err == nil && from != previous {
		change.drop = last
		if len(x.readers(change)) > 0 {
			change.drop = nil
		}
	}
	if err := x.changeAliases(ctx, previous, change); err != nil {
		return err
	}
	x.cfg.Logger.Info("moved an alias to another index", "index", spec.Alias, "physical_index", next.name, "previous_index", old.name)
	x.cfg.Grown(spec.Alias)
	return nil
}

// Drop deletes an alias with its index, if identity is "" or the index's. The index is kept, with CodeConflict, if it has another alias.
func (x *admin) Drop(ctx context.Context, name, identity string) error {
	if err := x.beginCall(); err != nil {
		return err
	}
	defer x.calls.Done()
	if err := validAlias(name); err != nil {
		return err
	}
	x.ensureMu.Lock()
	defer x.ensureMu.Unlock()
	a, err := x.alias(name)
	if err != nil || identity != "" && identity != a.identity {
		return nil
	}
	return x.changeAliases(ctx, name, &aliasChange{set: map[string]*alias{name: nil}, drop: a})
}

// changeAliases passes a change to the committer. CodeUnavailable while the index to be deleted is still being loaded, and CodeConflict if it
// has another alias than own after the change.
func (x *admin) changeAliases(ctx context.Context, own string, change *aliasChange) error {
	if others := x.readers(change); len(others) > 0 {
		return index.Shared(change.drop.name, own, others)
	}
	if change.drop != nil && change.drop.segments.loading() {
		return &core.Error{
			Code: core.CodeUnavailable, Message: "the index is still being loaded after a start", RetryAfter: loadRetry, Hint: "retry later",
		}
	}
	change.done = make(chan error, 1)
	select {
	case x.changes <- change:
		return <-change.done
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "changing an alias was cancelled", ctx.Err())
	}
}

// readers returns the aliases that the index to be deleted would still have.
func (x *admin) readers(change *aliasChange) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	after := maps.Clone(x.aliases)
	maps.Copy(after, change.set)
	maps.DeleteFunc(after, func(_ string, a *alias) bool { return change.drop == nil || a == nil || a.name != change.drop.name })
	return slices.Sorted(maps.Keys(after))
}

// changeAliases applies a change in one transaction, then publishes it.
func (x *committer) changeAliases(change *aliasChange) error {
	err := x.update(0, func(tx *bbolt.Tx) error {
		names, err := x.namesBucket(tx)
		if err != nil {
			return err
		}
		for name, a := range change.set {
			if a == nil {
				err = names.Delete([]byte(name))
			} else {
				err = names.Put([]byte(name), []byte(a.name))
			}
			if err != nil {
				return err
			}
		}
		if change.drop == nil {
			return nil
		}
		return tx.Bucket(bucketAliases()).DeleteBucket([]byte(change.drop.name))
	})
	if err != nil {
		return err
	}
	x.mu.Lock()
	for name, a := range change.set {
		if a == nil {
			delete(x.aliases, name)
		} else {
			x.aliases[name] = a
		}
	}
	x.mu.Unlock()
	if change.drop != nil {
		change.drop.dropped = true
		x.merger.drop(change.drop)
	}
	return nil
}

// namesBucket returns the bucket that maps aliases to indices. It creates it with the current names, as a file has none before its
// first change.
func (x *committer) namesBucket(tx *bbolt.Tx) (*bbolt.Bucket, error) {
	if names := tx.Bucket(bucketNames()); names != nil {
		return names, nil
	}
	names, err := tx.CreateBucket(bucketNames())
	if err != nil {
		return nil, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	for name, a := range x.aliases {
		if err := names.Put([]byte(name), []byte(a.name)); err != nil {
			return nil, err
		}
	}
	return names, tx.Bucket(bucketMeta()).Put(keyFormat(), []byte{swappedFormat})
}

// drop removes the segment files of a deleted index. Those of a merge in progress are removed when it ends.
func (x *merger) drop(a *alias) {
	for i := range a.segments.segments {
		if !a.segments.segments[i].merging {
			x.removeFiles(filesOf(a.segments.segments[i : i+1]))
		}
	}
}

// format is the version of the file's layout. Files of version 1 had no segments, which are rebuilt from the sources.
const format = 2

// swappedFormat is the version of the layout of a file with a bucket of names, which the first Swap creates.
const swappedFormat = 3

// alias is one index of the file. The store maps the names of aliases to indices.
type alias struct {
	// name is the name of the bucket. It differs from the name of the alias after a Swap.
	name   string
	limits mapping.Limits
	// identity is random. It is set when the alias is created, or when a file of an earlier version without identities is opened.
	identity string

	// growth is held while the tree is replaced. The tree can be read without it.
	growth sync.Mutex
	tree   atomic.Pointer[mapping.Field]

	// saved is the tree in the file, terms is a copy of the terms bucket; both belong to the write transaction in progress.
	saved *mapping.Field
	terms map[string]term

	segments *segmentSet
	// dropped is set, by the committer's goroutine, once the bucket is deleted.
	dropped bool
}

func loadAlias(name string, b *bbolt.Bucket) (*alias, error) {
	tree, limits, err := loadMapping(name, b)
	if err != nil {
		return nil, err
	}
	a := &alias{
		name: name, limits: limits, identity: string(b.Get(keyIdentity())), saved: tree, segments: newSegmentSet(b.Bucket(bucketRows()).Sequence()),
	}
	a.tree.Store(tree)
	return a, a.loadTerms(b)
}

// loadTerms reads the numbers of all terms.
func (a *alias) loadTerms(b *bbolt.Bucket) error {
	a.terms = map[string]term{}
	return b.Bucket(bucketTerms()).ForEach(func(key, value []byte) error {
		if len(value) != 4 {
			return errCorrupt("term")
		}
		a.terms[string(key)] = term(binary.BigEndian.Uint32(value))
		return nil
	})
}

func aliasBucket(tx *bbolt.Tx, name string) *bbolt.Bucket {
	return tx.Bucket(bucketAliases()).Bucket([]byte(name))
}

// saveTree writes the tree unless the file already has it.
func (a *alias) saveTree(b *bbolt.Bucket) error {
	tree := a.tree.Load()
	if tree == a.saved {
		return nil
	}
	raw, err := tree.Render()
	if err != nil {
		return err
	}
	if err := b.Put(keyMapping(), raw); err != nil {
		return err
	}
	a.saved = tree
	return nil
}
