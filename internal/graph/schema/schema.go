package schema

import "github.com/vektah/gqlparser/v2/ast"

// Schema is the GraphQL schema of a catalogue. Nothing changes it after Build; it may be used concurrently.
type Schema struct {
	// Text is the schema in GraphQL's own language.
	Text string
	// AST is the same, checked, with the built-in types of introspection. Its directives are those of the specification of
	// October 2021 alone: skip, include, deprecated and specifiedBy.
	AST *ast.Schema
	// Document is the name of the root field that stands for the catalogue, and of its type. The names of the types around it
	// are this and Connection, Edge, Node or Aggregations behind it.
	Document string
	// objects are by the names of their types, values the names of fields by those of their aggregations.
	objects map[string]*Object
	values  map[string]string
}

// Options say what beside its fields a catalogue offers.
type Options struct {
	// Network adds the root field of a federation.
	Network bool
	// Remote are the fields that other nodes of the federation can aggregate, by name, with the names of their types:
	// Aggregations or NumericAggregations. What is neither, or no name, is left out; where the catalogue has the field, its own
	// type counts.
	Remote map[string]string
}

// Object returns what a type whose values come from documents has; false for any other type.
func (s *Schema) Object(typeName string) (*Object, bool) {
	o, ok := s.objects[typeName]
	return o, ok
}

// Aggregated returns the catalogue's name of the field that a field of the type <Document>Aggregations is about, and of the
// NodeAggregations of a federation, where those that only other nodes have return false.
func (s *Schema) Aggregated(name string) (string, bool) {
	field, ok := s.values[name]
	return field, ok
}

// Object is a type whose values are JSON objects within documents: the node of the catalogue, of a nested connection, or a
// plain object. It has no members for what documents do not hold: aliases, runtime fields, and what is below a value.
type Object struct {
	// Name is the catalogue's dotted name of the container, "" for the document.
	Name string
	// Members are the fields by their GraphQL names; id and score of the document's node are not among them.
	Members map[string]Member
}

// Member is a field of an Object.
type Member struct {
	// Key is the member of the JSON object, Name the catalogue's dotted name.
	Key, Name string
	Kind      MemberKind
	// Type is the GraphQL type of the field, without list: a scalar, that of a plain object, or of a nested field, which is
	// what has hits. That of hits is the same with Connection behind it, unless that name was taken.
	Type string
	// Node is the type of the nodes of a Connection, which Object gives; "" for other kinds.
	Node string
	// List is set for an isArray scalar, for an object that is, and for nested elements without fields, which are JSON.
	List bool
}

// MemberKind is how a Member is given.
type MemberKind uint8

// Kinds of a Member.
const (
	// Scalar: the value itself, by the rules of its GraphQL type.
	Scalar MemberKind = iota
	// Plain: an object, whose members are those of Object(Type).
	Plain
	// Connection: nested elements, given as {hits{total edges{node{…}}}}.
	Connection
)
