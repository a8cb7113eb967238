package transport

import (
	"encoding/json"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"
)

// AliasRequest requests the aliases of the indices behind a name, which may be an alias, an index or a data stream. It names them as an
// index: OpenSearch's security plugin rejects GET /_alias/NAME of every user who may not read the aliases of all indices.
func AliasRequest(name string) esapi.IndicesGetAliasRequest {
	return esapi.IndicesGetAliasRequest{Index: []string{name}}
}

// AliasAnswer is the answer to an AliasRequest: indices by their names.
type AliasAnswer map[string]struct {
	Aliases map[string]json.RawMessage `json:"aliases"`
}

// Behind returns the names of the indices with an alias, sorted; none if the name is that of an index or a data stream.
func (a AliasAnswer) Behind(alias string) []string {
	var names []string
	for name, one := range a {
		if _, has := one.Aliases[alias]; has {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
