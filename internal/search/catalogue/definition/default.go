package definition

import (
	"cmp"
	"fmt"
	"slices"

	"tutti/internal/core"
)

// DefaultIndex is an index that repositories write to; it gets a catalogue if none are configured.
type DefaultIndex struct {
	Alias string
	// DocumentType is "analysis", or "record" for tabular data.
	DocumentType string
}

// Default returns the catalogues of a server without a folder (CONTRACT section 3): one for each alias, with its name as ID.
// Duplicate aliases become one, with the first document type. An alias with the name of a route is listed as failed.
func Default(indices []DefaultIndex, opts Options) Set {
	var set Set
	types := map[string]string{}
	for _, index := range indices {
		if documentType, is := types[index.Alias]; is {
			if documentType != index.DocumentType {
				set.Warnings = append(set.Warnings, fmt.Sprintf("the index %s holds %s as well as %s documents: its catalogue calls them %s",
					printable(index.Alias), printable(documentType), printable(index.DocumentType), printable(documentType)))
			}
			continue
		}
		types[index.Alias] = index.DocumentType
		set.Definitions = append(set.Definitions, defaultDefinition(index, opts))
	}
	slices.SortFunc(set.Definitions, func(a, b Definition) int { return cmp.Compare(a.ID, b.ID) })
	return set
}

func defaultDefinition(index DefaultIndex, opts Options) Definition {
	d := Definition{
		ID: index.Alias, DocumentType: index.DocumentType, Index: index.Alias,
		GraphQLIntrospection: introspection(nil, opts), MaxAliases: defaultMaxAliases,
	}
	if slices.Contains(opts.Reserved, index.Alias) {
		d.Err = &core.Error{
			Code: core.CodeInvalid,
			Message: fmt.Sprintf("%s cannot be the id of a catalogue, because it is the name of a server route: "+
				"configure a folder of catalogues with another catalogId for this index", quoted(index.Alias)),
			Hint: "set catalogues.dir to a folder with a base.json that has catalogId, documentType and esIndex",
		}
	}
	return d
}
