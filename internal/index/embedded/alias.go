package embedded

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
)

// format is the version of the file's layout. Files of version 1 had no segments, which are rebuilt from the sources.
const format = 2

// alias is one alias of the index file.
type alias struct {
	name   string
	limits limits
	// identity is random. It is set when the alias is created, or when a file of an earlier version without identities is opened.
	identity string

	// growth is held while the tree is replaced. The tree can be read without it.
	growth sync.Mutex
	tree   atomic.Pointer[mapping.Field]

	// saved is the tree in the file, terms is a copy of the terms bucket; both belong to the write transaction in progress.
	saved *mapping.Field
	terms map[string]term

	segments *segmentSet
}

// alias returns the alias of that name, CodeIndexBlocked when it does not exist.
func (x *Index) alias(name string) (*alias, error) {
	x.mu.RLock()
	a := x.aliases[name]
	x.mu.RUnlock()
	if a == nil {
		return nil, core.WrapError(core.CodeIndexBlocked, fmt.Sprintf("the index %q does not exist", name), core.ErrIndexMissing)
	}
	return a, nil
}

// openAliases creates the buckets of a new file and reads the aliases of an existing one. Their segments are loaded later.
func (x *Index) openAliases() ([]*aliasLoad, error) {
	var loads []*aliasLoad
	err := x.db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucketIfNotExists(bucketMeta())
		if err != nil {
			return err
		}
		if raw := meta.Get(keyFormat()); raw != nil && (len(raw) != 1 || raw[0] == 0 || raw[0] > format) {
			return core.NewError(core.CodeUnsupported, "the embedded index was written by another version of tutti")
		}
		if err := meta.Put(keyFormat(), []byte{format}); err != nil {
			return err
		}
		all, err := tx.CreateBucketIfNotExists(bucketAliases())
		if err != nil {
			return err
		}
		var names []string
		if err := all.ForEachBucket(func(name []byte) error { names = append(names, string(name)); return nil }); err != nil {
			return err
		}
		for _, name := range names {
			b := all.Bucket([]byte(name))
			if b.Get(keyIdentity()) == nil {
				if err := b.Put(keyIdentity(), []byte(rand.Text())); err != nil {
					return err
				}
			}
			a, err := loadAlias(name, b)
			if err != nil {
				return err
			}
			l, err := newAliasLoad(a, b)
			if err != nil {
				return err
			}
			x.aliases[name], loads = a, append(loads, l)
		}
		return nil
	})
	if err != nil && core.CodeOf(err) == core.CodeInternal {
		err = core.WrapError(core.CodeUnavailable, "reading the embedded index", err)
	}
	return loads, err
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

// Ensure creates the alias, or adds spec's fields to its mapping. It returns CodeInvalid when the name or the mapping is invalid,
// and CodeConflict when an existing mapping contradicts spec.Mapping.
func (x *Index) Ensure(_ context.Context, spec index.Spec) error {
	if err := x.beginCall(); err != nil {
		return err
	}
	defer x.calls.Done()
	if err := validAlias(spec.Alias); err != nil {
		return err
	}
	var given *mapping.Field
	if spec.Mapping != nil {
		var err error
		if given, err = mapping.Parse(spec.Mapping); err != nil {
			return err
		}
	}
	x.ensureMu.Lock()
	defer x.ensureMu.Unlock()
	if a, err := x.alias(spec.Alias); err == nil {
		return x.extend(a, given, spec.Known)
	}
	return x.create(spec, given)
}

// create creates an alias in one transaction.
func (x *Index) create(spec index.Spec, tree *mapping.Field) error {
	a := &alias{
		name: spec.Alias, identity: rand.Text(), terms: map[string]term{}, limits: limitsOf(spec.Mapping), segments: newSegmentSet(0),
	}
	added := spec.Known
	if tree == nil {
		tree = mapping.NewRoot()
	} else {
		added = mapping.MissingOwn(tree, spec.Known)
	}
	tree, err := mapping.Merge(tree, added)
	if err != nil {
		return err
	}
	if problem := a.limits.exceeded(tree); problem != "" {
		return core.NewError(core.CodeInvalid, problem)
	}
	a.tree.Store(tree)
	err = x.update(0, func(tx *bbolt.Tx) error {
		b, err := tx.Bucket(bucketAliases()).CreateBucket([]byte(a.name))
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
		raw, err := json.Marshal(a.limits)
		if err != nil {
			return err
		}
		if err := b.Put(keyLimits(), raw); err != nil {
			return err
		}
		if err := b.Put(keyIdentity(), []byte(a.identity)); err != nil {
			return err
		}
		return a.saveTree(b)
	})
	if err != nil {
		return err
	}
	a.segments.publish(nil)
	x.mu.Lock()
	x.aliases[a.name] = a
	x.mu.Unlock()
	return nil
}

// extend adds fields to an existing alias. given must agree with the alias' mapping; fields of known that conflict are left out.
func (x *Index) extend(a *alias, given, known *mapping.Field) error {
	a.growth.Lock()
	defer a.growth.Unlock()
	tree := a.tree.Load()
	added := given
	if added == nil {
		if added = mapping.Missing(tree, known); added == nil {
			return nil
		}
	}
	grown, err := mapping.Merge(tree, added)
	if err == nil && given != nil {
		grown, err = mapping.Merge(grown, mapping.MissingOwn(grown, known))
	}
	if err != nil {
		return err
	}
	// The tree is published before it is saved: a transaction of commitLoop in between then saves it.
	a.tree.Store(grown)
	return x.update(0, func(tx *bbolt.Tx) error { return a.saveTree(aliasBucket(tx, a.name)) }, a)
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

// Mapping returns the current mapping of the alias.
func (x *Index) Mapping(_ context.Context, name string) (json.RawMessage, error) {
	if err := x.beginCall(); err != nil {
		return nil, err
	}
	defer x.calls.Done()
	if err := validAlias(name); err != nil {
		return nil, err
	}
	a, err := x.alias(name)
	if err != nil {
		return nil, err
	}
	return a.tree.Load().Render()
}

// validAlias applies Elasticsearch's rules for names, so that a configuration can move from one engine to the other.
func validAlias(name string) error {
	problem := ""
	switch {
	case name == "" || name == "." || name == "..":
		problem = "is empty or a relative path"
	case len(name) > 255:
		problem = "is longer than 255 bytes"
	case !utf8.ValidString(name) || strings.ToLower(name) != name:
		problem = "must be lower case"
	case strings.ContainsAny(name, "\\/*?\"<>| ,#:\x00"):
		problem = `must not contain \ / * ? " < > | , # : or a space`
	case strings.ContainsAny(name[:1], "_-+"):
		problem = "must not start with _, - or +"
	default:
		return nil
	}
	return core.NewError(core.CodeInvalid, fmt.Sprintf("the index name %q %s", name, problem))
}
