package oracle

import (
	"maps"
	"slices"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest/model"
)

// Oracle evaluates requests by testing every document.
type Oracle struct {
	// Fields are those of the mapping.
	Fields *model.FieldSet
	// Documents are sorted by id.
	Documents []*model.Element
	// Sets are the members of saved sets by id.
	Sets  map[string][]string
	tests map[testKey][]test
	any   map[*sqon.Node]*sqon.Node
	// These are those of the Dialect of internal/tools/searchtest.
	Conflates, ZerosApart, Signed bool
	// ranks are cached.
	ranks map[rankKey]map[*model.Element]int
}

// Read replaces the documents by those of sources, JSON by id. Other JSON than objects is an error.
func (o *Oracle) Read(sources map[string]string) (err error) {
	o.ranks = nil
	o.Documents, err = model.DocumentsOf(o.Fields, sources)
	return err
}

// testKey is a clause and the path of one of its fields.
type testKey struct {
	clause *sqon.Node
	path   string
}

// scope is a row for which a filter is evaluated: the elements bound by enclosing pivots, by path, and the document.
type scope struct {
	document *model.Element
	bound    map[string]*model.Element
}

// of returns the row of a field: the element with the longest bound path that contains the field, or the document.
func (s scope) of(nested []string) *model.Element {
	for _, path := range slices.Backward(nested) {
		if row := s.bound[path]; row != nil {
			return row
		}
	}
	return s.document
}

// with returns the scope with one more bound element.
func (s scope) with(row *model.Element) scope {
	bound := map[string]*model.Element{row.Path: row}
	maps.Copy(bound, s.bound)
	return scope{document: s.document, bound: bound}
}

// Find returns the ids of the documents that match.
func (o *Oracle) Find(f sqon.Filter) []string {
	ids := []string{}
	for _, d := range o.Documents {
		if f.Root == nil || o.holds(f.Root, scope{document: d}) {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// holds reports whether a filter holds in a scope.
func (o *Oracle) holds(n *sqon.Node, at scope) bool {
	if n.Pivot == "" || at.bound[n.Pivot] != nil {
		return o.body(n, at)
	}
	nested := o.Fields.ByName[n.Pivot].Nested
	return slices.ContainsFunc(at.of(nested).At(n.Pivot), func(row *model.Element) bool { return o.body(n, at.with(row)) })
}

// body is holds without the pivot.
func (o *Oracle) body(n *sqon.Node, at scope) bool {
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
func (o *Oracle) clause(n *sqon.Node, name string, at scope) bool {
	f := o.Fields.ByName[name]
	row := at.of(f.Nested)
	if f.Mapped.Container() {
		return o.container(n, f, row)
	}
	rows, tests := row.At(f.Row()), o.testsOf(n, f.Field)
	in := func(rows []*model.Element) bool {
		values := model.ValuesOf(f.Field, rows)
		return slices.ContainsFunc(tests, func(is test) bool { return is(values) })
	}
	switch n.Op {
	case sqon.NotIn:
		return !in(rows)
	case sqon.SomeNotIn:
		return slices.ContainsFunc(rows, func(r *model.Element) bool { return !in([]*model.Element{r}) })
	case sqon.All:
		values := model.ValuesOf(f.Field, rows)
		return !slices.ContainsFunc(tests, func(is test) bool { return !is(values) })
	default:
		return in(rows)
	}
}

// container reports whether a clause holds for a container, which has no values. A nested one exists with an element, an object
// with a value below it.
func (o *Oracle) container(n *sqon.Node, f model.NamedField, row *model.Element) bool {
	exists := func(row *model.Element) bool {
		if f.Mapped.Type == mapping.Nested {
			return len(row.At(f.Path)) > 0
		}
		return slices.ContainsFunc(o.Fields.Leaves(f.Path), func(leaf query.Field) bool {
			return len(model.ValuesOf(leaf, row.At(leaf.Row()))) > 0
		})
	}
	missing := func(v sqon.Value) bool { return v.Kind == sqon.String && v.Text == "__missing__" }
	in := func(row *model.Element) bool { return slices.ContainsFunc(n.Values, missing) && !exists(row) }
	switch n.Op {
	case sqon.In:
		return in(row)
	case sqon.NotIn:
		return !in(row)
	case sqon.SomeNotIn:
		return slices.ContainsFunc(row.At(f.Row()), func(r *model.Element) bool { return !in(r) })
	case sqon.All:
		return !slices.ContainsFunc(n.Values, func(v sqon.Value) bool { return !missing(v) || exists(row) })
	default:
		return false
	}
}

// testsOf returns the cached tests of a clause on a field.
func (o *Oracle) testsOf(n *sqon.Node, f query.Field) []test {
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
