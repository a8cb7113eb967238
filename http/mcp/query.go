package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/http/console/explore"
	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

// Limits of execute_query.
const (
	defaultFirst = 10
	maxFirst     = 100
	maxOffset    = 9_900
	maxFacets    = 20
)

type sortInput struct {
	FieldName string `json:"fieldName"`
	Order     string `json:"order,omitempty" jsonschema:"asc (default) or desc"`
}

type queryInput struct {
	CatalogueID string      `json:"catalogueId" jsonschema:"the id of a catalogue, from list_catalogues"`
	SQON        any         `json:"sqon,omitempty" jsonschema:"the filter, an object from build_sqon; all documents if absent"`
	Fields      []string    `json:"fields,omitempty" jsonschema:"names of the fields of each document"`
	Facets      []string    `json:"facets,omitempty" jsonschema:"names of fields: their values with counts, or the bounds of numbers and dates"`
	First       *int        `json:"first,omitempty" jsonschema:"how many documents, 0 to 100; 10 if absent; 0 for counts only"`
	Offset      int         `json:"offset,omitempty" jsonschema:"how many documents to skip, 0 to 9900"`
	Sort        []sortInput `json:"sort,omitempty"`
}

type queryResult struct {
	Total  int64           `json:"total"`
	Hits   json.RawMessage `json:"hits"`
	Facets json.RawMessage `json:"facets,omitempty"`
}

// executeQuery executes a query by GraphQL as the caller, so that the access filter is the same.
func (c call) executeQuery(in queryInput) (any, error) {
	found, err := c.catalogue(in.CatalogueID)
	if err != nil {
		return nil, err
	}
	if err := api.RequireQuery(c.r, found); err != nil {
		return nil, err
	}
	variables, err := variablesOf(in, newFields(found))
	if err != nil {
		return nil, err
	}
	all := explore.NewLayout(found.Fields, gjson.Result{}).Columns
	columns, err := pick(all, in.Fields)
	if err != nil {
		return nil, err
	}
	facets, err := pick(all, in.Facets)
	if err != nil {
		return nil, err
	}
	var layout explore.Layout
	for _, f := range facets {
		switch {
		case f.Type == "text":
			return nil, &core.Error{Code: core.CodeInvalid, Message: fmt.Sprintf("the text field %q has no facet", f.Name), Hint: "use a keyword field"}
		case explore.IsNumeric(f.Type):
			layout.Ranges = append(layout.Ranges, f)
		default:
			layout.Terms = append(layout.Terms, f)
		}
	}
	name := explore.DocumentName(found.DocumentType)
	data, err := c.graphql(found, explore.Query(name, layout, columns, found.Fields), variables)
	if err != nil {
		return nil, err
	}
	result := queryResult{Total: data.Get(name + ".hits.total").Int(), Hits: json.RawMessage(data.Get(name + ".hits.edges.#.node").Raw)}
	if aggregations := data.Get(name + ".aggregations"); aggregations.Exists() {
		result.Facets = json.RawMessage(aggregations.Raw)
	}
	return result, nil
}

// variablesOf checks the input and returns the variables of explore.Query.
func variablesOf(in queryInput, fields fields) (map[string]any, error) {
	first := defaultFirst
	if in.First != nil {
		first = *in.First
	}
	if first < 0 || first > maxFirst || in.Offset < 0 || in.Offset > maxOffset || len(in.Facets) > maxFacets {
		return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("first must be 0 to %d, offset 0 to %d, facets at most %d names", maxFirst, maxOffset, maxFacets))
	}
	variables := map[string]any{"first": first, "offset": in.Offset}
	if in.SQON != nil {
		raw, _, err := parse(in.SQON, fields)
		if err != nil {
			return nil, &core.Error{Code: core.CodeInvalid, Message: "the sqon is invalid: " + violationsText(err), Hint: "build it with build_sqon"}
		}
		variables["sqon"] = raw
	}
	order := make([]sortInput, 0, len(in.Sort))
	for _, s := range in.Sort {
		if s.Order == "" {
			s.Order = "asc"
		}
		if s.Order != "asc" && s.Order != "desc" {
			return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("unknown order %.40q; use asc or desc", s.Order))
		}
		if _, known := fields[s.FieldName]; !known {
			return nil, unknownField(s.FieldName, fields)
		}
		order = append(order, s)
	}
	if len(order) > 0 {
		variables["sort"] = order
	}
	return variables, nil
}

// pick returns the fields with names, each once.
func pick(all []core.CatalogueField, names []string) ([]core.CatalogueField, error) {
	var picked []core.CatalogueField
	seen := map[string]bool{}
	for _, name := range names {
		at := slices.IndexFunc(all, func(f core.CatalogueField) bool { return f.Name == name })
		if at < 0 {
			known := fields{}
			for _, f := range all {
				known[f.Name] = sqon.Field{}
			}
			return nil, unknownField(name, known)
		}
		if !seen[name] {
			seen[name] = true
			picked = append(picked, all[at])
		}
	}
	return picked, nil
}

func unknownField(name string, known fields) error {
	e := &core.Error{
		Code: core.CodeInvalid, Message: fmt.Sprintf("there is no field %.60q that holds values", name), Hint: "get_catalogue_fields lists the fields",
	}
	if near := core.Suggest(name, known.Names()); near != "" {
		e.Message += fmt.Sprintf("; did you mean %q?", near)
	}
	return e
}

// graphql executes a query on a catalogue as the caller and returns its data.
func (c call) graphql(of *core.Catalogue, query string, variables map[string]any) (gjson.Result, error) {
	encoded, err := json.Marshal(variables)
	if err != nil {
		return gjson.Result{}, core.WrapError(core.CodeInternal, "an internal error occurred", err)
	}
	caller, _ := api.CallerOf(c.r.Context())
	response, err := c.ports.GraphQL.Execute(c.r.Context(), of.ID, caller, core.GraphQLRequest{
		Query: query, Variables: encoded, ReadOnly: true, Header: c.r.Header,
	})
	if err != nil {
		return gjson.Result{}, err
	}
	body := gjson.ParseBytes(slices.Clone(response.Body))
	if response.Release != nil {
		response.Release()
	}
	if first := body.Get("errors.0.message"); first.Exists() {
		return gjson.Result{}, &core.Error{Code: core.CodeInvalid, Message: first.String(), Hint: "change the sqon, fields, facets or sort"}
	}
	return body.Get("data"), nil
}

// addResources adds the documents of the introspection.
func (c call) addResources(server *sdk.Server) {
	read := func(answer func(uri string) (any, error)) sdk.ResourceHandler {
		return func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			body, err := answer(r.Params.URI)
			if core.CodeOf(err) == core.CodeNotFound {
				return nil, sdk.ResourceNotFoundError(r.Params.URI)
			}
			if err != nil {
				return nil, toolError(err)
			}
			text, err := json.Marshal(body)
			if err != nil {
				return nil, fmt.Errorf("encoding a resource: %w", err)
			}
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: api.ContentTypeJSON, Text: string(text)}}}, nil
		}
	}
	server.AddResource(&sdk.Resource{Name: "catalogues", URI: uriCatalogues, MIMEType: api.ContentTypeJSON},
		read(func(string) (any, error) { return c.listCatalogues(none{}) }))
	server.AddResource(&sdk.Resource{Name: "sqon", URI: uriSQON, MIMEType: api.ContentTypeJSON},
		read(func(string) (any, error) { return c.sqonSchema(none{}) }))
	server.AddResourceTemplate(&sdk.ResourceTemplate{Name: "fields", URITemplate: uriFields, MIMEType: api.ContentTypeJSON},
		read(func(uri string) (any, error) {
			return c.fields(catalogueInput{strings.TrimPrefix(uri, strings.TrimSuffix(uriFields, "{catalogueId}"))})
		}))
}
