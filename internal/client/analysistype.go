package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tutti/internal/core"
)

// AnalysisType is one version of an analysis type, as returned by the server (CONTRACT section 7).
type AnalysisType struct {
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	// Options are the effective options.
	Options core.AnalysisOptions `json:"options"`
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

// flagOf returns the query value of a flag, "" for false, the default of every flag.
func flagOf(set bool) string {
	if set {
		return "true"
	}
	return ""
}
