package graphql

import (
	"encoding/json"
	"slices"

	"tutti/internal/filter/sqon"
	"tutti/internal/search/view"
)

// idHint adds a hint to the error of a filter that uses the node field id: in filters the document id has another name.
func (x *execution) idHint(bad *gqlError, raw json.RawMessage) *gqlError {
	filter, err := sqon.Parse(raw)
	if err == nil && bad.hint == "" && x.namesID(filter.Root) {
		bad.hint = "id is not a field: filter by " + view.IDField + ", the document id"
	}
	return bad
}

// namesID reports whether a filter names id although the catalogue has no such field.
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
