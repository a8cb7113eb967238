package graphql

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// only returns the selection of one member, by the name of a field.
func (p selectionBuilder) only(f *ast.Field) *selectionSet {
	s := &selectionSet{}
	s.fields = append(s.fields, p.plainField(s, f))
	return s.finish()
}

// plain returns the selection of JSON objects whose member names are the field names of their type.
func (p selectionBuilder) plain(typeName string, set ast.SelectionSet) *selectionSet {
	s := &selectionSet{}
	for _, f := range p.op.Fields(typeName, set) {
		s.fields = append(s.fields, p.plainField(s, f))
	}
	return s.finish()
}

func (p selectionBuilder) plainField(s *selectionSet, f *ast.Field) selectedField {
	w := selectedField{encodedKey: encodedKey(f), key: f.Alias, field: f}
	if f.Name == "__typename" {
		w.kind = fieldTypename
		return w
	}
	of := f.Definition.Type.Name()
	w.keyIndex, w.list = s.addKey(f.Name), f.Definition.Type.Elem != nil
	if def := p.schema.AST.Types[of]; def != nil && def.Kind == ast.Object {
		w.kind, w.selection = fieldObject, p.plain(of, f.SelectionSet)
		return w
	}
	w.kind, w.scalar = fieldScalar, scalarOf(of)
	return w
}

// selects reports whether a field is selected at any depth.
func (s *selectionSet) selects(name string) bool {
	return slices.ContainsFunc(s.fields, func(w selectedField) bool {
		return w.field != nil && w.field.Name == name || w.selection != nil && w.selection.selects(name)
	})
}
