package query

import (
	"context"

	"tutti/internal/sqon"
)

// Fields knows the fields of a catalogue, by the names that filters use and by the paths of the engine.
type Fields interface {
	sqon.Fields
	// Lookup gives the field of a name as the engine knows it, of its target for an alias; false when there is none, and for
	// containers.
	Lookup(name string) (Field, bool)
	// NestedPath gives the engine's path of a nested container; false when the name is none.
	NestedPath(name string) (string, bool)
}

// Sets gives the members of a saved set to who may use it; an error of core.CodeNotFound for any other.
type Sets func(ctx context.Context, id string) ([]string, error)

// Lower gives the tree of a filter that has passed Check(fields), at the scope "": it hoists, normalizes and lowers it. Sets may be
// nil where no filter names one. Errors are of CodeInvalid, with the pointer of the clause.
func Lower(ctx context.Context, f sqon.Filter, fields Fields, sets Sets) (*Node, error) {
	return nil, nil
}

// Facet gives the two filters of a facet on a field, for the documents and for the elements of the field's nested path, nil for
// all. Unless themselves is set, clauses on the field itself do not narrow it: those that the filter and-s to the rest, at the
// top or below a pivot. Clauses on siblings in the same nested path, and pivots on it, narrow elements too.
func Facet(ctx context.Context, f sqon.Filter, name string, themselves bool, fields Fields, sets Sets) (documents, elements *Node, err error) {
	return nil, nil, nil
}
