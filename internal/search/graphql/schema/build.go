package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	"tutti/internal/core"
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
		schema: &Schema{Document: document, objects: map[string]*Object{}, values: map[string]string{}},
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
