package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// function is a declared function or a literal, with the types of its package.
type function struct {
	name      string // "consumers/run.pages.handle"; "" for a literal
	info      *types.Info
	recv      *ast.FieldList
	signature *ast.FuncType
	body      *ast.BlockStmt
	used      bool // of a function value: it was called
}

// onlyReturns reports whether a function does nothing but return what is there.
func (f *function) onlyReturns() bool {
	if len(f.body.List) != 1 {
		return false
	}
	_, returns := f.body.List[0].(*ast.ReturnStmt)
	ast.Inspect(f.body, func(n ast.Node) bool {
		_, calls := n.(*ast.CallExpr)
		returns = returns && !calls
		return returns
	})
	return returns
}

// walker walks the main line of a path; the package's comment has its rules.
type walker struct {
	module *module
	path   path
	follow map[types.Object]bool
	bound  map[types.Object]*function // what a parameter, a variable or a field was given
	stack  map[*ast.BlockStmt]bool
	info   *types.Info // of the code that is being walked

	entries []string // the files in the order they were entered
}

// leaving says how a statement ends its block on the main line.
type leaving int

const (
	stays leaving = iota
	breaks
	leaves
)

func (w *walker) enter(pos token.Pos) {
	if file := w.module.file(pos); len(w.entries) == 0 || w.entries[len(w.entries)-1] != file {
		w.entries = append(w.entries, file)
	}
}

func (w *walker) walk(f *function) {
	if w.stack[f.body] {
		return
	}
	outer := w.info
	w.info, w.stack[f.body], f.used = f.info, true, true
	w.enter(f.body.Pos())
	var deferred []*ast.CallExpr
	w.block(f.body.List, &deferred)
	for _, call := range slices.Backward(deferred) {
		w.call(call)
	}
	delete(w.stack, f.body)
	w.info = outer
}

func (w *walker) block(list []ast.Stmt, deferred *[]*ast.CallExpr) leaving {
	for _, s := range list {
		if left := w.statement(s, deferred); left != stays {
			return left
		}
	}
	return stays
}

func (w *walker) statement(s ast.Stmt, deferred *[]*ast.CallExpr) leaving {
	switch s := s.(type) {
	case *ast.BlockStmt:
		return w.block(s.List, deferred)
	case *ast.LabeledStmt:
		return w.statement(s.Stmt, deferred)
	case *ast.IfStmt:
		return w.branch(s, deferred)
	case *ast.SwitchStmt:
		w.optional(s.Init, deferred)
		w.expression(s.Tag)
		return w.cases(s.Body, s.Tag == nil, deferred)
	case *ast.TypeSwitchStmt:
		w.optional(s.Init, deferred)
		w.optional(s.Assign, deferred)
		return w.cases(s.Body, false, deferred)
	case *ast.SelectStmt:
		return w.cases(s.Body, false, deferred)
	case *ast.ForStmt:
		w.optional(s.Init, deferred)
		w.expression(s.Cond)
		left := w.block(s.Body.List, deferred)
		w.optional(s.Post, deferred)
		if left == leaves && s.Cond == nil {
			return leaves
		}
	case *ast.RangeStmt:
		w.expression(s.X)
		if w.carries(s.X) {
			w.derive(s.Key)
			w.derive(s.Value)
		}
		w.block(s.Body.List, deferred)
	case *ast.ReturnStmt:
		w.expressions(s.Results)
		return leaves
	case *ast.BranchStmt:
		return breaks
	case *ast.DeferStmt:
		*deferred = append(*deferred, s.Call)
	default:
		w.simple(s)
	}
	return stays
}

// simple walks a statement without others in it.
func (w *walker) simple(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.GoStmt:
		w.expression(s.Call)
	case *ast.AssignStmt:
		w.expressions(s.Lhs)
		w.assign(s.Lhs, s.Rhs)
	case *ast.DeclStmt:
		for _, spec := range s.Decl.(*ast.GenDecl).Specs {
			if spec, ok := spec.(*ast.ValueSpec); ok {
				names := make([]ast.Expr, len(spec.Names))
				for i, name := range spec.Names {
					names[i] = name
				}
				w.assign(names, spec.Values)
			}
		}
	case *ast.ExprStmt:
		w.expression(s.X)
	case *ast.SendStmt:
		w.expressions([]ast.Expr{s.Chan, s.Value})
	}
}

func (w *walker) optional(s ast.Stmt, deferred *[]*ast.CallExpr) {
	if s != nil {
		w.statement(s, deferred)
	}
}

func (w *walker) branch(s *ast.IfStmt, deferred *[]*ast.CallExpr) leaving {
	w.optional(s.Init, deferred)
	w.expression(s.Cond)
	switch w.holds(s.Cond) {
	case never:
		if s.Else != nil {
			return w.statement(s.Else, deferred)
		}
		return stays
	case always:
		return w.block(s.Body.List, deferred)
	default: // of an if and its else, the first; an if alone is not taken
		if s.Else == nil {
			return stays
		}
		return w.block(s.Body.List, deferred)
	}
}

// cases walks the first case that may be taken. conditions is true for a switch without a tag, whose cases are conditions.
func (w *walker) cases(body *ast.BlockStmt, conditions bool, deferred *[]*ast.CallExpr) leaving {
	var chosen []ast.Stmt
	for _, s := range body.List {
		switch s := s.(type) {
		case *ast.CommClause:
			w.optional(s.Comm, deferred)
			chosen = s.Body
		case *ast.CaseClause:
			w.expressions(s.List)
			if conditions && !slices.ContainsFunc(s.List, func(e ast.Expr) bool { return w.holds(e) != never }) {
				if s.List == nil {
					chosen = s.Body
				}
				continue
			}
			chosen = s.Body
		}
		break
	}
	if left := w.block(chosen, deferred); left != breaks {
		return left
	}
	return stays
}

// truth is what is known of a condition when no error is one.
type truth int

const (
	unknown truth = iota
	always
	never
)

func (w *walker) holds(cond ast.Expr) truth {
	switch e := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		return negated(w.holds(e.X))
	case *ast.CallExpr:
		if slices.ContainsFunc(e.Args, w.isError) {
			return never
		}
	case *ast.BinaryExpr:
		x, y := w.holds(e.X), w.holds(e.Y)
		switch e.Op {
		case token.LAND:
			return both(x, y)
		case token.LOR:
			return negated(both(negated(x), negated(y)))
		case token.EQL, token.NEQ:
			none := w.info.Types[e.Y].IsNil()
			if !none && !w.isError(e.X) && x != never { // x is never what a call says of an error, such as its code
				return unknown
			}
			if none == (e.Op == token.EQL) {
				return always
			}
			return never
		default:
		}
	}
	return unknown
}

func negated(t truth) truth {
	switch t {
	case always:
		return never
	case never:
		return always
	default:
		return unknown
	}
}

func both(x, y truth) truth {
	switch {
	case x == never || y == never:
		return never
	case x == always && y == always:
		return always
	default:
		return unknown
	}
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

func (w *walker) isError(e ast.Expr) bool {
	t := w.info.TypeOf(e)
	return t != nil && !w.info.Types[e].IsNil() && types.Implements(t, errorType)
}

func (w *walker) assign(names, values []ast.Expr) {
	w.expressions(values)
	for i, name := range names {
		value := values
		if len(values) == len(names) {
			value = values[i : i+1]
			if f := w.functionOf(values[i]); f != nil {
				w.bound[w.objectOf(name)] = f
			}
		}
		if slices.ContainsFunc(value, func(e ast.Expr) bool { return w.carries(e) }) {
			w.derive(name)
		}
	}
}

// derive follows the variable that an expression names, from now on.
func (w *walker) derive(e ast.Expr) {
	if id, ok := e.(*ast.Ident); ok {
		w.followObject(w.objectOf(id))
	}
}

func (w *walker) followObject(o types.Object) {
	if o == nil || types.Implements(o.Type(), errorType) || strings.HasSuffix(o.Type().String(), "context.Context") {
		return
	}
	w.follow[o] = true
}

// carries reports whether an expression names a value that is followed.
func (w *walker) carries(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && w.follow[w.info.ObjectOf(id)] {
			found = true
		}
		return !found
	})
	return found
}

// objectOf returns the variable or the field that an expression names.
func (w *walker) objectOf(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return w.info.ObjectOf(e)
	case *ast.SelectorExpr:
		return w.info.ObjectOf(e.Sel)
	default:
		return nil
	}
}

func (w *walker) expressions(list []ast.Expr) {
	for _, e := range list {
		w.expression(e)
	}
}

// expression walks the calls of an expression, those of its arguments first, and notes the functions that its literals hold.
func (w *walker) expression(e ast.Expr) {
	if e == nil {
		return
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.KeyValueExpr:
			if f := w.functionOf(n.Value); f != nil {
				w.bound[w.objectOf(n.Key)] = f
			}
		case *ast.CallExpr:
			w.call(n)
			return false
		}
		return true
	})
}

func (w *walker) call(c *ast.CallExpr) {
	if selector, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok {
		w.expression(selector.X)
	}
	w.expressions(c.Args)
	if w.info.Types[c.Fun].IsType() {
		return
	}
	f := w.functionOf(c.Fun)
	if f == nil || !w.inScope(f) || f.onlyReturns() {
		f = nil
	} else if o := w.objectOf(c.Fun); w.bound[o] != f && !w.carries(c) {
		return
	}
	var passed []*function
	for _, arg := range c.Args {
		if g := w.functionOf(arg); g != nil && w.carries(arg) {
			passed = append(passed, g)
			g.used = false
		}
	}
	here := c.Pos()
	if f != nil {
		w.pass(c, f)
		w.enter(here)
		w.walk(f)
	}
	for _, g := range passed { // called back by code that is not followed
		if g.used || !w.inScope(g) {
			continue
		}
		if w.carries(c) {
			for _, field := range g.signature.Params.List {
				for _, name := range field.Names {
					w.followObject(g.info.Defs[name])
				}
			}
		}
		w.enter(here)
		w.walk(g)
	}
}

// pass gives the parameters of f what a call gives them.
func (w *walker) pass(c *ast.CallExpr, f *function) {
	if selector, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok && f.recv != nil && w.carries(selector.X) {
		for _, name := range f.recv.List[0].Names {
			w.followObject(f.info.Defs[name])
		}
	}
	var params []*ast.Ident
	for _, field := range f.signature.Params.List {
		if len(field.Names) == 0 {
			params = append(params, nil)
		}
		params = append(params, field.Names...)
	}
	for i, arg := range c.Args {
		if len(params) == 0 {
			return
		}
		param := params[min(i, len(params)-1)]
		if param == nil {
			continue
		}
		if g := w.functionOf(arg); g != nil {
			w.bound[f.info.Defs[param]] = g
		}
		if w.carries(arg) {
			w.followObject(f.info.Defs[param])
		}
	}
}

// inScope reports whether the path goes into a function.
func (w *walker) inScope(f *function) bool {
	folder := w.module.folder(f.body.Pos())
	return !slices.Contains(w.path.without, f.name) &&
		slices.ContainsFunc(w.path.scope, func(s string) bool { return folder == s || strings.HasPrefix(folder, s+"/") })
}

// functionOf returns the function that an expression names, or nil if that is not known.
func (w *walker) functionOf(e ast.Expr) *function {
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		return w.module.literal(e, w.info)
	case *ast.IndexExpr:
		return w.functionOf(e.X)
	case *ast.IndexListExpr:
		return w.functionOf(e.X)
	case *ast.Ident, *ast.SelectorExpr:
		o := w.objectOf(e)
		if f, ok := o.(*types.Func); ok {
			return w.module.declared(f, w.path.ports)
		}
		return w.bound[o]
	}
	return nil
}
