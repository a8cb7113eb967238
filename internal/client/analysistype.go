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

// AnalysisType is one version of an analysis type, as the server shows it (CONTRACT section 7).
type AnalysisType struct {
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	// Options are the effective ones.
	Options core.AnalysisOptions `json:"options"`
	// Schema is a JSON Schema; nil where it was left out.
	Schema json.RawMessage `json:"schema"`
	// Versions are all of the type's, the newest first; nil unless the latest was asked for.
	Versions []AnalysisType `json:"versions"`
	// Raw is the type as it came; nil in a list.
	Raw json.RawMessage `json:"-"`
}

// AnalysisTypeFilter chooses analysis types. The zero value is the newest of all, with their schemas rendered.
type AnalysisTypeFilter struct {
	// Names and Versions narrow the list; none means any.
	Names    []string
	Versions []int
	// Limit is the most that are given; 0 leaves it to the server. Offset is how many are left out before.
	Limit, Offset int
	// HideSchema leaves the schemas out; Unrendered gives them as they were registered.
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
	// Count is how many there are in all.
	Count     int            `json:"count"`
	ResultSet []AnalysisType `json:"resultSet"`
	// Raw is the page as it came.
	Raw json.RawMessage `json:"-"`
}

const pathSchemas = "schemas"

// AnalysisTypes lists analysis types, each version by itself.
func (c *Client) AnalysisTypes(ctx context.Context, filter AnalysisTypeFilter) (AnalysisTypePage, error) {
	var page AnalysisTypePage
	var err error
	page.Raw, err = c.ask(ctx, call{method: http.MethodGet, path: "/" + pathSchemas, query: filter.query()}, &page)
	return page, err
}

// AnalysisType returns one version of an analysis type; version 0 returns the latest with all versions beside it. unrendered
// leaves the base schema out. CodeNotFound when there is none.
func (c *Client) AnalysisType(ctx context.Context, name string, version int, unrendered bool) (AnalysisType, error) {
	path, err := pathOf(pathSchemas, name)
	if err != nil {
		return AnalysisType{}, err
	}
	query := queryOf("version", numberOf(version), "unrenderedOnly", flagOf(unrendered))
	var t AnalysisType
	t.Raw, err = c.ask(ctx, call{method: http.MethodGet, path: path, query: query}, &t)
	return t, err
}

// RegisterAnalysisType registers a new version from the body of a registration, {name, schema, options?}, and returns it
// rendered. CodeInvalid with its Violations where the body is at fault.
func (c *Client) RegisterAnalysisType(ctx context.Context, body []byte) (AnalysisType, error) {
	var t AnalysisType
	var err error
	t.Raw, err = c.ask(ctx, call{method: http.MethodPost, path: "/" + pathSchemas, body: body}, &t)
	return t, err
}

// flagOf writes a flag of a query, "" for false, which is every flag's default.
func flagOf(set bool) string {
	if set {
		return "true"
	}
	return ""
}
