package graph

import (
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/graph/schema"
)

// shape is what is asked of the objects of one type within documents: their members are found in one pass and written in the
// order of the query.
type shape struct {
	wants []want
	// keys are the members of the objects that are needed, slots where each is among them; slots is nil for a few.
	keys  []string
	slots map[string]int
	// lengths has a bit for the length of each key, modulo 64: most names that are none differ by that.
	lengths uint64
	// longest is the length of the longest key.
	longest int
	// names are those of the members of the last objects, learned counts how often one was noted.
	names   atomic.Pointer[memberNames]
	learned atomic.Int64
	// of are the wants of each key: a field may be asked for under several names.
	of [][]int
}

// want is one field of a shape.
type want struct {
	// head is the response key as it is written, with its colon.
	head []byte
	key  string
	// name is the catalogue's, "" for what no catalogue names.
	name string
	kind wantKind
	// slot is where the member is among the shape's keys.
	slot   int
	scalar scalarKind
	list   bool
	field  *ast.Field
	// shape is that of a plain object, nest that of nested elements.
	shape *shape
	nest  *nest
}

type wantKind uint8

const (
	wantNull wantKind = iota
	wantTypename
	wantID
	wantScalar
	wantPlain
	wantNest
)

// ofMember reports whether a field stands for a member of the object.
func (one *want) ofMember() bool { return one.kind >= wantScalar }

// nest is what is asked of what stands around nested elements: {hits{total edges{…}}}, and of the hits within.
type nest struct {
	wants []nestWant
	// elements are those whose edges are given.
	elements elements
	// list is set where the elements are asked for once, all of them and nothing but what they hold.
	list *nestList
}

type nestWant struct {
	head  []byte
	key   string
	kind  nestKind
	field *ast.Field
	hits  *nest
	edge  *edge
}

type nestKind uint8

const (
	nestNull nestKind = iota
	nestTypename
	nestHits
	nestTotal
	nestEdges
)

// edge is what is asked of an edge.
type edge struct {
	wants []edgeWant
}

type edgeWant struct {
	head  []byte
	key   string
	kind  edgeKind
	field *ast.Field
	shape *shape
}

type edgeKind uint8

const (
	edgeTypename edgeKind = iota
	edgeSearchAfter
	edgeNode
)

// shaping makes the shapes of a query, and notes what of the documents they need.
type shaping struct {
	schema  *schema.Schema
	collect func(typeName string, set ast.SelectionSet) []*ast.Field
	need    *need
	args    func(f *ast.Field) arguments
	refuse  func(bad *fault)
}

// headOf returns the response key of a field as it is written.
func headOf(f *ast.Field) []byte { return append(appendText(nil, f.Alias), ':') }

// manyKeys is from how many members on a map finds one sooner than looking through them.
const manyKeys = 8

// shape makes the shape of a type that schema.Object knows.
func (p shaping) shape(typeName string, set ast.SelectionSet) *shape {
	s := &shape{}
	object, _ := p.schema.Object(typeName)
	if object == nil {
		object = &schema.Object{}
	}
	for _, f := range p.collect(typeName, set) {
		s.wants = append(s.wants, p.want(s, object, f))
	}
	return s.done()
}

// done makes ready a shape all of whose wants are known.
func (s *shape) done() *shape {
	s.of = make([][]int, len(s.keys))
	for i := range s.wants {
		if one := &s.wants[i]; one.ofMember() {
			s.of[one.slot] = append(s.of[one.slot], i)
		}
	}
	for _, key := range s.keys {
		s.lengths |= 1 << (len(key) % 64)
		s.longest = max(s.longest, len(key))
	}
	if len(s.keys) > manyKeys {
		s.slots = make(map[string]int, len(s.keys))
		for i, key := range s.keys {
			s.slots[key] = i
		}
	}
	return s
}

func (p shaping) want(s *shape, object *schema.Object, f *ast.Field) want {
	wanted := want{head: headOf(f), key: f.Alias, field: f}
	if f.Name == "__typename" {
		wanted.kind = wantTypename
		return wanted
	}
	if f.Name == "id" && object.Name == "" {
		wanted.kind = wantID
		return wanted
	}
	m, known := object.Members[f.Name]
	if !known { // score
		return wanted
	}
	wanted.slot, wanted.list, wanted.name = s.slot(m.Key), m.List, m.Name
	switch m.Kind {
	case schema.Plain:
		wanted.kind = wantPlain
		wanted.shape = p.below(m.Name, func() *shape { return p.shape(m.Type, f.SelectionSet) })
	case schema.Connection:
		wanted.kind = wantNest
		p.below(m.Name, func() *shape {
			wanted.nest = p.nest(m, m.Type, f.SelectionSet)
			return nil
		})
	default:
		wanted.kind, wanted.scalar = wantScalar, scalarOf(m.Type)
		p.need.add(m.Name)
	}
	return wanted
}

// below makes what is below a container. One of which nothing is needed but that it is there is needed itself.
func (p shaping) below(name string, do func() *shape) *shape {
	before := p.need.count()
	s := do()
	if p.need.count() == before {
		p.need.add(name)
	}
	return s
}

// slot returns the place of a member among the keys.
func (s *shape) slot(key string) int {
	for i, k := range s.keys {
		if k == key {
			return i
		}
	}
	s.keys = append(s.keys, key)
	return len(s.keys) - 1
}

func (p shaping) nest(m schema.Member, typeName string, set ast.SelectionSet) *nest {
	n := &nest{}
	for _, f := range p.collect(typeName, set) {
		w := nestWant{head: headOf(f), key: f.Alias, field: f}
		switch f.Name {
		case "__typename":
			w.kind = nestTypename
		case "hits":
			w.kind, w.hits = nestHits, p.nest(m, f.Definition.Type.Name(), f.SelectionSet)
			w.hits.elements = p.elements(f)
		case "total":
			w.kind = nestTotal
		case "edges":
			w.kind, w.edge = nestEdges, p.edge(m.Node, f)
		}
		n.wants = append(n.wants, w)
	}
	return n.straightened()
}

// edge makes what is asked of the edges that a field gives.
func (p shaping) edge(node string, edges *ast.Field) *edge {
	e := &edge{}
	for _, f := range p.collect(edges.Definition.Type.Name(), edges.SelectionSet) {
		w := edgeWant{head: headOf(f), key: f.Alias, field: f}
		switch f.Name {
		case "searchAfter":
			w.kind = edgeSearchAfter
		case "node":
			w.kind, w.shape = edgeNode, p.shape(node, f.SelectionSet)
		}
		e.wants = append(e.wants, w)
	}
	return e
}
