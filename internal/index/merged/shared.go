package merged

import (
	"context"
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
)

// Index is an engine in which repositories may share an index. It is safe for concurrent use.
type Index struct {
	index.Index
	groups map[string]*group
	// CheckStorage returns core.ErrIndexUnsuitable if the index of an alias does not return documents as they were written; nil for an engine
	// all of whose indices do. It must be set before the first Ensure.
	CheckStorage func(ctx context.Context, alias string) error
}

var _ index.Index = (*Index)(nil)

// New returns an Index of an engine. Repositories with the same IndexName share it.
func New(engine index.Index, repositories []core.Repository) *Index {
	groups := map[string]*group{}
	for _, r := range repositories {
		if groups[r.IndexName] == nil {
			groups[r.IndexName] = &group{alias: r.IndexName, repositories: map[string]core.Repository{}}
		}
		groups[r.IndexName].repositories[r.Code] = r
	}
	for alias, g := range groups {
		if len(g.repositories) < 2 {
			delete(groups, alias)
			continue
		}
		g.rules = contentRules(g.repositories)
	}
	return &Index{Index: engine, groups: groups}
}

// Shared reports whether repositories share the index of an alias.
func (x *Index) Shared(alias string) bool { return x.groups[alias] != nil }

// withState returns spec with the field mapping.Shared if its index is shared.
func (x *Index) withState(spec index.Spec) (index.Spec, error) {
	if !x.Shared(spec.Alias) {
		return spec, nil
	}
	known := spec.Known
	if known == nil {
		known = mapping.NewRoot()
	}
	var err error
	spec.Known, err = mapping.Merge(known, mapping.SharedState())
	return spec, err
}

// Ensure implements index.Index.
func (x *Index) Ensure(ctx context.Context, spec index.Spec) error {
	spec, err := x.withState(spec)
	if err != nil {
		return err
	}
	if err := x.Index.Ensure(ctx, spec); err != nil || x.CheckStorage == nil {
		return err
	}
	return x.CheckStorage(ctx, spec.Alias)
}

// Compare implements index.Index.
func (x *Index) Compare(ctx context.Context, spec index.Spec) (index.Comparison, error) {
	spec, err := x.withState(spec)
	if err != nil {
		return index.Comparison{}, err
	}
	return x.Index.Compare(ctx, spec)
}

// Mapping returns the mapping without the field mapping.Shared, so that no catalogue has it.
func (x *Index) Mapping(ctx context.Context, alias string) (json.RawMessage, error) {
	raw, err := x.Index.Mapping(ctx, alias)
	if err != nil {
		return nil, err
	}
	var root, properties map[string]json.RawMessage
	if json.Unmarshal(raw, &root) != nil || json.Unmarshal(root["properties"], &properties) != nil || properties[mapping.Shared] == nil {
		return raw, nil
	}
	delete(properties, mapping.Shared)
	if root["properties"], err = json.Marshal(properties); err == nil {
		raw, err = json.Marshal(root)
	}
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "encoding a mapping", err)
	}
	return raw, nil
}
