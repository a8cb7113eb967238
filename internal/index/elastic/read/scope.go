package read

import (
	"context"
	"maps"
	"slices"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// object is a JSON object to encode.
type object map[string]any

// Paths in a document's repositories block.
const (
	repositoriesPath = "repositories"
	repositoryCode   = "repositories.code"
)

// scopeQuery returns the query of a scope. It reads the mapping each time, as the alias may point to another index.
func (r *Reader) scopeQuery(ctx context.Context, alias string, scope core.IndexScope) (object, error) {
	if scope.Repository == "" && scope.Field == "" {
		return object{"match_all": object{}}, nil
	}
	seen, err := r.meta.Read(ctx, alias)
	if err != nil {
		return nil, err
	}
	var filters []object
	if scope.Repository != "" {
		filter, err := termFilter(seen.Tree, alias, repositoryCode, scope.Repository)
		if err != nil {
			return nil, err
		}
		filters = append(filters, filter)
	}
	if scope.Field != "" {
		filter, err := termFilter(seen.Tree, alias, scope.Field, scope.Organization)
		if err != nil {
			return nil, err
		}
		filters = append(filters, filter)
	}
	return object{"bool": object{"filter": filters}}, nil
}

// termFilter returns the query of documents whose field has exactly this value; none if the field is not mapped.
func termFilter(tree *mapping.Field, alias, path, value string) (object, error) {
	field := tree.Lookup(path)
	if field == nil {
		return object{"match_none": object{}}, nil
	}
	name := path
	if field.Type != mapping.Keyword {
		sub := keywordSubField(field)
		if sub == "" && (field.Type == "text" || field.Container()) {
			return nil, core.NewError(core.CodeUnsupported,
				"the field "+path+" of "+alias+" needs the type keyword, or a sub-field of that type, to select by it")
		}
		if sub != "" {
			name += "." + sub
		}
	}
	query := object{"term": object{name: object{"value": value}}}
	if parent := tree.Lookup(repositoriesPath); path == repositoryCode && parent.Type == mapping.Nested {
		return object{"nested": object{"path": repositoriesPath, "query": query}}, nil
	}
	return query, nil
}

// keywordSubField returns the name of the first keyword sub-field without a normalizer, "" for none.
func keywordSubField(field *mapping.Field) string {
	for _, name := range slices.Sorted(maps.Keys(field.Fields)) {
		sub := field.Fields[name]
		if sub.Type == mapping.Keyword && sub.Params["normalizer"] == nil {
			return name
		}
	}
	return ""
}
