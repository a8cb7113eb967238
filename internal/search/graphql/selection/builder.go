package selection

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
	"tutti/internal/search/graphql/schema"
)

// Builder builds the selection sets of a query, and records the projection they need.
type Builder struct {
	Op     *request.Operation
	Schema *schema.Schema
	// Projection is nil for JSON that is not from documents.
	Projection *Projection
	// Reject rejects the request for an invalid argument of the field that is being planned.
	Reject func(bad *output.Error)
}

// selectionSet builds the selection set of a type that schema.Object knows.
func (p Builder) selectionSet(typeName string, set ast.SelectionSet) *Set {
	s := &Set{}
	object, _ := p.Schema.Object(typeName)
	if object == nil {
		object = &schema.Object{}
	}
	for _, f := range p.Op.Fields(typeName, set) {
		s.fields = append(s.fields, p.field(s, object, f))
	}
	return s.finish()
}

func (p Builder) field(s *Set, object *schema.Object, f *ast.Field) field {
	wanted := field{encodedKey: output.Key(f), key: f.Alias, field: f}
	if f.Name == "__typename" {
		wanted.kind = fieldTypename
		return wanted
	}
	if f.Name == "id" && object.Name == "" {
		wanted.kind = fieldID
		return wanted
	}
	m, known := object.Members[f.Name]
	if !known { // score
		return wanted
	}
	wanted.keyIndex, wanted.list, wanted.name = s.addKey(m.Key), m.List, m.Name
	switch m.Kind {
	case schema.Plain:
		wanted.kind = fieldObject
		wanted.selection = p.container(m.Name, func() *Set { return p.selectionSet(m.Type, f.SelectionSet) })
	case schema.Connection:
		wanted.kind = fieldNested
		p.container(m.Name, func() *Set {
			wanted.nested = p.connection(m, m.Type, f.SelectionSet)
			return nil
		})
	default:
		wanted.kind, wanted.scalar = fieldScalar, scalarOf(m.Type)
		p.Projection.add(m.Name)
	}
	return wanted
}

// container builds the selection below a container. If it reads no field, the container itself is read, to see whether it exists.
func (p Builder) container(name string, do func() *Set) *Set {
	before := p.Projection.count()
	s := do()
	if p.Projection.count() == before {
		p.Projection.add(name)
	}
	return s
}

func (p Builder) connection(m schema.Member, typeName string, set ast.SelectionSet) *nestedConnection {
	n := &nestedConnection{}
	for _, f := range p.Op.Fields(typeName, set) {
		w := connectionField{encodedKey: output.Key(f), key: f.Alias, field: f}
		switch f.Name {
		case "__typename":
			w.kind = connectionTypename
		case "hits":
			w.kind, w.hits = connectionHits, p.connection(m, f.Definition.Type.Name(), f.SelectionSet)
			w.hits.elements = p.elements(f)
		case "total":
			w.kind = connectionTotal
		case "edges":
			w.kind, w.edge = connectionEdges, p.Edge(m.Node, f)
		}
		n.fields = append(n.fields, w)
	}
	return n
}

// Edge builds the selection of the edges that a field returns.
func (p Builder) Edge(node string, edges *ast.Field) *Edge {
	e := &Edge{}
	for _, f := range p.Op.Fields(edges.Definition.Type.Name(), edges.SelectionSet) {
		w := edgeField{encodedKey: output.Key(f), key: f.Alias, field: f}
		switch f.Name {
		case "searchAfter":
			w.kind = edgeSearchAfter
		case "node":
			w.kind, w.selection = edgeNode, p.selectionSet(node, f.SelectionSet)
		}
		e.fields = append(e.fields, w)
	}
	return e
}

// elements reads the arguments of the hits of a nested field.
func (p Builder) elements(hits *ast.Field) elements {
	e := elements{limit: -1}
	args := p.Op.Arguments(hits)
	if e.offset = args.Int("offset", 0); e.offset < 0 {
		args.Reject("offset", "is negative")
	}
	if args.Value("first").Exists() {
		if e.limit = args.Int("first", 0); e.limit < 0 {
			args.Reject("first", "is negative")
		}
	}
	if bad := args.Err(); bad != nil {
		p.Reject(bad)
	}
	return e
}

// Member returns the selection of one member, by the name of a field.
func (p Builder) Member(f *ast.Field) *Set {
	s := &Set{}
	s.fields = append(s.fields, p.plainField(s, f))
	return s.finish()
}

// Plain returns the selection of JSON objects whose member names are the field names of their type.
func (p Builder) Plain(typeName string, set ast.SelectionSet) *Set {
	s := &Set{}
	for _, f := range p.Op.Fields(typeName, set) {
		s.fields = append(s.fields, p.plainField(s, f))
	}
	return s.finish()
}

func (p Builder) plainField(s *Set, f *ast.Field) field {
	w := field{encodedKey: output.Key(f), key: f.Alias, field: f}
	if f.Name == "__typename" {
		w.kind = fieldTypename
		return w
	}
	of := f.Definition.Type.Name()
	w.keyIndex, w.list = s.addKey(f.Name), f.Definition.Type.Elem != nil
	if def := p.Schema.AST.Types[of]; def != nil && def.Kind == ast.Object {
		w.kind, w.selection = fieldObject, p.Plain(of, f.SelectionSet)
		return w
	}
	w.kind, w.scalar = fieldScalar, scalarOf(of)
	return w
}

// Projection is the set of source fields that a query reads.
type Projection struct {
	model *catalogue.Model
	// seen is built when there is a second field to compare.
	seen map[string]bool
	// names are field names of the catalogue, paths their paths in the mapping.
	names, paths []string
}

// NewProjection returns an empty projection.
func NewProjection(m *catalogue.Model) *Projection { return &Projection{model: m} }

// add adds a field by name.
func (n *Projection) add(name string) {
	if n.seen == nil {
		n.seen = make(map[string]bool, len(n.names)+1)
		for _, known := range n.names {
			n.seen[known] = true
		}
	}
	if n.seen[name] {
		return
	}
	n.seen[name] = true
	path, known := n.model.Path(name)
	if !known {
		path = name
	}
	n.names, n.paths = append(n.names, name), append(n.paths, path)
}

// Join adds the fields of another projection.
func (n *Projection) Join(other *Projection) {
	if len(n.names) == 0 { // the usual case: one projection only
		n.names, n.paths = slices.Clip(other.names), slices.Clip(other.paths)
		return
	}
	for _, name := range other.names {
		n.add(name)
	}
}

func (n *Projection) count() int { return len(n.paths) }

// wholeDocumentShare is the share of a document's values from which on the whole document is cheaper than its parts.
const wholeDocumentShare = 0.6

// Source returns the source filter for the index. If the query reads most of a document, it requests the whole: an engine returns
// that without parsing it.
func (n *Projection) Source(leaves int) index.Source {
	switch {
	case len(n.paths) == 0:
		return index.Source{None: true}
	case float64(len(n.paths)) > wholeDocumentShare*float64(leaves):
		return index.Source{}
	default:
		return index.Source{Paths: n.paths}
	}
}

// CountLeaves counts the values below a type that schema.Object knows.
func CountLeaves(s *schema.Schema, typeName string) int {
	object, known := s.Object(typeName)
	if !known {
		return 0
	}
	n := 0
	for _, m := range object.Members {
		switch m.Kind {
		case schema.Plain:
			n += CountLeaves(s, m.Type)
		case schema.Connection:
			n += CountLeaves(s, m.Node)
		default:
			n++
		}
	}
	return n
}
