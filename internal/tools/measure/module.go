package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// module is the checked source of a module, without tests.
type module struct {
	name     string // its import path
	root     string
	files    *token.FileSet
	packages []*packages.Package
	code     map[*types.Func]*function
	literals map[*ast.FuncLit]*function
	types    []*types.Named // those that are declared in packages
}

// load reads the module in a folder.
func load(folder string) (*module, error) {
	root, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	m := &module{root: root, files: token.NewFileSet(), code: map[*types.Func]*function{}, literals: map[*ast.FuncLit]*function{}}
	m.packages, err = packages.Load(&packages.Config{
		Mode: packages.LoadSyntax | packages.NeedModule, Dir: root, Fset: m.files,
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("reading the module: %w", err)
	}
	if packages.PrintErrors(m.packages) > 0 {
		return nil, errors.New("the module has the errors above")
	}
	for _, p := range m.packages {
		m.name = p.Module.Path // before the names below
		for _, name := range p.Types.Scope().Names() {
			if t, ok := p.Types.Scope().Lookup(name).(*types.TypeName); ok && !t.IsAlias() {
				if named, ok := t.Type().(*types.Named); ok {
					m.types = append(m.types, named)
				}
			}
		}
		for _, file := range p.Syntax {
			for _, d := range file.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
					f := p.TypesInfo.Defs[d.Name].(*types.Func)
					m.code[f] = &function{name: m.nameOf(f), info: p.TypesInfo, recv: d.Recv, signature: d.Type, body: d.Body}
				}
			}
		}
	}
	return m, nil
}

// file returns the path of the file of a position in the module.
func (m *module) file(pos token.Pos) string {
	name, err := filepath.Rel(m.root, m.files.Position(pos).Filename)
	if err != nil {
		return m.files.Position(pos).Filename
	}
	return filepath.ToSlash(name)
}

func (m *module) folder(pos token.Pos) string { return filepath.ToSlash(filepath.Dir(m.file(pos))) }

// nameOf returns the name of a type, a function or a method of the module, with its folder: "consumers/run.pages.handle".
func (m *module) nameOf(o types.Object) string {
	name := o.Name()
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		t := f.Signature().Recv().Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		if named, ok := t.(*types.Named); ok {
			name = named.Obj().Name() + "." + name
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(o.Pkg().Path(), m.name), "/") + "." + name
}

func (m *module) literal(e *ast.FuncLit, info *types.Info) *function {
	if m.literals[e] == nil {
		m.literals[e] = &function{info: info, signature: e.Type, body: e.Body}
	}
	return m.literals[e]
}

// declared returns the code of f. For a method of an interface, that is the method of the type that ports names for it, or of the only
// type of the module that has it.
func (m *module) declared(f *types.Func, ports map[string]string) *function {
	f = f.Origin()
	recv := f.Signature().Recv()
	if recv == nil || !types.IsInterface(recv.Type()) {
		return m.code[f]
	}
	named, ok := recv.Type().(*types.Named)
	if !ok || f.Pkg() == nil {
		return nil
	}
	chosen := ports[m.nameOf(named.Obj())]
	var only *function
	for _, t := range m.types {
		name := m.nameOf(t.Obj())
		if chosen != "" && name != chosen || types.IsInterface(t) || strings.HasPrefix(name, "internal/tools/") ||
			!types.Implements(types.NewPointer(t), named.Underlying().(*types.Interface)) {
			continue
		}
		method, _, _ := types.LookupFieldOrMethod(types.NewPointer(t), false, f.Pkg(), f.Name())
		code := m.code[method.(*types.Func)]
		if code == nil || code == only { // promoted from an interface, or from a type that is found by itself
			continue
		}
		if only != nil {
			return nil
		}
		only = code
	}
	return only
}

// find returns the function of a start, or the literal in it, that has the start's parameter or receiver.
func (m *module) find(s start) (*function, types.Object, error) {
	for _, code := range m.code {
		if code.name != s.function {
			continue
		}
		for _, list := range []*ast.FieldList{code.recv, code.signature.Params} {
			if o := parameter(code.info, list, s.parameter); o != nil {
				return code, o, nil
			}
		}
		var found *function
		ast.Inspect(code.body, func(n ast.Node) bool {
			if e, ok := n.(*ast.FuncLit); ok && found == nil && parameter(code.info, e.Type.Params, s.parameter) != nil {
				found = m.literal(e, code.info)
			}
			return found == nil
		})
		if found != nil {
			return found, parameter(code.info, found.signature.Params, s.parameter), nil
		}
	}
	return nil, nil, fmt.Errorf("no function %s with a parameter %s", s.function, s.parameter)
}

func parameter(info *types.Info, list *ast.FieldList, name string) types.Object {
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		for _, id := range field.Names {
			if id.Name == name {
				return info.Defs[id]
			}
		}
	}
	return nil
}
