package indexfile

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segmentset"
	"tutti/internal/index/mapping"
)

// Alias is one index of the file. The File maps the names of aliases to indices. A caller that has it from Use may use it until done.
type Alias struct {
	// Limits are those with which the index was created.
	Limits mapping.Limits
	// Identity is random. It is set when the index is created, or when a file of an earlier version without identities is opened.
	Identity string

	file *File
	// growth is held while the tree is replaced. The tree can be read without it.
	growth sync.Mutex
	tree   atomic.Pointer[mapping.Field]

	// saved is the tree in the file, terms is a copy of the terms bucket; both belong to the write transaction in progress.
	saved *mapping.Field
	terms map[string]term

	segments *segmentset.Set
}

// Name returns the name of the index, which is that of its bucket. It differs from the name of the alias after a change of aliases.
func (a *Alias) Name() string { return a.segments.Name() }

// Tree returns the mapping.
func (a *Alias) Tree() *mapping.Field { return a.tree.Load() }

// Grow replaces the mapping by what grow returns, unless that is an error. The next transaction with documents of the index saves it.
func (a *Alias) Grow(grow func(tree *mapping.Field) (*mapping.Field, error)) error {
	a.growth.Lock()
	defer a.growth.Unlock()
	grown, err := grow(a.tree.Load())
	if err != nil {
		return err
	}
	a.tree.Store(grown)
	return nil
}

// Extend replaces the mapping by what extend returns, and saves it, unless that is an error or the same.
func (a *Alias) Extend(extend func(tree *mapping.Field) (*mapping.Field, error)) error {
	a.growth.Lock()
	defer a.growth.Unlock()
	tree := a.tree.Load()
	grown, err := extend(tree)
	if err != nil || grown == tree {
		return err
	}
	// The tree is published before it is saved: a transaction of the committer in between then saves it.
	a.tree.Store(grown)
	return a.file.update(0, func(tx *bbolt.Tx) error { return a.saveTree(a.bucket(tx)) }, a)
}

func loadAlias(f *File, name string, b *bbolt.Bucket) (*Alias, error) {
	tree, limits, err := loadMapping(name, b)
	if err != nil {
		return nil, err
	}
	a := &Alias{
		Limits: limits, Identity: string(b.Get(keyIdentity())), file: f, saved: tree, segments: segmentset.New(name, b.Bucket(bucketRows()).Sequence()),
	}
	a.tree.Store(tree)
	return a, a.loadTerms(b)
}

// loadTerms reads the numbers of all terms.
func (a *Alias) loadTerms(b *bbolt.Bucket) error {
	a.terms = map[string]term{}
	return b.Bucket(bucketTerms()).ForEach(func(key, value []byte) error {
		if len(value) != 4 {
			return errCorrupt("term")
		}
		a.terms[string(key)] = term(binary.BigEndian.Uint32(value))
		return nil
	})
}

// bucket returns the bucket of the index, nil when it has been deleted.
func (a *Alias) bucket(tx *bbolt.Tx) *bbolt.Bucket { return indexBucket(tx, a.Name()) }

func indexBucket(tx *bbolt.Tx, name string) *bbolt.Bucket {
	return tx.Bucket(bucketAliases()).Bucket([]byte(name))
}

// saveTree writes the tree unless the file already has it.
func (a *Alias) saveTree(b *bbolt.Bucket) error {
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

// view runs one read transaction over the index. read must be short, and must not keep memory of the bucket.
func (a *Alias) view(read func(b *bbolt.Bucket) error) error {
	err := a.file.db.View(func(tx *bbolt.Tx) error {
		b := a.bucket(tx)
		if b == nil {
			return ErrMissing(a.Name())
		}
		return read(b)
	})
	if err != nil && core.CodeOf(err) == core.CodeInternal {
		return core.WrapError(core.CodeUnavailable, "reading the index failed", err)
	}
	return err
}

// logUnsearchable logs a document that searches do not find because its source is corrupt.
func (a *Alias) logUnsearchable(id string, err error) {
	a.file.cfg.Logger.Error("embedded index cannot search a document", "index", a.Name(), "record_id", id, "err", err)
}
