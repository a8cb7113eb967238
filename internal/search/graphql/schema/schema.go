package schema

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
)

// Schema is the GraphQL schema of a catalogue. It is immutable after Build and safe for concurrent use.
type Schema struct {
	// Text is the schema in the GraphQL schema definition language.
	Text string
	// AST is the validated syntax tree with the built-in introspection types. Its directives are only those of the specification
	// of October 2021: skip, include, deprecated and specifiedBy.
	AST *ast.Schema
	// Document is the name of the root field of the catalogue, and of its type. The names of the related types are this with the
	// suffix Connection, Edge, Node or Aggregations.
	Document string
	// Objects are the types whose values come from documents, by type name.
	Objects map[string]*Object
	// Aggregated maps the fields of the types <Document>Aggregations and NodeAggregations to the catalogue's field names, without
	// those that only other nodes have.
	Aggregated map[string]string
}

// OddNames returns the names of those fields of the catalogue, by their dotted names, whose names in the schema do not follow from them.
func (s *Schema) OddNames() map[string]core.GraphQLNames {
	all := make(map[string]core.GraphQLNames, len(s.Aggregated))
	paths := map[string]string{} // of containers
	for _, o := range s.inside(s.Objects[s.Document+nodeSuffix], nil) {
		for leaf, m := range o.Members {
			paths[m.Name] = joined(paths[o.Name], leaf)
			all[m.Name] = core.GraphQLNames{Field: paths[m.Name]}
		}
	}
	for name, field := range s.Aggregated {
		of := all[field]
		of.Aggregation = name
		all[field] = of
	}
	odd := map[string]core.GraphQLNames{}
	for field, names := range all {
		if names.Field != "" && names.Field != field || names.Aggregation != "" && names.Aggregation != strings.ReplaceAll(field, ".", "__") {
			odd[field] = names
		}
	}
	return odd
}

// inside appends an object and those below it to list, each after the one that it is in.
func (s *Schema) inside(o *Object, list []*Object) []*Object {
	list = append(list, o)
	for _, m := range o.Members {
		below := m.Type
		if m.Kind == Connection {
			below = m.Node
		}
		if m.Kind != Scalar {
			list = s.inside(s.Objects[below], list)
		}
	}
	return list
}

// Options are features beside the fields of the catalogue.
type Options struct {
	// Network adds the root field of a federation.
	Network bool
	// Remote are the fields that other nodes of the federation can aggregate: type names by field name, Aggregations or
	// NumericAggregations. Others, and invalid names, are left out; for fields of the catalogue, its own type applies.
	Remote map[string]string
}

// Object is a type whose values are JSON objects within documents: the node of the catalogue, of a nested connection, or a plain
// object. It has only members that documents hold: no aliases, no runtime fields, and nothing below a value.
type Object struct {
	// Name is the dotted name of the container, "" for the document.
	Name string
	// Members are the fields by GraphQL name, without id and score of the document's node.
	Members map[string]Member
}

// Member is a field of an Object.
type Member struct {
	// Key is the member of the JSON object, Name the dotted name in the catalogue.
	Key, Name string
	Kind      MemberKind
	// Type is the GraphQL type of the field, without list: a scalar, a plain object type, or for a nested field the type that has
	// hits. The type of hits has the suffix Connection, unless that name was taken.
	Type string
	// Node is the node type of a Connection, for Object; "" for other kinds.
	Node string
	// List is set for a scalar or an object with isArray, and for nested elements without fields, which are JSON.
	List bool
}

// MemberKind is the form of a Member's values.
type MemberKind uint8

// Kinds of a Member.
const (
	// Scalar: the value, by the rules of its GraphQL type.
	Scalar MemberKind = iota
	// Plain: an object with the members of Object(Type).
	Plain
	// Connection: nested elements, as {hits{total edges{node{…}}}}.
	Connection
)
