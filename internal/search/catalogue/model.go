package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/sqon"
	"tutti/internal/index/mapping"
	"tutti/internal/search/catalogue/definition"
)

// Fields are the fields of a catalogue or of a mapping.
type Fields interface {
	sqon.Fields
	sqon.Names
}

var _ Fields = (*Model)(nil)

// Model is a catalogue built from its definition and the mapping of its index: the only source of its fields. It is immutable: a
// changed mapping makes a new Model.
//
// Its names are those that clients use: names below the nesting prefix do not include it. An alias field has the metadata of its
// target.
type Model struct {
	definition definition.Definition
	tree       *mapping.Field
	root       *mapping.Field
	// fields are by client name, whole by the mapping's own name; they are the same without a nesting prefix.
	fields    *fieldSet
	whole     *fieldSet
	extended  map[string]definition.ExtendedField
	access    *Access
	catalogue *core.Catalogue
	warnings  []string
}

// Definition returns the configuration of the catalogue.
func (m *Model) Definition() definition.Definition { return m.definition }

// Catalogue returns the introspection of the catalogue, always the same pointer.
func (m *Model) Catalogue() *core.Catalogue { return m.catalogue }

// Mapping returns the whole mapping of the index, including what is outside the nesting prefix.
func (m *Model) Mapping() *mapping.Field { return m.tree }

// Root returns the mapping object that contains the catalogue's fields: the mapping itself without a nesting prefix.
func (m *Model) Root() *mapping.Field { return m.root }

// Field returns the type of a field and the nested paths above it, for an alias those of its target; false if there is no such
// field.
func (m *Model) Field(name string) (sqon.Field, bool) { return m.fields.Field(name) }

// Names returns the names of all fields in the mapping's order: parents before children, siblings by name.
func (m *Model) Names() iter.Seq[string] { return m.fields.Names() }

// Path returns the engine's path of a field, with the nesting prefix; for an alias, the path of its target. False if there is no
// such field.
func (m *Model) Path(name string) (string, bool) {
	f, found := m.fields.byName[name]
	return f.path, found
}

// Uncounted returns why the field at a path of the engine has no facet and no sort although its type has: the index does not have its values by
// document, with "doc_values": false. "" if it has.
func (m *Model) Uncounted(path string) string {
	f := m.tree.Lookup(path)
	if f == nil { // a runtime field
		return ""
	}
	var stored any = true
	_ = json.Unmarshal(f.Params["doc_values"], &stored) // absent is true
	switch {
	case stored != false && stored != "false":
		return ""
	case miscounted(f.Type):
		return "the index does not have its values by document (doc_values is false, as for every " + string(f.Type) + " field on OpenSearch); map it as keyword"
	default:
		return "the index does not have its values by document (doc_values is false)"
	}
}

// miscounted reports whether OpenSearch counts no values of a type.
func miscounted[T ~string](fieldType T) bool {
	return fieldtype.Of(fieldType).Fault(fieldtype.OpenSearch, fieldtype.Miscounted) != nil
}

// Extended returns the additional configuration of a field; false if there is none.
func (m *Model) Extended(name string) (definition.ExtendedField, bool) {
	extended, found := m.extended[name]
	return extended, found
}

// MappingFields returns the fields of the whole mapping by its own names, which access rules use.
func (m *Model) MappingFields() Fields { return m.whole }

// MappingPath returns the engine's path of a field of the whole mapping, for an alias the path of its target. False if there is
// no such field.
func (m *Model) MappingPath(name string) (string, bool) {
	f, found := m.whole.byName[name]
	return f.path, found
}

// Access returns the effective access rule; nil if there is none, in which case callers that Definition.DefaultAccess allows see
// everything.
func (m *Model) Access() *Access { return m.access }

// Warnings returns the non-fatal mismatches between the definition and the mapping.
func (m *Model) Warnings() []string { return slices.Clone(m.warnings) }

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
		return nil, readingProblem(ctx, d.Index, err)
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
	for _, name := range m.fields.names {
		if f := m.fields.byName[name]; miscounted(f.Type) && m.Uncounted(f.path) != "" {
			warning := fmt.Sprintf("the field %q has no facet and no sort: %s", name, m.Uncounted(f.path))
			if f.Unfound != "" {
				warning += "; filters by its values are refused: " + f.Unfound
			}
			m.warnings = append(m.warnings, warning)
		}
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
	fields, byDefault := make([]core.CatalogueField, len(m.fields.names)), displayNames(m.fields.names)
	for i, name := range m.fields.names {
		e := m.extended[name]
		if e.DisplayName == "" {
			e.DisplayName = byDefault[i]
		}
		if e.Description == "" {
			e.Description = m.fields.byName[name].description()
		}
		e.Description = withLongest(e.Description, m.fields.byName[name].longest())
		fields[i] = core.CatalogueField{
			Name: name, DisplayName: e.DisplayName, Type: m.fields.byName[name].Type, Unit: e.Unit, Description: e.Description,
			MultiValued: m.fields.byName[name].multiValued(several, m.whole), Uncounted: m.Uncounted(m.fields.byName[name].path),
		}
		if format := m.fields.byName[name].Format; format != nil {
			fields[i].Format = format.String()
		}
	}
	m.catalogue = describeDefinition(m.definition)
	m.catalogue.Fields = fields
	if m.catalogue.DataRelease == "" {
		m.catalogue.DataRelease = dataRelease(m.tree)
	}
}

// nameGraphQL adds GraphQL names to the introspection, by the fields' names. It must be called before m is published.
func (m *Model) nameGraphQL(names map[string]core.GraphQLNames) {
	for i := range m.catalogue.Fields {
		if of, odd := names[m.catalogue.Fields[i].Name]; odd {
			m.catalogue.Fields[i].GraphQL = &of
		}
	}
}

// dataRelease returns the dataRelease in the _meta of a mapping, "" for none.
func dataRelease(tree *mapping.Field) string {
	var meta struct {
		DataRelease string `json:"dataRelease"`
	}
	_ = json.Unmarshal(tree.Params["_meta"], &meta) // _meta without such a text names no release
	return meta.DataRelease
}

// describeDefinition returns the introspection of a catalogue from its definition only.
func describeDefinition(d definition.Definition) *core.Catalogue {
	return &core.Catalogue{
		ID: d.ID, DocumentType: d.DocumentType, Description: d.Description, Restricted: d.Access != nil, DefaultAccess: d.DefaultAccess,
		GraphQLIntrospection: d.GraphQLIntrospection, DataRelease: d.DataRelease,
	}
}

// failedCatalogue returns the catalogue of a definition that is unavailable.
func failedCatalogue(d definition.Definition, why *core.CatalogueProblem) *core.Catalogue {
	c := describeDefinition(d)
	c.Problem = why
	return c
}

// problem returns a CatalogueProblem.
func problem(code core.CatalogueCode, message string) *core.CatalogueProblem {
	return &core.CatalogueProblem{Code: code, Message: message}
}

// pendingProblem is the problem of a catalogue whose index has not responded yet.
func pendingProblem() *core.CatalogueProblem {
	return problem(core.CatalogueConnectionError, "the index has not answered yet")
}

// readingProblem returns why the mapping of an index could not be read, without the engine's text; the message of core.CodeConflict is about
// names in the mapping.
func readingProblem(ctx context.Context, name string, err error) *core.CatalogueProblem {
	switch {
	case errors.Is(err, core.ErrIndexMissing):
		return problem(core.CatalogueIndexNotFound, "the index "+name+" does not exist")
	case errors.Is(err, core.ErrIndexForbidden):
		return problem(core.CataloguePermissionDenied, "the index does not let this server read its mapping")
	case errors.Is(err, core.ErrIndexUnreachable), errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		return problem(core.CatalogueConnectionError, "the index does not answer")
	}
	switch core.CodeOf(err) {
	case core.CodeInvalid:
		if refused, is := errors.AsType[*core.Error](err); is && refused.Err != nil {
			break // the engine's rejection, which is not about the name: that is validated before the request
		}
		return problem(core.CatalogueSchemaBuild, "the configured index name of the catalogue is not valid")
	case core.CodeConflict:
		return problem(core.CatalogueSchemaBuild, core.MessageOf(err))
	case core.CodeInternal:
		return problem(core.CatalogueUnknown, "the catalogue could not be loaded")
	default:
	}
	return problem(core.CatalogueMappingFetch, "the mapping of the index could not be read")
}

// conclusive reports whether a problem is a clear response of the engine or a configuration error: an immediate retry would
// return the same, so it applies at once. An alias is swapped atomically, so an index reported as missing is missing.
func conclusive(code core.CatalogueCode) bool {
	switch code {
	case core.CatalogueIndexNotFound, core.CataloguePermissionDenied, core.CatalogueSchemaBuild:
		return true
	default:
		return false
	}
}

// displayNames returns the default display names of the fields of dotted names, in their order: "donor.ageAtDiagnosis" becomes
// "Donor Age At Diagnosis". Names that would be the same are followed by their paths.
func displayNames(names []string) []string {
	words, count := make([]string, len(names)), make(map[string]int, len(names))
	for i, name := range names {
		words[i] = strings.Join(wordsOf(name), " ")
		count[words[i]]++
	}
	for i, name := range names {
		if words[i] == "" {
			words[i] = name
		} else if count[words[i]] > 1 {
			words[i] += " (" + name + ")"
		}
	}
	return words
}

// wordsOf splits a dotted name at dots, underscores, hyphens and spaces, and before a capital that follows a small letter, so that acronyms
// stay together; each word is capitalized.
func wordsOf(name string) []string {
	var words []string
	for _, part := range strings.FieldsFunc(name, isSeparator) {
		start, small := 0, false
		for i, r := range part {
			if small && unicode.IsUpper(r) {
				words = append(words, capitalized(part[start:i]))
				start = i
			}
			small = unicode.IsLower(r)
		}
		words = append(words, capitalized(part[start:]))
	}
	return words
}

func isSeparator(r rune) bool { return r == '.' || r == '_' || r == '-' || unicode.IsSpace(r) }

func capitalized(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToTitle(first)) + word[size:]
}
