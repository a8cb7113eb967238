package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
)

// Compare returns how an index with a mapping differs from spec, without its limits. live is nil if there is none.
func Compare(spec index.Spec, name string, live *mapping.Field) index.Comparison {
	wanted, refused := Definition(spec)
	c := index.Comparison{Kind: index.NameAbsent, Refused: refused}
	if live == nil {
		return c
	}
	c.Kind, c.Indices = index.NameAlias, []string{name}
	if refused == nil {
		c.Fields, c.Retyped = spec.Differences(wanted, live), spec.Types.Retyped(wanted, live)
	}
	return c
}

// Inspection is what Inspect has read.
type Inspection struct {
	// Renewed is set if the next start changes the layout of the file.
	Renewed bool
	limits  mapping.Limits
	indices map[string]inspected
}

// inspected is the mapping of an alias and its index.
type inspected struct {
	name   string
	tree   *mapping.Field
	limits mapping.Limits
}

// Inspect reads the mappings and the limits of the indices in the folder of cfg, without changing anything; there are none without a folder.
// CodeConflict while a process has the file open, CodeUnsupported for a file of another version.
func Inspect(cfg Config) (*Inspection, error) {
	x := &Inspection{limits: cfg.withDefaults().Limits, indices: map[string]inspected{}}
	db, err := bbolt.Open(filepath.Join(cfg.Dir, fileName), 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait, NoStatistics: true})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return x, nil
	case errors.Is(err, berrors.ErrTimeout):
		return nil, core.WrapError(core.CodeConflict, "the embedded index is in use by another process", err)
	case err != nil:
		return nil, core.WrapError(core.CodeUnavailable, "opening the embedded index", err)
	}
	err = errors.Join(db.View(x.read), db.Close())
	return x, err
}

func (x *Inspection) read(tx *bbolt.Tx) error {
	meta, all := tx.Bucket(bucketMeta()), tx.Bucket(bucketAliases())
	if meta == nil || all == nil {
		return nil // made, and never used
	}
	raw := meta.Get(keyFormat())
	if err := checkFormat(raw); err != nil {
		return err
	}
	x.Renewed = raw == nil || raw[0] < format
	indices, err := indicesByAlias(tx, all)
	for alias, name := range indices {
		one := inspected{name: name}
		if one.tree, one.limits, err = loadMapping(name, all.Bucket([]byte(name))); err != nil {
			return err
		}
		x.indices[alias] = one
	}
	return err
}

// loadMapping reads the mapping and the limits of an index.
func loadMapping(name string, b *bbolt.Bucket) (tree *mapping.Field, limits mapping.Limits, err error) {
	if tree, err = mapping.Parse(b.Get(keyMapping())); err != nil {
		return nil, limits, core.WrapError(core.CodeUnsupported, fmt.Sprintf("the mapping of the index %q cannot be read", name), err)
	}
	if err := json.Unmarshal(b.Get(keyLimits()), &limits); err != nil {
		return nil, limits, core.WrapError(core.CodeUnsupported, fmt.Sprintf("the limits of the index %q cannot be read", name), err)
	}
	return tree, limits, nil
}

// checkFormat returns CodeUnsupported for a version of the file's layout that is not known. nil is that of a new file.
func checkFormat(raw []byte) error {
	if raw != nil && (len(raw) != 1 || raw[0] == 0 || raw[0] > swappedFormat) {
		return core.NewError(core.CodeUnsupported, "the embedded index was written by another version of tutti")
	}
	return nil
}

// Compare is that of an Index.
func (x *Inspection) Compare(_ context.Context, spec index.Spec) (index.Comparison, error) {
	one := x.indices[spec.Alias]
	c := Compare(spec, one.name, one.tree)
	if one.tree != nil {
		c.Limits = index.LimitDifferences(x.limits.With(spec.Mapping).Settings(), one.limits.Settings())
	}
	return c, nil
}

// Mapping is that of an Index.
func (x *Inspection) Mapping(_ context.Context, alias string) (json.RawMessage, error) {
	one, has := x.indices[alias]
	if !has {
		return nil, errMissing(alias)
	}
	return one.tree.Render()
}
