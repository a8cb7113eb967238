package graphql

import (
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/jsontext"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
	"tutti/internal/search/graphql/schema"
)

// selectionSet selects fields from the objects of one type within documents. Members are found in one pass and written in the
// order of the query.
type selectionSet struct {
	fields []selectedField
	// keys are the selected members of the objects. keyIndex maps a key to its index; it is nil for few keys.
	keys     []string
	keyIndex map[string]int
	// lengthBits has a bit for the length of each key modulo 64, to reject most other names early.
	lengthBits uint64
	// longest is the length of the longest key.
	longest int
	// names are the member names of the last objects, learned counts the updates.
	names   atomic.Pointer[memberNames]
	learned atomic.Int64
	// usual is the usual size of a written object.
	usual atomic.Int64
	// fieldsOf are the indices of the fields of each key: a field may be selected under several aliases.
	fieldsOf [][]int
}

// selectedField is one field of a selection set.
type selectedField struct {
	// encodedKey is the response key as JSON, with its colon.
	encodedKey []byte
	key        string
	// name is the field name in the catalogue, "" for none.
	name string
	kind fieldKind
	// keyIndex is the index of the member among the keys.
	keyIndex int
	scalar   scalarKind
	list     bool
	field    *ast.Field
	// selection is set for an object, nested for nested elements.
	selection *selectionSet
	nested    *nestedConnection
}

type fieldKind uint8

const (
	fieldNull fieldKind = iota
	fieldTypename
	fieldID
	fieldScalar
	fieldObject
	fieldNested
)

// ofMember reports whether the field's value is a member of the object.
func (one *selectedField) ofMember() bool { return one.kind >= fieldScalar }

// nestedConnection selects fields of the connection of nested elements, {hits{total edges{…}}}, or of its hits.
type nestedConnection struct {
	fields []connectionField
	// elements is the range of elements for edges.
	elements elements
	// list is set if the selection streams: it selects the list once, with all elements and only their nodes.
	list *elementList
}

type connectionField struct {
	encodedKey []byte
	key        string
	kind       connectionKind
	field      *ast.Field
	hits       *nestedConnection
	edge       *edge
}

type connectionKind uint8

const (
	connectionNull connectionKind = iota
	connectionTypename
	connectionHits
	connectionTotal
	connectionEdges
)

// edge selects fields of an edge.
type edge struct {
	fields []edgeField
}

type edgeField struct {
	encodedKey []byte
	key        string
	kind       edgeKind
	field      *ast.Field
	selection  *selectionSet
}

type edgeKind uint8

const (
	edgeTypename edgeKind = iota
	edgeSearchAfter
	edgeNode
)

// selectionBuilder builds the selection sets of a query, and records the projection they need.
type selectionBuilder struct {
	op     *request.Operation
	schema *schema.Schema
	// projection is nil for JSON that is not from documents.
	projection *projection
	// reject rejects the request for an invalid argument of the field that is being planned.
	reject func(bad *output.Error)
}

// encodedKey returns the response key of a field as JSON, with its colon.
func encodedKey(f *ast.Field) []byte { return append(jsontext.AppendString(nil, f.Alias), ':') }

// manyKeys is the number of keys from which a map is faster than a linear search.
const manyKeys = 8

// selectionSet builds the selection set of a type that schema.Object knows.
func (p selectionBuilder) selectionSet(typeName string, set ast.SelectionSet) *selectionSet {
	s := &selectionSet{}
	object, _ := p.schema.Object(typeName)
	if object == nil {
		object = &schema.Object{}
	}
	for _, f := range p.op.Fields(typeName, set) {
		s.fields = append(s.fields, p.field(s, object, f))
	}
	return s.finish()
}

// finish builds the lookup tables, once all fields are known.
func (s *selectionSet) finish() *selectionSet {
	s.fieldsOf = make([][]int, len(s.keys))
	for i := range s.fields {
		if one := &s.fields[i]; one.ofMember() {
			s.fieldsOf[one.keyIndex] = append(s.fieldsOf[one.keyIndex], i)
		}
	}
	for _, key := range s.keys {
		s.lengthBits |= 1 << (len(key) % 64)
		s.longest = max(s.longest, len(key))
	}
	if len(s.keys) > manyKeys {
		s.keyIndex = make(map[string]int, len(s.keys))
		for i, key := range s.keys {
			s.keyIndex[key] = i
		}
	}
	return s
}

func (p selectionBuilder) field(s *selectionSet, object *schema.Object, f *ast.Field) selectedField {
	wanted := selectedField{encodedKey: encodedKey(f), key: f.Alias, field: f}
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
		wanted.selection = p.container(m.Name, func() *selectionSet { return p.selectionSet(m.Type, f.SelectionSet) })
	case schema.Connection:
		wanted.kind = fieldNested
		p.container(m.Name, func() *selectionSet {
			wanted.nested = p.connection(m, m.Type, f.SelectionSet)
			return nil
		})
	default:
		wanted.kind, wanted.scalar = fieldScalar, scalarOf(m.Type)
		p.projection.add(m.Name)
	}
	return wanted
}

// container builds the selection below a container. If it reads no field, the container itself is read, to see whether it exists.
func (p selectionBuilder) container(name string, do func() *selectionSet) *selectionSet {
	before := p.projection.count()
	s := do()
	if p.projection.count() == before {
		p.projection.add(name)
	}
	return s
}

// addKey returns the index of a key, and adds it if it is new.
func (s *selectionSet) addKey(key string) int {
	for i, k := range s.keys {
		if k == key {
			return i
		}
	}
	s.keys = append(s.keys, key)
	return len(s.keys) - 1
}

func (p selectionBuilder) connection(m schema.Member, typeName string, set ast.SelectionSet) *nestedConnection {
	n := &nestedConnection{}
	for _, f := range p.op.Fields(typeName, set) {
		w := connectionField{encodedKey: encodedKey(f), key: f.Alias, field: f}
		switch f.Name {
		case "__typename":
			w.kind = connectionTypename
		case "hits":
			w.kind, w.hits = connectionHits, p.connection(m, f.Definition.Type.Name(), f.SelectionSet)
			w.hits.elements = p.elements(f)
		case "total":
			w.kind = connectionTotal
		case "edges":
			w.kind, w.edge = connectionEdges, p.edge(m.Node, f)
		}
		n.fields = append(n.fields, w)
	}
	return n.detectList()
}

// edge builds the selection of the edges that a field returns.
func (p selectionBuilder) edge(node string, edges *ast.Field) *edge {
	e := &edge{}
	for _, f := range p.op.Fields(edges.Definition.Type.Name(), edges.SelectionSet) {
		w := edgeField{encodedKey: encodedKey(f), key: f.Alias, field: f}
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
