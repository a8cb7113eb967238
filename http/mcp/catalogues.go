package mcp

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/internal/base/isodate"
	"tutti/internal/base/spelling"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/sqon"
)

// maxFields is how many fields get_catalogue_fields lists, maxValues how many values of each.
const maxFields, maxValues = 500, 100

// catalogue returns the available catalogue with an id, or with a document type that it alone has.
func (c *call) catalogue(id string) (*core.Catalogue, error) {
	set := c.ports.Catalogues.Catalogues()
	found := set.ByID(id)
	if matching := set.ByDocumentType(id); found == nil && len(matching) == 1 {
		found = matching[0]
	}
	switch {
	case id == "":
		return nil, &core.Error{Code: core.CodeInvalid, Message: "the argument catalogueId is missing", Hint: "list_catalogues lists the ids"}
	case found == nil:
		e := &core.Error{Code: core.CodeNotFound, Message: fmt.Sprintf("there is no catalogue %.60q", id), Hint: "list_catalogues lists the ids"}
		if near := spelling.Suggest(id, idsOf(set)); near != "" {
			e.Message += fmt.Sprintf("; did you mean %q?", near)
		}
		return nil, e
	case found.Problem != nil:
		return nil, &core.Error{
			Code:    core.CodeUnavailable,
			Message: fmt.Sprintf("the catalogue %q has failed with %s: %s", found.ID, found.Problem.Code, strings.TrimSuffix(found.Problem.Message, ".")),
			Hint:    "use another catalogue, or try again later",
		}
	}
	return found, nil
}

func idsOf(set *core.CatalogueSet) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, one := range set.Catalogues {
			if !yield(one.ID) {
				return
			}
		}
	}
}

type none struct{}

type catalogueBody struct {
	ID           string                 `json:"catalogueId"`
	DocumentType string                 `json:"documentType"`
	Description  string                 `json:"description,omitempty"`
	Status       string                 `json:"status"`
	Error        *core.CatalogueProblem `json:"error,omitempty"`
}

type catalogueList struct {
	Status     core.CatalogueStatus `json:"status"`
	Catalogues []catalogueBody      `json:"catalogues"`
}

func (c *call) listCatalogues(none) (any, error) {
	set := c.ports.Catalogues.Catalogues()
	list := catalogueList{Status: set.Status(), Catalogues: []catalogueBody{}}
	for _, one := range set.Catalogues {
		b := catalogueBody{one.ID, one.DocumentType, one.Description, "available", one.Problem}
		if one.Problem != nil {
			b.Status = "failed"
		}
		list.Catalogues = append(list.Catalogues, b)
	}
	return list, nil
}

type fieldsInput struct {
	CatalogueID string `json:"catalogueId"`
	Contains    string `json:"contains"`
	Values      int    `json:"values"`
}

type fieldBody struct {
	Name        string `json:"fieldName"`
	DisplayName string `json:"displayName"`
	Type        string `json:"type"`
	Unit        string `json:"unit,omitempty"`
	Description string `json:"description,omitempty"`
	MultiValued bool   `json:"multiValued,omitempty"`
	// Pivot is the innermost nested field around this one.
	Pivot string `json:"pivot,omitempty"`
	// Uncounted is why execute_query refuses a facet of the field and a sort by it, empty if it has both.
	Uncounted string `json:"uncounted,omitempty"`
	core.FieldValues
}

type fieldList struct {
	CatalogueID  string `json:"catalogueId"`
	DocumentType string `json:"documentType"`
	Description  string `json:"description,omitempty"`
	// DataRelease names the release of the documents, DataIndexedAt is when the last of them was written.
	DataRelease   string    `json:"dataRelease,omitempty"`
	DataIndexedAt time.Time `json:"dataIndexedAt,omitzero"`
	// ValuesNote says why there are no values, or of how many fields there are none.
	ValuesNote string `json:"valuesNote,omitempty"`
	// Operators are those of each type of a listed field.
	Operators map[string][]string `json:"operators"`
	Fields    []fieldBody         `json:"fields"`
	// Omitted is how many further fields there are.
	Omitted int `json:"omitted,omitempty"`
}

func (c *call) fields(in fieldsInput) (any, error) {
	found, err := c.catalogue(in.CatalogueID)
	if err != nil {
		return nil, err
	}
	if api.HidesDocuments(c.r, found) {
		found = found.WithoutSamples()
	}
	list := fieldList{
		CatalogueID: found.ID, DocumentType: found.DocumentType, Description: found.Description,
		DataRelease: found.DataRelease, DataIndexedAt: c.ports.Data.IndexedAt(found.ID).UTC(),
		Operators: map[string][]string{}, Fields: []fieldBody{},
	}
	known := newFields(found)
	for _, f := range found.Fields {
		switch {
		case !mentions(f, in.Contains):
		case len(list.Fields) == maxFields:
			list.Omitted++
		default:
			list.Operators[f.Type] = sqon.Operators(f.Type)
			list.Fields = append(list.Fields, known.describe(f))
		}
	}
	if in.Values != 0 {
		err = c.addValues(found, in.Values, &list)
	}
	return list, err
}

// addValues adds to the fields of list most values of each as the caller sees them, up to maxResultBytes in all, and a note if some lack.
func (c *call) addValues(of *core.Catalogue, most int, list *fieldList) error {
	if most < 0 || most > maxValues {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("values must be 0 to %d, not %d", maxValues, most))
	}
	if err := api.RequireQuery(c.r, of); err != nil {
		return err
	}
	names := make([]string, len(list.Fields))
	for i := range list.Fields {
		names[i] = list.Fields[i].Name
	}
	caller, _ := api.CallerOf(c.r.Context())
	values, err := c.ports.Data.Values(c.r.Context(), of.ID, caller, names, most)
	if err != nil {
		c.note(err)
		list.ValuesNote = "not counted: " + core.MessageOf(err)
		return nil
	}
	left, room := 0, maxResultBytes
	for i := range list.Fields {
		field := &list.Fields[i]
		field.FieldValues = values[field.Name]
		var text bytes.Buffer
		if err := api.EncodeJSON(&text, field.FieldValues); err != nil {
			return fmt.Errorf("encoding values: %w", err)
		}
		if text.Len() > room {
			left++
			field.FieldValues = core.FieldValues{Note: "left out"}
			continue
		}
		room -= text.Len()
	}
	if left > 0 {
		list.ValuesNote = fmt.Sprintf("the values of %d fields are left out: together they are longer than %d KiB; list fewer fields with contains, or lower values", left, maxResultBytes>>10)
	}
	return nil
}

// mentions reports whether the names or the description of a field contain a text, in any case.
func mentions(f core.CatalogueField, text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{f.Name, f.DisplayName, f.Description}, func(s string) bool { return strings.Contains(strings.ToLower(s), text) })
}

func (c *call) indexStatus(none) (any, error) {
	if err := api.RequireToken(c.r); err != nil {
		return nil, err
	}
	states, err := indexing.VisibleRepositories(c.r, c.ports.Repositories)
	if err != nil {
		return nil, err
	}
	return map[string]any{"repositories": states}, nil
}

// fields are the fields of a catalogue by name.
type fields map[string]sqon.Field

var (
	_ sqon.Fields = fields(nil)
	_ sqon.Names  = fields(nil)
)

func newFields(c *core.Catalogue) fields {
	f := make(fields, len(c.Fields))
	for _, one := range c.Fields {
		f[one.Name] = sqon.Field{Type: one.Type}
		if one.Format != "" {
			f[one.Name] = sqon.Field{Type: one.Type, Format: isodate.NewFormat(one.Format)}
		}
	}
	for name, field := range f {
		for i := range name + "." {
			if i == len(name) || name[i] == '.' {
				if f[name[:i]].Type == "nested" {
					field.Nested = append(field.Nested, name[:i])
				}
			}
		}
		f[name] = field
	}
	return f
}

// describe returns the description of a field.
func (f fields) describe(of core.CatalogueField) fieldBody {
	b := fieldBody{
		Name: of.Name, DisplayName: of.DisplayName, Type: of.Type, Unit: of.Unit, Description: of.Description, MultiValued: of.MultiValued,
		Uncounted: of.Uncounted,
	}
	if b.Uncounted == "" && !fieldtype.Of(of.Type).Countable() {
		b.Uncounted = "values of type " + of.Type + " are not counted"
	}
	for _, around := range f[of.Name].Nested {
		if around != of.Name {
			b.Pivot = around
		}
	}
	return b
}

// Field implements sqon.Fields.
func (f fields) Field(name string) (sqon.Field, bool) {
	field, ok := f[name]
	return field, ok
}

// Names implements sqon.Names.
func (f fields) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range f {
			if !yield(name) {
				return
			}
		}
	}
}
