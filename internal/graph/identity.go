package graph

import (
	"encoding/json"
	"slices"

	"tutti/internal/search"
	"tutti/internal/sqon"
)

// idHint adds to the fault of a filter that names the id of documents as nodes do the name that it has in filters.
func (x *execution) idHint(bad *gqlError, raw json.RawMessage) *gqlError {
	filter, err := sqon.Parse(raw)
	if err == nil && bad.hint == "" && x.namesID(filter.Root) {
		bad.hint = "id is no field: filter by " + search.IDField + ", the id of documents"
	}
	return bad
}

// namesID reports whether a filter names the id, where no field is called so.
func (x *execution) namesID(n *sqon.Node) bool {
	if n == nil {
		return false
	}
	if slices.ContainsFunc(n.Fields, func(name string) bool {
		_, own := x.served.model.Field(name)
		return !own && name == "id"
	}) {
		return true
	}
	return slices.ContainsFunc(n.Content, x.namesID)
}
