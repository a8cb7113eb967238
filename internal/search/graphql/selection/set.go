package selection

import (
	"bytes"
	"slices"
	"sync/atomic"

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
	object, _ := p.Schema.Objects[typeName]
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
	object, known := s.Objects[typeName]
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

// Set selects fields from the objects of one type within documents. Members are found in one pass and written in the
// order of the query.
type Set struct {
	fields []field
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

// field is one field of a selection set.
type field struct {
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
	selection *Set
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
func (one *field) ofMember() bool { return one.kind >= fieldScalar }

// nestedConnection selects fields of the connection of nested elements, {hits{total edges{…}}}, or of its hits.
type nestedConnection struct {
	fields []connectionField
	// elements is the range of elements for edges.
	elements elements
}

type connectionField struct {
	encodedKey []byte
	key        string
	kind       connectionKind
	field      *ast.Field
	hits       *nestedConnection
	edge       *Edge
}

type connectionKind uint8

const (
	connectionNull connectionKind = iota
	connectionTypename
	connectionHits
	connectionTotal
	connectionEdges
)

// Edge selects fields of an edge.
type Edge struct {
	fields []edgeField
}

type edgeField struct {
	encodedKey []byte
	key        string
	kind       edgeKind
	field      *ast.Field
	selection  *Set
}

type edgeKind uint8

const (
	edgeTypename edgeKind = iota
	edgeSearchAfter
	edgeNode
)

// manyKeys is the number of keys from which a map is faster than a linear search.
const manyKeys = 8

// finish builds the lookup tables, once all fields are known.
func (s *Set) finish() *Set {
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

// addKey returns the index of a key, and adds it if it is new.
func (s *Set) addKey(key string) int {
	for i, k := range s.keys {
		if k == key {
			return i
		}
	}
	s.keys = append(s.keys, key)
	return len(s.keys) - 1
}

// Selects reports whether a field is selected at any depth.
func (s *Set) Selects(name string) bool {
	return slices.ContainsFunc(s.fields, func(w field) bool {
		return w.field != nil && w.field.Name == name || w.selection != nil && w.selection.Selects(name)
	})
}

// elements is the range of a document's nested elements to return, in the document's order. The field total counts the elements
// outside of it too.
type elements struct {
	// offset is the number of elements to skip, limit the maximum number to return, -1 for no limit.
	offset, limit int
}

// Limits of memberNames.
const (
	// maxNames is the number of names stored per selection set, maxLearned how often a name is stored: it stops for objects that
	// have nothing in common.
	maxNames   = 256
	maxLearned = 1024
)

// memberNames are the member names of the last objects of a selection set, in order. Documents of an index are similar: comparing
// the next name with the expected one is cheaper than scanning it and looking it up. A memberNames is immutable.
type memberNames struct {
	// encoded are the names as in JSON, with quotes and colon; keyIndices are their indices among the keys, -1 for none.
	encoded    [][]byte
	keyIndices []int
}

// at returns the key index of the nth name and the offset of its value if doc[i] starts with that name; otherwise a value of 0.
func (n *memberNames) at(nth int, doc []byte, i int) (keyIndex, value int) {
	if n == nil || nth >= len(n.encoded) || !bytes.HasPrefix(doc[i:], n.encoded[nth]) {
		return -1, 0
	}
	return n.keyIndices[nth], i + len(n.encoded[nth])
}

// learn stores the nth name of an object. Concurrent updates may be lost.
func (s *Set) learn(nth int, written []byte, keyIndex int) {
	known := s.names.Load()
	if known == nil {
		known = &memberNames{}
	}
	if nth > len(known.encoded) || nth >= maxNames || s.learned.Add(1) > maxLearned {
		return
	}
	now := &memberNames{encoded: slices.Clone(known.encoded), keyIndices: slices.Clone(known.keyIndices)}
	if nth == len(now.encoded) {
		now.encoded, now.keyIndices = append(now.encoded, nil), append(now.keyIndices, 0)
	}
	now.encoded[nth], now.keyIndices[nth] = bytes.Clone(written), keyIndex
	s.names.Store(now)
}

// UsualSize estimates the size of a written document, biased to the recent larger ones.
func (s *Set) UsualSize() int { return int(s.usual.Load()) }

// LearnSize updates the estimate after a document. Concurrent updates may be lost.
func (s *Set) LearnSize(usual, size int) {
	if now := max(size, usual-usual/8); now != usual {
		s.usual.Store(int64(now))
	}
}
