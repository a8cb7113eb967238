package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/search/catalogue/definition"
)

// Mappings returns the mappings of indices, as the port index.Index does. Errors, *core.Error or others, wrap
// core.ErrIndexMissing, core.ErrIndexForbidden or core.ErrIndexUnreachable if they apply.
type Mappings interface {
	Mapping(ctx context.Context, name string) (json.RawMessage, error)
}

// Load reads the mapping of a definition's index and builds the Model. If there is no Model, it returns the problem instead.
func Load(ctx context.Context, d definition.Definition, m Mappings) (*Model, *core.CatalogueProblem) {
	if d.Err != nil {
		return nil, definitionProblem(d)
	}
	raw, err := m.Mapping(ctx, d.Index)
	if err != nil {
		return nil, readingProblem(ctx, err)
	}
	whole, failed := parse(raw)
	if failed != nil {
		return nil, failed
	}
	return build(d, whole)
}

// definitionProblem returns the problem of an invalid definition.
func definitionProblem(d definition.Definition) *core.CatalogueProblem {
	return problem(core.CatalogueSchemaBuild, core.MessageOf(d.Err))
}

// parsedMapping is a mapping and its fields, shared by all catalogues of one index.
type parsedMapping struct {
	tree     *mapping.Field
	fields   *fieldSet
	warnings []string
	// multiValued are the paths that are known to have several values in a document.
	multiValued map[string]bool
}

func parse(raw json.RawMessage) (*parsedMapping, *core.CatalogueProblem) {
	tree, unnamed, err := mapping.ParseForeign(raw)
	if err != nil {
		return nil, problem(core.CatalogueMappingFetch, "the mapping of the index cannot be parsed")
	}
	p := &parsedMapping{tree: tree}
	p.fields, p.warnings = fieldsOf(tree)
	for _, name := range unnamed {
		p.warnings = append(p.warnings, fmt.Sprintf("the field %q is left out: a part of its name is empty", name))
	}
	return p, nil
}

// build builds the Model of a definition and a mapping.
func build(d definition.Definition, p *parsedMapping) (*Model, *core.CatalogueProblem) {
	tree, whole := p.tree, p.fields
	m := &Model{definition: d, tree: tree, root: tree, whole: whole, fields: whole, warnings: slices.Clone(p.warnings)}
	if d.NestingPrefix != "" {
		if fault := prefixError(d.NestingPrefix, whole); fault != "" {
			return nil, problem(core.CatalogueSchemaBuild, fault)
		}
		m.root, m.fields = tree.Lookup(d.NestingPrefix), whole.below(d.NestingPrefix)
	}
	if len(m.fields.names) == 0 && d.NestingPrefix == "" { // below a prefix they appear with the first document
		return nil, problem(core.CatalogueSchemaBuild, "the mapping of the index has no fields to search")
	}
	m.extend()
	access, denied := accessOf(d.Access, whole)
	m.access, m.warnings = access, append(denied, limitWarnings(m.warnings)...)
	m.describe(p.multiValued)
	return m, nil
}

// prefixError returns why a nesting prefix is invalid, "" if it is valid. A document must have one such object: below a nested
// field, the fields of its elements could not be told apart.
func prefixError(prefix string, whole *fieldSet) string {
	f, found := whole.byName[prefix]
	switch {
	case !found:
		return fmt.Sprintf("the mapping of the index has no field %q, which nestingPrefix names", prefix)
	case len(f.Nested) > 0:
		return fmt.Sprintf("the field %q, which nestingPrefix names, is nested and must be an object", prefix)
	case f.Type != string(mapping.Object):
		return fmt.Sprintf("the field %q, which nestingPrefix names, is of type %s and must be an object", prefix, f.Type)
	default:
		return ""
	}
}

// maxWarnings limits the listed warnings about the fields of one catalogue: a configuration may name many fields that the mapping
// does not have yet.
const maxWarnings = 20

// limitWarnings returns the first warnings, and the number of the others.
func limitWarnings(warnings []string) []string {
	if more := len(warnings) - maxWarnings; more > 0 {
		return append(warnings[:maxWarnings:maxWarnings], fmt.Sprintf("%d more warnings are not listed", more))
	}
	return warnings
}

// extend attaches the configuration of extended to its fields. A name may use __ for dots. Of two entries for one field the later
// one applies, whatever their spelling.
func (m *Model) extend() {
	m.extended = make(map[string]definition.ExtendedField, len(m.definition.Extended))
	for _, e := range m.definition.Extended {
		name := e.FieldName
		if _, known := m.fields.byName[name]; !known {
			name = strings.ReplaceAll(name, "__", ".")
		}
		if _, known := m.fields.byName[name]; !known {
			m.warnings = append(m.warnings, fmt.Sprintf("extended describes the field %q, which the mapping lacks", e.FieldName))
			continue
		}
		if _, twice := m.extended[name]; twice {
			m.warnings = append(m.warnings, fmt.Sprintf("extended describes the field %q more than once: the later one applies", name))
		}
		m.extended[name] = e
	}
}

// describe builds the introspection of the catalogue. several are the paths with several values in a document.
func (m *Model) describe(several map[string]bool) {
	fields := make([]core.CatalogueField, len(m.fields.names))
	for i, name := range m.fields.names {
		e := m.extended[name]
		if e.DisplayName == "" {
			e.DisplayName = displayName(name)
		}
		fields[i] = core.CatalogueField{
			Name: name, DisplayName: e.DisplayName, Type: m.fields.byName[name].Type, Unit: e.Unit, Description: e.Description,
			MultiValued: m.fields.byName[name].multiValued(several, m.whole),
		}
	}
	m.catalogue = describeDefinition(m.definition)
	m.catalogue.Fields = fields
}

// describeDefinition returns the introspection of a catalogue from its definition only.
func describeDefinition(d definition.Definition) *core.Catalogue {
	return &core.Catalogue{
		ID: d.ID, DocumentType: d.DocumentType, Description: d.Description, Restricted: d.Access != nil, DefaultAccess: d.DefaultAccess,
	}
}

// failedCatalogue returns the catalogue of a definition that is unavailable.
func failedCatalogue(d definition.Definition, why *core.CatalogueProblem) *core.Catalogue {
	c := describeDefinition(d)
	c.Problem = why
	return c
}
