package embedded

import (
	"context"
	"encoding/json"

	"tutti/internal/index"
	"tutti/internal/index/embedded/indexfile"
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
	aliases map[string]indexfile.Described
}

// Inspect reads the mappings and the limits of the indices in the folder of cfg, without changing anything; there are none without a folder.
// CodeConflict while a process has the file open, CodeUnsupported for a file of another version.
func Inspect(cfg Config) (*Inspection, error) {
	found, err := indexfile.Inspect(cfg.Dir)
	if err != nil {
		return nil, err
	}
	return &Inspection{Renewed: found.Renewed, limits: cfg.withDefaults().Limits, aliases: found.Aliases}, nil
}

// Compare is that of an Index.
func (x *Inspection) Compare(_ context.Context, spec index.Spec) (index.Comparison, error) {
	one := x.aliases[spec.Alias]
	c := Compare(spec, one.Name, one.Tree)
	if one.Tree != nil {
		c.Limits = index.LimitDifferences(x.limits.With(spec.Mapping).Settings(), one.Limits.Settings())
	}
	return c, nil
}

// Mapping is that of an Index.
func (x *Inspection) Mapping(_ context.Context, alias string) (json.RawMessage, error) {
	one, has := x.aliases[alias]
	if !has {
		return nil, indexfile.ErrMissing(alias)
	}
	return one.Tree.Render()
}
