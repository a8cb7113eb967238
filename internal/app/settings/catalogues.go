package settings

import (
	"tutti/http/search"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
)

// Definitions returns the catalogues of a configuration: those of its folder, or one for each index that repositories write to.
// Its error is that of definition.Load. The server reads catalogues with it at the start.
func Definitions(cfg config.Config) (definition.Set, error) {
	opts := definition.Options{
		Reserved:                    search.ReservedIDs(),
		DisableGraphQLIntrospection: cfg.Catalogues.DisableGraphQLIntrospection,
		Production:                  cfg.Catalogues.Production,
	}
	var set definition.Set
	var err error
	if cfg.Catalogues.Dir == "" {
		set = definition.Default(defaultIndices(cfg.Repositories), opts)
	} else {
		set, err = definition.Load(cfg.Catalogues.Dir, opts)
	}
	for i := range set.Definitions {
		if d := &set.Definitions[i]; d.Access == nil {
			d.DefaultAccess = core.DefaultAccess(cfg.Auth.DefaultAccess)
		}
	}
	return set, err
}

// defaultIndices returns the indices that get a default catalogue when catalogues.dir is not set.
func defaultIndices(repositories []config.Repository) []definition.DefaultIndex {
	var indices []definition.DefaultIndex
	for _, r := range repositories {
		indices = append(indices, definition.DefaultIndex{Alias: r.IndexName, DocumentType: r.Kind().DocumentType})
	}
	return indices
}
