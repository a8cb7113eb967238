package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
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

// Repositories returns the states of the repositories, in the order of the server's configuration.
func (c *Client) Repositories(ctx context.Context) ([]core.RepositoryStatus, error) {
	var body struct {
		Repositories []core.RepositoryStatus `json:"repositories"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/repositories"}, &body)
	return body.Repositories, err
}

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
	for _, id := range slices.Sorted(maps.Keys(body.Catalogs)) {
		catalogue := body.Catalogs[id]
		catalogue.ID = id
		list.Catalogues = append(list.Catalogues, catalogue)
	}
	return list, nil
}

// Catalogue returns the catalogue with an id, or with a document type that only one catalogue has, with its fields; a failed one has a
// Problem instead. CodeNotFound when it does not exist.
func (c *Client) Catalogue(ctx context.Context, id string) (CatalogueDetail, error) {
	if id == pathFilterSchema {
		return CatalogueDetail{}, core.NewError(core.CodeNotFound, "catalogue not found")
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
		return CatalogueDetail{}, core.NewError(core.CodeNotFound, "catalogue not found")
	}
	for _, name := range slices.Sorted(maps.Keys(body.Fields)) {
		field := body.Fields[name]
		detail.Fields = append(detail.Fields, core.CatalogueField{
			Name: name, DisplayName: field.DisplayName, Type: field.Type, Unit: field.Unit, Description: field.Description,
			MultiValued: field.MultiValued,
		})
	}
	return detail, nil
}

// AnalysisType is one version of an analysis type, as returned by the server (CONTRACT section 7).
type AnalysisType struct {
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	// Options are the effective options.
	Options datamodel.AnalysisOptions `json:"options"`
	// Schema is a JSON Schema; nil when it was omitted.
	Schema json.RawMessage `json:"schema"`
	// Versions are all versions of the type, newest first; nil unless the latest version was requested.
	Versions []AnalysisType `json:"versions"`
	// Raw is the type as received; nil in a list.
	Raw json.RawMessage `json:"-"`
}

// AnalysisTypeFilter selects analysis types. The zero value selects the newest of all, with rendered schemas.
type AnalysisTypeFilter struct {
	// Names and Versions filter the list; empty means any.
	Names    []string
	Versions []int
	// Limit bounds the page; 0 is the server's default. Offset is the number of skipped types.
	Limit, Offset int
	// HideSchema omits the schemas; Unrendered returns them as registered.
	HideSchema, Unrendered bool
}

func (f AnalysisTypeFilter) query() url.Values {
	q := queryOf("limit", numberOf(f.Limit), "offset", numberOf(f.Offset),
		"hideSchema", flagOf(f.HideSchema), "unrenderedOnly", flagOf(f.Unrendered))
	for _, name := range f.Names {
		q.Add("names", name)
	}
	for _, version := range f.Versions {
		q.Add("versions", strconv.Itoa(version))
	}
	return q
}

// AnalysisTypePage is one page of analysis types.
type AnalysisTypePage struct {
	Limit  int `json:"limit"`
	Offset int `json:"offset"`
	// Count is the total number.
	Count     int            `json:"count"`
	ResultSet []AnalysisType `json:"resultSet"`
	// Raw is the page as received.
	Raw json.RawMessage `json:"-"`
}

const pathSchemas = "schemas"

// AnalysisTypes lists analysis types, each version separately.
func (c *Client) AnalysisTypes(ctx context.Context, filter AnalysisTypeFilter) (AnalysisTypePage, error) {
	var page AnalysisTypePage
	var err error
	page.Raw, err = c.do(ctx, call{method: http.MethodGet, path: "/" + pathSchemas, query: filter.query()}, &page)
	return page, err
}

// AnalysisType returns one version of an analysis type; version 0 returns the latest, with the list of all versions. unrendered omits
// the base schema. CodeNotFound when it does not exist.
func (c *Client) AnalysisType(ctx context.Context, name string, version int, unrendered bool) (AnalysisType, error) {
	path, err := pathOf(pathSchemas, name)
	if err != nil {
		return AnalysisType{}, err
	}
	query := queryOf("version", numberOf(version), "unrenderedOnly", flagOf(unrendered))
	var t AnalysisType
	t.Raw, err = c.do(ctx, call{method: http.MethodGet, path: path, query: query}, &t)
	return t, err
}

// RegisterAnalysisType registers a new version from the body of a registration, {name, schema, options?}, and returns it rendered.
// CodeInvalid with Violations for an invalid body.
func (c *Client) RegisterAnalysisType(ctx context.Context, body []byte) (AnalysisType, error) {
	var t AnalysisType
	var err error
	t.Raw, err = c.do(ctx, call{method: http.MethodPost, path: "/" + pathSchemas, body: body}, &t)
	return t, err
}

// APIKey is an API key as returned by the server (CONTRACT section 6).
type APIKey struct {
	// ID is public.
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
	// CreatedAt, ExpiresAt and RevokedAt are in UTC; the last two are zero for a key that does not expire or is not revoked.
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	RevokedAt time.Time `json:"revokedAt,omitzero"`
	// Key is the secret text of the key, returned only by CreateKey.
	Key string `json:"key,omitempty"`
	// Raw is the key as received; nil in a list.
	Raw json.RawMessage `json:"-"`
}

// KeyList holds all API keys, newest first.
type KeyList struct {
	Keys []APIKey `json:"keys"`
	// Raw is the list as received.
	Raw json.RawMessage `json:"-"`
}

const pathKeys = "keys"

// Keys lists the API keys, including expired and revoked ones.
func (c *Client) Keys(ctx context.Context) (KeyList, error) {
	var list KeyList
	var err error
	list.Raw, err = c.do(ctx, call{method: http.MethodGet, path: "/" + pathKeys}, &list)
	return list, err
}

// CreateKey creates an API key. A zero expires means never. CodeInvalid for a bad name, scope or time.
func (c *Client) CreateKey(ctx context.Context, name string, scopes []string, expires time.Time) (APIKey, error) {
	body, err := json.Marshal(struct {
		Name      string    `json:"name"`
		Scopes    []string  `json:"scopes"`
		ExpiresAt time.Time `json:"expiresAt,omitzero"`
	}{name, scopes, expires.UTC()})
	if err != nil {
		return APIKey{}, fmt.Errorf("encoding the key: %w", err)
	}
	var key APIKey
	key.Raw, err = c.do(ctx, call{method: http.MethodPost, path: "/" + pathKeys, body: body}, &key)
	return key, err
}

// RevokeKey revokes an API key and returns it; CodeNotFound when it does not exist.
func (c *Client) RevokeKey(ctx context.Context, id string) (APIKey, error) {
	path, err := pathOf(pathKeys, id)
	if err != nil {
		return APIKey{}, err
	}
	var key APIKey
	key.Raw, err = c.do(ctx, call{method: http.MethodDelete, path: path}, &key)
	return key, err
}
