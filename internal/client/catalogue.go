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
	// Paths are the catalogue's paths on the server, including the base path.
	Paths  CataloguePaths  `json:"paths"`
	Status CatalogueStatus `json:"status"`
	// Problem is the reason of a failure, otherwise nil.
	Problem *core.CatalogueProblem `json:"error"`
}

// CataloguePaths are the paths of a catalogue.
type CataloguePaths struct {
	GraphQL       string `json:"graphql"`
	Introspection string `json:"introspection"`
	// Fields is "" unless the catalogue is the server's only one.
	Fields string `json:"fields"`
}

// CatalogueList holds all catalogues of a server.
type CatalogueList struct {
	// Mode is single or multiple.
	Mode   string
	Status core.CatalogueStatus
	// SQONSchemaPath is the path of the JSON Schema of filters.
	SQONSchemaPath string
	// Catalogues are sorted by id.
	Catalogues []Catalogue
	// Raw is the list as received.
	Raw json.RawMessage
}

// CatalogueDetail is one catalogue with its fields.
type CatalogueDetail struct {
	ID           string
	Description  string
	DocumentType string
	// GeneratedAt is the time of the response; zero for a failed catalogue, like Restricted, Operators and Fields.
	GeneratedAt time.Time
	// Restricted reports whether an access filter applies to the caller.
	Restricted bool
	// Operators are the operators of each field type.
	Operators map[string][]string
	// Fields are sorted by name.
	Fields []core.CatalogueField
	// Problem is the reason of a failure, otherwise nil.
	Problem *core.CatalogueProblem
	// Raw is the catalogue as received.
	Raw json.RawMessage
}

const (
	pathIntrospection = "introspection"
	// pathFilterSchema follows pathIntrospection in the path of the filters' JSON Schema; it cannot be a catalogue's id.
	pathFilterSchema = "sqon"
)

// Catalogues lists the catalogues, including failed ones.
func (c *Client) Catalogues(ctx context.Context) (CatalogueList, error) {
	var body struct {
		Mode           string               `json:"mode"`
		Status         core.CatalogueStatus `json:"status"`
		SQONSchemaPath string               `json:"sqonSchemaPath"`
		Catalogs       map[string]Catalogue `json:"catalogs"`
	}
	raw, err := c.do(ctx, call{method: http.MethodGet, path: "/" + pathIntrospection}, &body)
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

// Catalogue returns the catalogue with an id, or with a document type that only one catalogue has, with its fields; a failed one has a
// Problem instead. CodeNotFound when it does not exist.
func (c *Client) Catalogue(ctx context.Context, id string) (CatalogueDetail, error) {
	if id == pathFilterSchema {
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
	raw, err := c.do(ctx, call{method: http.MethodGet, path: path}, &body)
	if err != nil {
		return CatalogueDetail{}, err
	}
	detail := CatalogueDetail{
		ID: cmp.Or(body.CatalogID, body.CatalogueID), Description: body.Description, DocumentType: body.DocumentType,
		GeneratedAt: body.GeneratedAt, Restricted: body.Meta.AuthFiltered, Operators: body.Operators, Problem: body.Error, Raw: raw,
	}
	if detail.ID == "" {
		// A path that is not a catalogue's, such as the JSON Schema of filters.
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
