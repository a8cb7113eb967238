package graph

import (
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/graph/schema"
	"tutti/internal/index"
)

// shape is what is asked of the objects of one type within documents: their members are found in one pass and written in the
// order of the query.
type shape struct {
	wants []want
	// keys are the members of the objects that are needed, slots where each is among them; slots is nil for a few.
	keys  []string
	slots map[string]int
}

// want is one field of a shape.
type want struct {
	// head is the response key as it is written, with its colon.
	head []byte
	key  string
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

// nest is what is asked of what stands around nested elements: {hits{total edges{…}}}, and of the hits within.
type nest struct {
	wants []nestWant
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
}

// headOf gives the response key of a field as it is written.
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
	wanted.slot, wanted.list = s.slot(m.Key), m.List
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

// slot gives the place of a member among the keys.
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
		case "total":
			w.kind = nestTotal
		case "edges":
			w.kind, w.edge = nestEdges, p.edge(m.Node, f)
		}
		n.wants = append(n.wants, w)
	}
	return n
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

// scan notes where the members of an object are that a shape needs; they are in w.spans from the place that it gives.
func (w *answer) scan(s *shape, doc []byte, at int) int {
	base := len(w.spans)
	for range s.keys {
		w.spans = append(w.spans, span{})
	}
	if len(s.keys) == 0 {
		return base
	}
	eachMember(doc, at, func(name []byte, escaped bool, v span) bool {
		if escaped {
			name = []byte(decodedName(name))
		}
		if i := s.find(name); i >= 0 {
			w.spans[base+i] = v
		}
		return true
	})
	return base
}

func (s *shape) find(name []byte) int {
	if s.slots != nil {
		if i, found := s.slots[string(name)]; found {
			return i
		}
		return -1
	}
	for i, key := range s.keys {
		if key == string(name) {
			return i
		}
	}
	return -1
}

// shaped writes an object that begins at doc[at]. hit is the document's, nil for objects within one.
func (w *answer) shaped(s *shape, doc []byte, at int, hit *index.Hit) bool {
	start, base := len(w.dst), w.scan(s, doc, at)
	w.dst = append(w.dst, '{')
	for i := range s.wants {
		one := &s.wants[i]
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(w.dst, one.head...)
		w.push(one.key)
		told, filled := w.told(), w.wanted(one, doc, base, hit)
		if !filled && one.field.Definition.Type.NonNull {
			if w.told() == told {
				w.fail(missing(one.field))
			}
			w.pop()
			w.dst, w.spans = w.dst[:start], w.spans[:base]
			return w.null()
		}
		w.pop()
	}
	w.dst, w.spans = append(w.dst, '}'), w.spans[:base]
	return true
}

// wanted writes one field of an object whose members are noted from base on.
func (w *answer) wanted(one *want, doc []byte, base int, hit *index.Hit) bool {
	switch one.kind {
	case wantTypename:
		return w.text(one.field.ObjectDefinition.Name)
	case wantID:
		if hit == nil {
			return w.null()
		}
		return w.text(hit.ID)
	case wantNull:
		return w.null()
	default:
	}
	v := w.spans[base+one.slot]
	if v.end == 0 || doc[v.start] == 'n' {
		return w.null()
	}
	switch {
	case one.kind == wantNest:
		return w.nested(one, doc, v)
	case one.list:
		return w.values(one, doc, v)
	case one.kind == wantScalar && one.scalar == scalarJSON:
		return w.raw(v.of(doc))
	default:
		return w.single(one, doc, v)
	}
}

// single writes the one value that a field without list has in a document.
func (w *answer) single(one *want, doc []byte, v span) bool {
	found, n := v, 1
	if doc[v.start] == '[' {
		n = 0
		eachItem(doc, v, func(item span) bool {
			if doc[item.start] != 'n' {
				found = item
				n++
			}
			return n < 2
		})
	}
	switch n {
	case 0:
		return w.null()
	case 1:
		return w.value(one, doc, found)
	default:
		return w.failed((&fault{
			message: "a document has several values in the field " + one.field.Name + ", which is not configured as a list",
			hint:    "set isArray for the field in extended.json", code: codeInternal,
		}).at(one.field.Position))
	}
}

// values writes the list of the values that a field has in a document; what is no list is the only one.
func (w *answer) values(one *want, doc []byte, v span) bool {
	if one.kind == wantScalar && one.scalar == scalarJSON && doc[v.start] == '[' {
		return w.raw(v.of(doc))
	}
	start, required := len(w.dst), itemRequired(one.field)
	w.dst = append(w.dst, '[')
	i, whole := 0, true
	eachItem(doc, v, func(item span) bool {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.index(i)
		filled := false
		if doc[item.start] == 'n' {
			w.null()
		} else {
			filled = w.value(one, doc, item)
		}
		w.pop()
		i++
		whole = filled || !required
		return whole
	})
	if !whole {
		w.dst = w.dst[:start]
		return w.null()
	}
	w.dst = append(w.dst, ']')
	return true
}

// value writes a value that is neither null nor an array.
func (w *answer) value(one *want, doc []byte, v span) bool {
	if one.kind == wantPlain {
		if doc[v.start] != '{' {
			return w.failed(unfit(one.field, "an object"))
		}
		return w.shaped(one.shape, doc, v.start, nil)
	}
	start := len(w.dst)
	dst, ok := appendScalar(w.dst, one.scalar, v.of(doc))
	w.dst = dst
	if !ok {
		w.dst = w.dst[:start]
		return w.failed(unfit(one.field, scalarWords(one.scalar)))
	}
	return true
}

// unfit is the fault of a document that has something else in a field than its type says.
func unfit(f *ast.Field, wanted string) *fault {
	return (&fault{message: "a document has a value in the field " + f.Name + " that is not " + wanted, code: codeInternal}).at(f.Position)
}
