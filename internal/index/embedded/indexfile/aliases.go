package indexfile

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segmentset"
	"tutti/internal/index/mapping"
)

// Create creates an index with a mapping, and the alias of it, in one transaction.
func (f *File) Create(name string, limits mapping.Limits, tree *mapping.Field) error {
	a := &Alias{Limits: limits, Identity: rand.Text(), file: f, terms: map[string]term{}}
	a.tree.Store(tree)
	err := f.update(0, func(tx *bbolt.Tx) error {
		b, err := createIndex(tx, a, name)
		if err != nil {
			return err
		}
		for _, name := range [][]byte{
			bucketIDs(), bucketRows(), bucketScopes(), bucketTerms(), bucketTombstones(), bucketSegments(), bucketDeletes(),
		} {
			if _, err := b.CreateBucket(name); err != nil {
				return err
			}
		}
		raw, err := json.Marshal(a.Limits)
		if err != nil {
			return err
		}
		if err := b.Put(keyLimits(), raw); err != nil {
			return err
		}
		if err := b.Put(keyIdentity(), []byte(a.Identity)); err != nil {
			return err
		}
		return a.saveTree(b)
	})
	if err != nil {
		return err
	}
	a.segments.Publish(nil)
	f.mu.Lock()
	f.aliases[name] = a
	f.mu.Unlock()
	return nil
}

// createIndex creates the bucket of an alias, sets a's segments, and maps the alias to it. The name of the alias may be that of another
// index since a Swap.
func createIndex(tx *bbolt.Tx, a *Alias, aliasName string) (*bbolt.Bucket, error) {
	all := tx.Bucket(bucketAliases())
	name := aliasName
	for n := 2; all.Bucket([]byte(name)) != nil; n++ {
		name = fmt.Sprintf("%s-%d", aliasName, n)
	}
	a.segments = segmentset.New(name, 0)
	if names := tx.Bucket(bucketNames()); names != nil {
		if err := names.Put([]byte(aliasName), []byte(name)); err != nil {
			return nil, err
		}
	}
	return all.CreateBucket([]byte(name))
}

// AliasChange is a change of the aliases that the committer applies.
type AliasChange struct {
	// Set are the indices that aliases get, nil for an alias that is removed.
	Set map[string]*Alias
	// Drop is the index that is deleted, nil for none.
	Drop *Alias
	done chan error
}

// ChangeAliases applies a change in one transaction. CodeUnavailable while the index to be deleted is still being loaded.
func (f *File) ChangeAliases(ctx context.Context, change *AliasChange) error {
	if change.Drop != nil && change.Drop.segments.Loading() {
		return errLoading("retry later")
	}
	change.done = make(chan error, 1)
	select {
	case f.committer.changes <- change:
		return <-change.done
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "changing an alias was cancelled", ctx.Err())
	}
}

// Readers returns the aliases that the index to be deleted would still have after a change.
func (f *File) Readers(change *AliasChange) []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	after := maps.Clone(f.aliases)
	maps.Copy(after, change.Set)
	maps.DeleteFunc(after, func(_ string, a *Alias) bool { return change.Drop == nil || a == nil || a.Name() != change.Drop.Name() })
	return slices.Sorted(maps.Keys(after))
}

// Loading returns the aliases whose segments are still being read or rebuilt, sorted.
func (f *File) Loading() []string {
	var names []string
	f.mu.RLock()
	defer f.mu.RUnlock()
	for name, a := range f.aliases {
		if a.segments.Loading() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// changeAliases applies a change in one transaction, then publishes it.
func (f *File) changeAliases(change *AliasChange) error {
	err := f.update(0, func(tx *bbolt.Tx) error {
		names, err := f.namesBucket(tx)
		if err != nil {
			return err
		}
		for name, a := range change.Set {
			if a == nil {
				err = names.Delete([]byte(name))
			} else {
				err = names.Put([]byte(name), []byte(a.Name()))
			}
			if err != nil {
				return err
			}
		}
		if change.Drop == nil {
			return nil
		}
		return tx.Bucket(bucketAliases()).DeleteBucket([]byte(change.Drop.Name()))
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	for name, a := range change.Set {
		if a == nil {
			delete(f.aliases, name)
		} else {
			f.aliases[name] = a
		}
	}
	f.mu.Unlock()
	if change.Drop != nil {
		f.committer.merger.Drop(change.Drop.segments)
	}
	return nil
}

// namesBucket returns the bucket that maps aliases to indices. It creates it with the current names, as a file has none before its
// first change.
func (f *File) namesBucket(tx *bbolt.Tx) (*bbolt.Bucket, error) {
	if names := tx.Bucket(bucketNames()); names != nil {
		return names, nil
	}
	names, err := tx.CreateBucket(bucketNames())
	if err != nil {
		return nil, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	for name, a := range f.aliases {
		if err := names.Put([]byte(name), []byte(a.Name())); err != nil {
			return nil, err
		}
	}
	return names, tx.Bucket(bucketMeta()).Put(keyFormat(), []byte{swappedFormat})
}
