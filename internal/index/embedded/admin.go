package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/index/mappingfile"
)

// admin creates, moves and deletes aliases, and returns their state.
type admin struct {
	*shared
	// ensureMu serializes Ensure, Swap and Drop.
	ensureMu sync.Mutex
}

// Ensure creates the alias, or adds spec's fields to its mapping. It returns CodeInvalid when the name or the mapping is invalid,
// and CodeConflict when an existing mapping contradicts spec.Mapping.
func (x *admin) Ensure(_ context.Context, spec index.Spec) error {
	done, err := x.file.Begin()
	if err != nil {
		return err
	}
	defer done()
	if err := validAlias(spec.Alias); err != nil {
		return err
	}
	wanted, refused := Definition(spec)
	x.ensureMu.Lock()
	defer x.ensureMu.Unlock()
	if a, err := x.file.Alias(spec.Alias); err == nil {
		if refused != nil {
			return index.RefusedMapping(refused)
		}
		return a.Extend(func(tree *mapping.Field) (*mapping.Field, error) { return extended(tree, spec) })
	}
	if refused != nil {
		return refused
	}
	limits := x.cfg.Limits.With(spec.Mapping)
	if problem := limits.Exceeded(wanted); problem != "" {
		return core.NewError(core.CodeInvalid, problem)
	}
	return x.file.Create(spec.Alias, limits, wanted)
}

// Declare sets the types of fields that later Writes to an alias add.
func (x *admin) Declare(alias string, types *mapping.Types) { x.types.Declare(alias, types) }

// Limits returns the limits of the index of an alias. CodeIndexBlocked when the alias is missing.
func (x *admin) Limits(_ context.Context, alias string) (mapping.Limits, error) {
	a, err := x.file.Alias(alias)
	if err != nil {
		return mapping.Limits{}, err
	}
	return a.Limits, nil
}

// extended returns the mapping of an alias with the fields of spec. Those of a mapping file must agree with it; others that conflict are
// left out.
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
	a, done, err := x.file.Use(spec.Alias)
	if errors.Is(err, core.ErrIndexMissing) {
		return Compare(spec, "", nil), nil
	}
	if err != nil {
		return index.Comparison{Kind: index.NameAbsent}, err
	}
	defer done()
	c := Compare(spec, a.Name(), a.Tree())
	c.Limits = index.LimitDifferences(x.cfg.Limits.With(spec.Mapping).Settings(), a.Limits.Settings())
	return c, nil
}

// Mapping returns the current mapping of the alias.
func (x *admin) Mapping(_ context.Context, name string) (json.RawMessage, error) {
	if err := validAlias(name); err != nil {
		return nil, err
	}
	a, done, err := x.file.Use(name)
	if err != nil {
		return nil, err
	}
	defer done()
	return a.Tree().Render()
}

// Ping commits a small durable transaction. It returns CodeUnavailable when the index does not accept writes.
func (x *admin) Ping(context.Context) error {
	done, err := x.file.Begin()
	if err != nil {
		return err
	}
	defer done()
	return x.file.Probe()
}

// Check returns nil when alias accepts writes. After a failed transaction it tries a small one.
func (x *admin) Check(_ context.Context, name string) error {
	_, done, err := x.file.Use(name)
	if err != nil {
		return err
	}
	defer done()
	return x.file.Writable()
}

// Identity returns the random identity with which the alias was created.
func (x *admin) Identity(_ context.Context, name string) (string, error) {
	a, done, err := x.file.Use(name)
	if err != nil {
		return "", err
	}
	defer done()
	return a.Identity, nil
}

// Refresh blocks until committed writes are visible to searches. Writes that returned are visible without it.
func (x *admin) Refresh(ctx context.Context, name string) error {
	a, done, err := x.file.Use(name)
	if err != nil {
		return err
	}
	defer done()
	return a.AwaitCommit(ctx)
}

// Loading returns the aliases that cannot be searched yet, because their columns are still being read or rebuilt; they accept
// writes. Once it is empty it remains so.
func (x *admin) Loading() []string { return x.file.Loading() }

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
