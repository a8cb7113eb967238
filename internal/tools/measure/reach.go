package main

import (
	"go/types"
	"strings"
)

// reach counts the fields and the methods that code of a type's package can name on a value of the type, with those of the types that
// it embeds at any depth; a name that an outer one hides counts once.
func reach(t *types.Named) int {
	names := map[string]bool{}
	pkg := t.Obj().Pkg()
	add := func(o types.Object) {
		if o.Exported() || o.Pkg() == pkg {
			names[o.Name()] = true
		}
	}
	seen := map[types.Type]bool{}
	var visit func(types.Type)
	visit = func(t types.Type) {
		if p, ok := types.Unalias(t).(*types.Pointer); ok {
			t = p.Elem()
		}
		if seen[t] {
			return
		}
		seen[t] = true
		if named, ok := types.Unalias(t).(*types.Named); ok {
			for method := range named.Methods() {
				add(method)
			}
		}
		switch u := t.Underlying().(type) {
		case *types.Interface:
			for method := range u.Methods() {
				add(method)
			}
		case *types.Struct:
			for field := range u.Fields() {
				add(field)
				if field.Embedded() {
					visit(field.Type())
				}
			}
		}
	}
	visit(t)
	return len(names)
}

// reaches returns the reach of the types that can name more than limit, by their names.
func (m *module) reaches(limit int) map[string]int {
	found := map[string]int{}
	for _, t := range m.types {
		name := m.nameOf(t.Obj())
		if n := reach(t); n > limit && !strings.HasPrefix(name, "internal/tools/") {
			found[name] = n
		}
	}
	return found
}
