package schema

import (
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/catalogue"
)

// Schema is the GraphQL schema of a catalogue. Nothing changes it after Build.
type Schema struct {
	// Text is the schema in GraphQL's own language.
	Text string
	// AST is the same, checked, with the built-in types of introspection.
	AST *ast.Schema
	// Document is the name of the root field that stands for the catalogue, and of its type.
	Document string
	objects  map[string]*Object
	values   map[string]string
}

// Options say what beside its fields a catalogue offers.
type Options struct {
	// Network adds the root field of a federation.
	Network bool
}

// Build makes the schema of a catalogue. Errors are of CodeInvalid and say which name is the matter.
func Build(m *catalogue.Model, o Options) (*Schema, error) { return &Schema{}, nil }

// Object gives what a type whose values come from documents has; false for any other type.
func (s *Schema) Object(typeName string) (*Object, bool) {
	o, ok := s.objects[typeName]
	return o, ok
}

// Aggregated gives the catalogue's name of the field that a field of the type <Document>Aggregations is about.
func (s *Schema) Aggregated(name string) (string, bool) {
	field, ok := s.values[name]
	return field, ok
}

// Object is a type whose values are JSON objects within documents: the node of the catalogue, of a nested connection, or a
// plain object.
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
	// Type is the GraphQL type of the values, without list: a scalar, or the type of an object's or a connection's value.
	Type string
	// List is set for an isArray scalar, and for an object that is.
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
	// Connection: nested elements, given as {total edges{node{…}}}. Type is that of the connection; the node's is Object's.
	Connection
)
