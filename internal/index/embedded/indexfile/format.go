package indexfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// format is the version of the file's layout. Files of version 1 had no segments, which are rebuilt from the sources.
const format = 2

// swappedFormat is the version of the layout of a file with a bucket of names, which the first change of aliases creates.
const swappedFormat = 3

// Contents is what Inspect has read.
type Contents struct {
	// Renewed is set if the next start changes the layout of the file.
	Renewed bool
	// Aliases has the aliases of the file.
	Aliases map[string]Described
}

// Described is the mapping of an alias and its index.
type Described struct {
	// Name is the name of the index.
	Name   string
	Tree   *mapping.Field
	Limits mapping.Limits
}

// Inspect reads the mappings and the limits of the indices in a folder, without changing anything; there are none without a folder.
// CodeConflict while a process has the file open, CodeUnsupported for a file of another version.
func Inspect(dir string) (*Contents, error) {
	x := &Contents{Aliases: map[string]Described{}}
	db, err := bbolt.Open(filepath.Join(dir, fileName), 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait, NoStatistics: true})
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

func (x *Contents) read(tx *bbolt.Tx) error {
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
		one := Described{Name: name}
		if one.Tree, one.Limits, err = loadMapping(name, all.Bucket([]byte(name))); err != nil {
			return err
		}
		x.Aliases[alias] = one
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
