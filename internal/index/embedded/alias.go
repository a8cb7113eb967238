package embedded

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

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
	tree, err := mapping.Parse(b.Get(keyMapping()))
	if err != nil {
		return nil, core.WrapError(core.CodeUnsupported, fmt.Sprintf("the mapping of the index %q cannot be read", name), err)
	}
	a := &alias{
		name: name, identity: string(b.Get(keyIdentity())), saved: tree, segments: newSegmentSet(b.Bucket(bucketRows()).Sequence()),
	}
	a.tree.Store(tree)
	if err := json.Unmarshal(b.Get(keyLimits()), &a.limits); err != nil {
		return nil, core.WrapError(core.CodeUnsupported, fmt.Sprintf("the limits of the index %q cannot be read", name), err)
	}
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
