package graph

import (
	"encoding/json"
	"fmt"
	"slices"

	"tutti/internal/sqon"
)

// idHint adds to the fault of a filter that names the id of documents, which is no field, by what they can be filtered instead.
func (x *execution) idHint(bad *fault, raw json.RawMessage) *fault {
	filter, err := sqon.Parse(raw)
	if err != nil || bad.hint != "" || !x.namesID(filter.Root) {
		return bad
	}
	bad.hint = "the id of a document is no field: filter by one that holds it"
	path := x.identity.Field.Path
	for name := range x.served.model.Names() {
		if of, known := x.served.model.Path(name); known && of == path {
			bad.hint = fmt.Sprintf("the id of a document is no field: filter by %s, which holds it", name)
			break
		}
	}
	return bad
}

// namesID tells whether a filter names the id, where no field is called so.
func (x *execution) namesID(n *sqon.Node) bool {
	if n == nil {
		return false
	}
	if slices.ContainsFunc(n.Fields, func(name string) bool {
		_, own := x.served.model.Field(name)
		return !own && (name == "id" || name == "_id")
	}) {
		return true
	}
	return slices.ContainsFunc(n.Content, x.namesID)
}
