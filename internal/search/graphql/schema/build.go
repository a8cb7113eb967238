package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/search/catalogue"
)

// builder builds the text of one schema, and the mapping from its fields to documents.
type builder struct {
	model   *catalogue.Model
	options Options
	schema  *Schema
	types   names
	out     strings.Builder
}

// Build returns the schema of a catalogue. Errors are of CodeInvalid and explain which documentType is invalid: one that is not a
// GraphQL name, or that every schema uses for something else. Mapping fields never cause an error.
func Build(m *catalogue.Model, o Options) (*Schema, error) {
	documentType := m.Definition().DocumentType
	document := graphQLName(documentType)
	fixed := fixedNames()
	if err := checkDocument(documentType, document, fixed); err != nil {
		return nil, err
	}
	b := &builder{
		model: m, options: o, types: newNames(fixed...),
		schema: &Schema{Document: document, Objects: map[string]*Object{}, Aggregated: map[string]string{}},
	}
	for _, name := range documentTypeNames(document) {
		b.types.claim(name)
	}
	fields := b.aggregations()
	b.root()
	b.document(len(fields) > 0)
	b.objects()
	b.aggregationTypes(fields)
	b.out.WriteString(fixedTypes)
	return b.finish()
}

// finish parses and validates the text.
func (b *builder) finish() (*Schema, error) {
	s := b.schema
	s.Text = b.out.String()
	tree, err := validator.LoadSchema(validator.Prelude, &ast.Source{Name: "catalogue", Input: s.Text})
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the GraphQL schema of the catalogue is not valid", err)
	}
	// Directives of later drafts, which are not implemented here, would be accepted and ignored.
	delete(tree.Directives, "defer")
	delete(tree.Directives, "oneOf")
	if deprecated := tree.Directives["deprecated"]; deprecated != nil {
		deprecated.Locations = slices.DeleteFunc(deprecated.Locations, func(l ast.DirectiveLocation) bool {
			return l == ast.LocationDirectiveDefinition
		})
	}
	s.AST = tree
	return s, nil
}

// Suffixes of the document's types.
const (
	connectionSuffix   = "Connection"
	edgeSuffix         = "Edge"
	nodeSuffix         = "Node"
	aggregationsSuffix = "Aggregations"
)

// documentTypeNames returns the names of a document's types: a schema has all of them or none.
func documentTypeNames(name string) []string {
	return []string{name, name + connectionSuffix, name + edgeSuffix, name + nodeSuffix, name + aggregationsSuffix}
}

// checkDocument rejects document types whose names are reserved.
func checkDocument(documentType, name string, fixed []string) error {
	why := ""
	switch {
	case documentType == "":
		return core.NewError(core.CodeInvalid, "the catalogue has no documentType")
	case strings.HasPrefix(name, "__"):
		why = "it would begin with __ in GraphQL, which reserves such names"
	case slices.Contains([]string{"sets", "network"}, name):
		why = "it is a reserved field of every GraphQL endpoint"
	case slices.Contains([]string{"true", "false", "null"}, name):
		why = "it is a reserved word in GraphQL"
	default:
		for _, wanted := range documentTypeNames(name) {
			if slices.Contains(fixed, wanted) {
				why = "the type " + wanted + " is reserved"
				break
			}
		}
	}
	if why == "" {
		return nil
	}
	return core.NewError(core.CodeInvalid, fmt.Sprintf("the documentType %q cannot be used: %s; choose another name", documentType, why))
}

// describe writes the description of a field: the configured one, or the dotted name if the GraphQL name does not show it.
func describe(out *strings.Builder, description, name string, seen bool) {
	if description == "" && !seen {
		description = "The field " + name + "."
	}
	if description != "" {
		out.WriteString("  ")
		quote(out, description)
		out.WriteByte('\n')
	}
}

// quote writes a GraphQL string. Invalid UTF-8 becomes U+FFFD.
func quote(out *strings.Builder, text string) {
	out.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError:
			_, _ = fmt.Fprintf(out, `\u%04X`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
}

// root writes the schema definition and the root type.
func (b *builder) root() {
	document := b.schema.Document
	b.out.WriteString("schema {\n  query: Root\n  mutation: Mutation\n}\n\ntype Root {\n  " + document + ": " + document + "\n  sets: sets\n")
	if b.options.Network {
		b.out.WriteString(networkField)
	}
	if document != "hasValidConfig" {
		b.out.WriteString(validField)
	}
	b.out.WriteString("}\n\nenum DocumentType {\n  " + document + "\n  sets\n}\n\n")
}

// document writes the types around the nodes of the catalogue.
func (b *builder) document(aggregated bool) {
	name := b.schema.Document
	b.out.WriteString("type " + name + " {\n" + documentHits + name + connectionSuffix + "\n")
	if aggregated {
		b.out.WriteString(documentAggregations + name + aggregationsSuffix + "\n")
	}
	b.out.WriteString(documentRest + "}\n\n")
	connectionTypes(&b.out, name+connectionSuffix, name+edgeSuffix, name+nodeSuffix)
}

// typeAlias is the type of a field that refers to another one and is in no document.
const typeAlias mapping.Type = "alias"

// container is a container whose type has not been written yet.
type container struct {
	// name is its dotted name, "" for the document.
	name  string
	field *mapping.Field
	// typeName is the type that has its members, base the prefix of the type names below it.
	typeName, base string
}

// objects writes the types of everything in documents. Type names are assigned from the outside in, so that deep types never take
// the name of one above them.
func (b *builder) objects() {
	document := b.schema.Document
	places := []container{{field: b.model.Root(), typeName: document + nodeSuffix, base: document}}
	for len(places) > 0 {
		places = append(places[1:], b.object(places[0])...)
	}
}

// object writes the type of a container, and returns the containers below it.
func (b *builder) object(p container) []container {
	keys := shownKeys(p.field)
	taken, head := []string(nil), "type "+p.typeName+" {\n"
	if p.name == "" {
		taken, head = []string{"id", "score"}, "type "+p.typeName+" implements Node {\n  id: ID!\n  score: Int\n"
	}
	leaves := newNames(taken...).claimAll(keys, fieldName, rankChange)
	o := &Object{Name: p.name, Members: make(map[string]Member, len(keys))}
	b.schema.Objects[p.typeName] = o
	var below []container
	var connections strings.Builder
	b.out.WriteString(head)
	for i, key := range keys {
		m := Member{Key: key, Name: joined(p.name, key)}
		child := p.field.Properties[key]
		extended, _ := b.model.Extended(m.Name)
		isArray := extended.IsArray != nil && *extended.IsArray
		switch {
		case child.Type == mapping.Nested && len(shownKeys(child)) > 0:
			m.Kind, m.Type = Connection, b.types.claim(typeName(p.base, leaves[i]))
			m.Node = b.connection(&connections, m.Type)
			below = append(below, container{m.Name, child, m.Node, m.Type})
		case child.Container() && len(shownKeys(child)) > 0:
			m.Kind, m.Type, m.List = Plain, b.types.claim(typeName(p.base, leaves[i])), isArray
			below = append(below, container{m.Name, child, m.Type, m.Type})
		default: // a container without members is the JSON value
			m.Kind, m.Type, m.List = Scalar, scalarOf(string(child.Type)), isArray || child.Type == mapping.Nested
		}
		o.Members[leaves[i]] = m
		describe(&b.out, extended.Description, key, key == leaves[i])
		b.out.WriteString("  " + leaves[i] + ": " + typeText(m) + "\n")
	}
	b.out.WriteString("}\n\n")
	b.out.WriteString(connections.String())
	return below
}

// connection writes the types between a nested field and its elements, and returns the type of the elements.
func (b *builder) connection(out *strings.Builder, name string) (node string) {
	connection, edge := b.types.claim(name+connectionSuffix), b.types.claim(name+edgeSuffix)
	node = b.types.claim(name + nodeSuffix)
	out.WriteString("type " + name + " {\n" + nestedHits + connection + "\n}\n\n")
	connectionTypes(out, connection, edge, node)
	return node
}

// connectionTypes writes the types of a connection and its edges.
func connectionTypes(out *strings.Builder, connection, edge, node string) {
	out.WriteString("type " + connection + " {\n  total: Int!\n  edges: [" + edge + "]\n}\n\n")
	out.WriteString("type " + edge + " {\n  searchAfter: JSON\n  node: " + node + "\n}\n\n")
}

// shownKeys returns the names of the members of a container that are in documents, sorted.
func shownKeys(f *mapping.Field) []string {
	keys := slices.Sorted(maps.Keys(f.Properties))
	return slices.DeleteFunc(keys, func(key string) bool { return f.Properties[key].Type == typeAlias })
}

func typeText(m Member) string {
	if m.List {
		return "[" + m.Type + "]"
	}
	return m.Type
}

func joined(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// aggregation is a field of the document's aggregations.
type aggregation struct {
	// name is the GraphQL name, field the dotted name in the catalogue, "" for a field that only other nodes have.
	name, field string
	// of is the GraphQL type.
	of string
}

// aggregations returns the fields that can be aggregated, including aliases, runtime fields and multi-fields with their full
// paths.
func (b *builder) aggregations() []aggregation {
	var fields, types []string
	for name := range b.model.Names() {
		f, _ := b.model.Field(name)
		if of := aggregationsOf(f.Type); of != "" {
			fields, types = append(fields, name), append(types, of)
		}
	}
	out := make([]aggregation, len(fields))
	for i, name := range newNames().claimAll(fields, aggregationName, rankPathChange) {
		out[i] = aggregation{name, fields[i], types[i]}
		b.schema.Aggregated[name] = fields[i]
	}
	return out
}

// aggregationTypes writes the aggregation types of the document, and of a federation. A GraphQL type needs fields: without any
// there is no type.
func (b *builder) aggregationTypes(fields []aggregation) {
	b.aggregationType(b.schema.Document+aggregationsSuffix, fields)
	if !b.options.Network {
		return
	}
	fields = append(fields, b.remote()...)
	b.aggregationType(nodeAggregations, fields)
	b.out.WriteString("type Network {\n  nodes: [NetworkNode]\n")
	if len(fields) > 0 {
		b.out.WriteString("  aggregations: " + nodeAggregations + "\n")
	}
	b.out.WriteString("}\n\n" + networkNode)
}

func (b *builder) aggregationType(name string, fields []aggregation) {
	if len(fields) == 0 {
		return
	}
	b.out.WriteString("type " + name + " {\n")
	for _, f := range fields {
		if f.field != "" {
			extended, _ := b.model.Extended(f.field)
			describe(&b.out, extended.Description, f.field, strings.ReplaceAll(f.field, ".", "__") == f.name)
		}
		b.out.WriteString("  " + f.name + ": " + f.of + "\n")
	}
	b.out.WriteString("}\n\n")
}

// remote returns the fields that only other nodes can aggregate, by name. Names from other nodes may be invalid GraphQL; those
// are left out.
func (b *builder) remote() []aggregation {
	var out []aggregation
	for _, name := range slices.Sorted(maps.Keys(b.options.Remote)) {
		of := b.options.Remote[name]
		_, own := b.schema.Aggregated[name]
		if own || !IsName(name) || of != termsAggregations && of != numericAggregations {
			continue
		}
		out = append(out, aggregation{name: name, of: of})
	}
	return out
}
