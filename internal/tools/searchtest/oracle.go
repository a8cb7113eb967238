package searchtest

import (
	"maps"
	"slices"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index/mapping"
)

// oracle evaluates requests by testing every document.
type oracle struct {
	fields *fieldSet
	// documents are sorted by id.
	documents []*element
	// sets are the members of saved sets by id.
	sets  map[string][]string
	tests map[testKey][]test
	any   map[*sqon.Node]*sqon.Node
}

// testKey is a clause and the path of one of its fields.
type testKey struct {
	clause *sqon.Node
	path   string
}

// scope is a row for which a filter is evaluated: the elements bound by enclosing pivots, by path, and the document.
type scope struct {
	document *element
	bound    map[string]*element
}

// of returns the row of a field: the element with the longest bound path that contains the field, or the document.
func (s scope) of(nested []string) *element {
	for _, path := range slices.Backward(nested) {
		if row := s.bound[path]; row != nil {
			return row
		}
	}
	return s.document
}

// with returns the scope with one more bound element.
func (s scope) with(row *element) scope {
	bound := map[string]*element{row.path: row}
	maps.Copy(bound, s.bound)
	return scope{document: s.document, bound: bound}
}

// find returns the ids of the documents that match.
func (o *oracle) find(f sqon.Filter) []string {
	ids := []string{}
	for _, d := range o.documents {
		if f.Root == nil || o.holds(f.Root, scope{document: d}) {
			ids = append(ids, d.id)
		}
	}
	return ids
}

// holds reports whether a filter holds in a scope.
func (o *oracle) holds(n *sqon.Node, at scope) bool {
	if n.Pivot == "" || at.bound[n.Pivot] != nil {
		return o.body(n, at)
	}
	nested := o.fields.byName[n.Pivot].Nested
	return slices.ContainsFunc(at.of(nested).at(n.Pivot), func(row *element) bool { return o.body(n, at.with(row)) })
}

// body is holds without the pivot.
func (o *oracle) body(n *sqon.Node, at scope) bool {
	one := func(want bool) bool {
		return slices.ContainsFunc(n.Content, func(member *sqon.Node) bool { return o.holds(member, at) == want })
	}
	switch n.Op {
	case sqon.And:
		return !one(false)
	case sqon.Or:
		return one(true)
	case sqon.Not:
		return !one(true)
	default:
		return slices.ContainsFunc(n.Fields, func(name string) bool { return o.clause(n, name, at) })
	}
}

// clause reports whether a clause holds for one of its fields.
func (o *oracle) clause(n *sqon.Node, name string, at scope) bool {
	f := o.fields.byName[name]
	row := at.of(f.Nested)
	if f.mapped.Container() {
		return o.container(n, f, row)
	}
	rows, tests := row.at(f.Row()), o.testsOf(n, f.Field)
	in := func(rows []*element) bool {
		values := valuesOf(f.Field, rows)
		return slices.ContainsFunc(tests, func(is test) bool { return is(values) })
	}
	switch n.Op {
	case sqon.NotIn:
		return !in(rows)
	case sqon.SomeNotIn:
		return slices.ContainsFunc(rows, func(r *element) bool { return !in([]*element{r}) })
	case sqon.All:
		values := valuesOf(f.Field, rows)
		return !slices.ContainsFunc(tests, func(is test) bool { return !is(values) })
	default:
		return in(rows)
	}
}

// container reports whether a clause holds for a container, which has no values. A nested one exists with an element, an object
// with a value below it.
func (o *oracle) container(n *sqon.Node, f namedField, row *element) bool {
	exists := func(row *element) bool {
		if f.mapped.Type == mapping.Nested {
			return len(row.at(f.Path)) > 0
		}
		return slices.ContainsFunc(o.fields.Leaves(f.Path), func(leaf query.Field) bool {
			return len(valuesOf(leaf, row.at(leaf.Row()))) > 0
		})
	}
	missing := func(v sqon.Value) bool { return v.Kind == sqon.String && v.Text == "__missing__" }
	in := func(row *element) bool { return slices.ContainsFunc(n.Values, missing) && !exists(row) }
	switch n.Op {
	case sqon.In:
		return in(row)
	case sqon.NotIn:
		return !in(row)
	case sqon.SomeNotIn:
		return slices.ContainsFunc(row.at(f.Row()), func(r *element) bool { return !in(r) })
	case sqon.All:
		return !slices.ContainsFunc(n.Values, func(v sqon.Value) bool { return !missing(v) || exists(row) })
	default:
		return false
	}
}

// testsOf returns the cached tests of a clause on a field.
func (o *oracle) testsOf(n *sqon.Node, f query.Field) []test {
	at := testKey{n, f.Path}
	tests, made := o.tests[at]
	if !made {
		tests = o.testsOfValues(n, f)
		if o.tests == nil {
			o.tests = map[testKey][]test{}
		}
		o.tests[at] = tests
	}
	return tests
}
