package client

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"tutti/internal/core"
)

// CatalogueStatus reports whether a catalogue can be used.
type CatalogueStatus string

// Values of CatalogueStatus.
const (
	CatalogueAvailable CatalogueStatus = "available"
	CatalogueFailed    CatalogueStatus = "failed"
)

// Catalogue is one catalogue in a list (CONTRACT section 2).
type Catalogue struct {
	ID           string `json:"-"`
	Description  string `json:"description"`
	DocumentType string `json:"documentType"`
	// Paths are where the server answers for it, base path included.
	Paths  CataloguePaths  `json:"paths"`
	Status CatalogueStatus `json:"status"`
	// Problem says why it failed; nil unless it did.
	Problem *core.CatalogueProblem `json:"error"`
}

// CataloguePaths are the paths of a catalogue.
type CataloguePaths struct {
	GraphQL       string `json:"graphql"`
	Introspection string `json:"introspection"`
	// Fields is "" unless the catalogue is the server's only one.
	Fields string `json:"fields"`
}

// CatalogueList are all catalogues of a server.
type CatalogueList struct {
	// Mode is single or multiple.
	Mode   string
	Status core.CatalogueStatus
	// SQONSchemaPath is where the server describes filters.
	SQONSchemaPath string
	// Catalogues are in the order of their ids.
	Catalogues []Catalogue
	// Raw is the list as it came.
	Raw json.RawMessage
}

// CatalogueDetail is one catalogue with its fields.
type CatalogueDetail struct {
	ID           string
	Description  string
	DocumentType string
	// GeneratedAt is when the server said this; zero for a catalogue that failed, like Restricted, Operators and Fields.
	GeneratedAt time.Time
	// Restricted tells that an access rule narrows what the caller sees.
	Restricted bool
	// Operators are those of each type that a field has.
	Operators map[string][]string
	// Fields are in the order of their names.
	Fields []core.CatalogueField
	// Problem says why the catalogue failed; nil unless it did.
	Problem *core.CatalogueProblem
	// Raw is the catalogue as it came.
	Raw json.RawMessage
}

const (
	pathIntrospection = "introspection"
	// nameOfFilters is what follows pathIntrospection where the server describes filters; no catalogue can be asked for by it.
	nameOfFilters = "sqon"
)

// Catalogues lists the catalogues, those that failed too.
func (c *Client) Catalogues(ctx context.Context) (CatalogueList, error) {
	var body struct {
		Mode           string               `json:"mode"`
		Status         core.CatalogueStatus `json:"status"`
		SQONSchemaPath string               `json:"sqonSchemaPath"`
		Catalogs       map[string]Catalogue `json:"catalogs"`
	}
	raw, err := c.ask(ctx, call{method: http.MethodGet, path: "/" + pathIntrospection}, &body)
	if err != nil {
		return CatalogueList{}, err
	}
	list := CatalogueList{Mode: body.Mode, Status: body.Status, SQONSchemaPath: body.SQONSchemaPath, Raw: raw}
	for id, catalogue := range body.Catalogs {
		catalogue.ID = id
		list.Catalogues = append(list.Catalogues, catalogue)
	}
	slices.SortFunc(list.Catalogues, func(a, b Catalogue) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// Catalogue returns the catalogue of an id, or of a document type that is one catalogue's alone, with its fields; one that
// failed has a Problem instead. CodeNotFound when there is none.
func (c *Client) Catalogue(ctx context.Context, id string) (CatalogueDetail, error) {
	if id == nameOfFilters {
		return CatalogueDetail{}, core.NewError(core.CodeNotFound, "there is no such catalogue")
	}
	path, err := pathOf(pathIntrospection, id)
	if err != nil {
		return CatalogueDetail{}, err
	}
	var body struct {
		CatalogID    string    `json:"catalogId"`
		CatalogueID  string    `json:"catalogueId"`
		Description  string    `json:"description"`
		DocumentType string    `json:"documentType"`
		GeneratedAt  time.Time `json:"generatedAt"`
		Meta         struct {
			AuthFiltered bool `json:"authFiltered"`
		} `json:"meta"`
		Operators map[string][]string `json:"operators"`
		Fields    map[string]struct {
			DisplayName string `json:"displayName"`
			Type        string `json:"type"`
			Unit        string `json:"unit"`
			Description string `json:"description"`
			MultiValued bool   `json:"multiValued"`
		} `json:"fields"`
		Error *core.CatalogueProblem `json:"error"`
	}
	raw, err := c.ask(ctx, call{method: http.MethodGet, path: path}, &body)
	if err != nil {
		return CatalogueDetail{}, err
	}
	detail := CatalogueDetail{
		ID: cmp.Or(body.CatalogID, body.CatalogueID), Description: body.Description, DocumentType: body.DocumentType,
		GeneratedAt: body.GeneratedAt, Restricted: body.Meta.AuthFiltered, Operators: body.Operators, Problem: body.Error, Raw: raw,
	}
	if detail.ID == "" {
		// A path beside the catalogues', such as the description of filters.
		return CatalogueDetail{}, core.NewError(core.CodeNotFound, "there is no such catalogue")
	}
	for name, field := range body.Fields {
		detail.Fields = append(detail.Fields, core.CatalogueField{
			Name: name, DisplayName: field.DisplayName, Type: field.Type, Unit: field.Unit, Description: field.Description,
			MultiValued: field.MultiValued,
		})
	}
	slices.SortFunc(detail.Fields, func(a, b core.CatalogueField) int { return cmp.Compare(a.Name, b.Name) })
	return detail, nil
}
