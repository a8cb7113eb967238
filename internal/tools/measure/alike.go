package main

import (
	"go/types"
	"maps"
	"slices"
	"strings"
)

// alike returns the interfaces of the module whose methods are those of another one, in groups, by their names.
func (m *module) alike() (groups [][]string) {
	named := map[string][]string{}
	for _, t := range m.types {
		port, ok := t.Underlying().(*types.Interface)
		name := m.nameOf(t.Obj())
		if !ok || port.NumMethods() == 0 || strings.HasPrefix(name, "internal/tools/") {
			continue
		}
		var methods []string
		for method := range port.Methods() {
			signature := types.NewSignatureType(nil, nil, nil, unnamed(method.Signature().Params()), unnamed(method.Signature().Results()), method.Signature().Variadic())
			methods = append(methods, method.Name()+signature.String())
		}
		slices.Sort(methods)
		of := strings.Join(methods, "\n")
		named[of] = append(named[of], name)
	}
	for _, of := range slices.Sorted(maps.Keys(named)) {
		if len(named[of]) > 1 {
			groups = append(groups, named[of])
		}
	}
	return groups
}

// unnamed returns the types of values without their names.
func unnamed(t *types.Tuple) *types.Tuple {
	var values []*types.Var
	for v := range t.Variables() {
		values = append(values, types.NewVar(0, nil, "", v.Type()))
	}
	return types.NewTuple(values...)
}
