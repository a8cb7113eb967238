package embedded

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/index/mappingfile"
)

// admin creates, moves and deletes aliases, and returns their state.
type admin struct {
	*store
	// ensureMu serializes Ensure, Swap and Drop.
	ensureMu sync.Mutex
	changes  chan<- *aliasChange
}

// Ensure creates the alias, or adds spec's fields to its mapping. It returns CodeInvalid when the name or the mapping is invalid,
// and CodeConflict when an existing mapping contradicts spec.Mapping.
func (x *admin) Ensure(_ context.Context, spec index.Spec) error {
	if err := x.beginCall(); err != nil {
		return err
	}
	defer x.calls.Done()
	if err := validAlias(spec.Alias); err != nil {
		return err
	}
	wanted, refused := Definition(spec)
	x.ensureMu.Lock()
	defer x.ensureMu.Unlock()
	if a, err := x.alias(spec.Alias); err == nil {
		if refused != nil {
			return index.RefusedMapping(refused)
		}
		return x.extend(a, spec)
	}
	if refused != nil {
		return refused
	}
	return x.create(spec, wanted)
}

// Declare sets the types of fields that later Writes to an alias add.
func (x *admin) Declare(alias string, types *mapping.Types) { x.types.Declare(alias, types) }

// Limits returns the limits of the index of an alias. CodeIndexBlocked when the alias is missing.
func (x *admin) Limits(_ context.Context, alias string) (mapping.Limits, error) {
	a, err := x.alias(alias)
	if err != nil {
		return mapping.Limits{}, err
	}
	return a.limits, nil
}

// create creates an alias in one transaction.
func (x *admin) create(spec index.Spec, tree *mapping.Field) error {
	a := &alias{
		identity: rand.Text(), terms: map[string]term{}, limits: x.cfg.Limits.With(spec.Mapping), segments: newSegmentSet(0),
	}
	if problem := a.limits.Exceeded(tree); problem != "" {
		return core.NewError(core.CodeInvalid, problem)
	}
	a.tree.Store(tree)
	err := x.update(0, func(tx *bbolt.Tx) error {
		b, err := createIndex(tx, a, spec.Alias)
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
	x.aliases[spec.Alias] = a
	x.mu.Unlock()
	return nil
}

// createIndex creates the bucket of an alias, sets a's name, and maps the alias to it. The name of the alias may be that of another
// index since a Swap.
func createIndex(tx *bbolt.Tx, a *alias, aliasName string) (*bbolt.Bucket, error) {
	all := tx.Bucket(bucketAliases())
	a.name = aliasName
	for n := 2; all.Bucket([]byte(a.name)) != nil; n++ {
		a.name = fmt.Sprintf("%s-%d", aliasName, n)
	}
	if names := tx.Bucket(bucketNames()); names != nil {
		if err := names.Put([]byte(aliasName), []byte(a.name)); err != nil {
			return nil, err
		}
	}
	return all.CreateBucket([]byte(a.name))
}

// extend adds fields to an existing alias. Those of a mapping file must agree with the alias' mapping; others that conflict are left out.
func (x *admin) extend(a *alias, spec index.Spec) error {
	a.growth.Lock()
	defer a.growth.Unlock()
	tree := a.tree.Load()
	grown, err := extended(tree, spec)
	if err != nil || grown == tree {
		return err
	}
	// The tree is published before it is saved: a transaction of the committer in between then saves it.
	a.tree.Store(grown)
	return x.update(0, func(tx *bbolt.Tx) error { return a.saveTree(aliasBucket(tx, a.name)) }, a)
}

// extended returns the mapping of an alias with the fields of spec.
func extended(tree *mapping.Field, spec index.Spec) (*mapping.Field, error) {
	file, err := mappingfile.Parse(spec.Mapping)
	if err != nil {
		return nil, err
	}
	update := file.Update(tree, spec.NewFields)
	if update == nil {
		update = &mapping.Field{Type: mapping.Object}
	}
	if text := mapping.Contradiction(mapping.Compare(update, tree)); text != "" {
		return nil, &core.Error{
			Code: core.CodeConflict, Message: "the mapping file contradicts the mapping of " + spec.Alias + ": " + text,
			Hint: "rebuild the repository's index, which creates a new one with the mapping file", Err: core.ErrMappingContradicts,
		}
	}
	grown := tree
	if update.Dynamic != "" || len(update.Params) > 0 || !update.Empty() {
		if grown, err = mapping.Put(tree, update); err != nil {
			return nil, err
		}
	}
	if spec.Mapping == nil {
		return mapping.Merge(grown, mapping.Missing(grown, spec.Known))
	}
	return mapping.Merge(grown, mapping.MissingOwn(grown, spec.Known))
}

// Compare returns how the mapping of the alias differs from spec.
func (x *admin) Compare(_ context.Context, spec index.Spec) (index.Comparison, error) {
	if err := validAlias(spec.Alias); err != nil {
		return index.Comparison{Kind: index.NameAbsent}, err
	}
	a, done, err := x.use(spec.Alias)
	if errors.Is(err, core.ErrIndexMissing) {
		return Compare(spec, "", nil), nil
	}
	if err != nil {
		return index.Comparison{Kind: index.NameAbsent}, err
	}
	defer done()
	c := Compare(spec, a.name, a.tree.Load())
	c.Limits = index.LimitDifferences(x.cfg.Limits.With(spec.Mapping).Settings(), a.limits.Settings())
	return c, nil
}

// Mapping returns the current mapping of the alias.
func (x *admin) Mapping(_ context.Context, name string) (json.RawMessage, error) {
	if err := validAlias(name); err != nil {
		return nil, err
	}
	a, done, err := x.use(name)
	if err != nil {
		return nil, err
	}
	defer done()
	return a.tree.Load().Render()
}

// Ping commits a small durable transaction. It returns CodeUnavailable when the index does not accept writes.
func (x *admin) Ping(context.Context) error {
	if err := x.beginCall(); err != nil {
		return err
	}
	defer x.calls.Done()
	return x.probeWrite()
}

// Check returns nil when alias accepts writes. After a failed transaction it tries a small one.
func (x *admin) Check(_ context.Context, name string) error {
	_, done, err := x.use(name)
	if err != nil {
		return err
	}
	defer done()
	x.mu.RLock()
	lacking := x.requiredSpace
	x.mu.RUnlock()
	if lacking == 0 {
		return nil
	}
	return x.probeWrite()
}

// Identity returns the random identity with which the alias was created.
func (x *admin) Identity(_ context.Context, name string) (string, error) {
	a, done, err := x.use(name)
	if err != nil {
		return "", err
	}
	defer done()
	return a.identity, nil
}

// Refresh blocks until committed writes are visible to searches. Writes that returned are visible without it.
func (x *admin) Refresh(ctx context.Context, name string) error {
	a, done, err := x.use(name)
	if err != nil {
		return err
	}
	defer done()
	var row uint64
	err = x.db.View(func(tx *bbolt.Tx) error {
		b := aliasBucket(tx, a.name)
		if b == nil {
			return errMissing(a.name)
		}
		row = b.Bucket(bucketRows()).Sequence()
		return nil
	})
	if errors.Is(err, core.ErrIndexMissing) {
		return err
	}
	if err != nil {
		return core.WrapError(core.CodeUnavailable, "reading the embedded index", err)
	}
	for a.segments.commitPending(row) {
		if err := ctx.Err(); err != nil {
			return core.WrapError(core.CodeUnavailable, "waiting for the index was cancelled", err)
		}
		time.Sleep(snapshotPoll)
	}
	return nil
}

// Loading returns the aliases that cannot be searched yet, because their columns are still being read or rebuilt; they accept
// writes. Once it is empty it remains so.
func (x *admin) Loading() []string {
	var names []string
	x.mu.RLock()
	defer x.mu.RUnlock()
	for name, a := range x.aliases {
		if a.segments.loading() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
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
