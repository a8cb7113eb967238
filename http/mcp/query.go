package mcp

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/http/explore"
	"tutti/internal/base/spelling"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/sqon"
)

// Limits of execute_query.
const (
	defaultFirst       = 10
	maxFirst           = 100
	maxOffset          = 9_900
	maxColumns         = 50
	maxFacets          = 20
	maxSort            = 5
	defaultFacetValues = 20
	maxFacetValues     = 200
)

type sortInput struct {
	FieldName string `json:"fieldName"`
	Order     string `json:"order,omitempty"`
}

type queryInput struct {
	CatalogueID string          `json:"catalogueId"`
	SQON        json.RawMessage `json:"sqon"`
	Fields      []string        `json:"fields"`
	Facets      []string        `json:"facets"`
	FacetValues *int            `json:"facetValues"`
	First       *int            `json:"first"`
	Offset      int             `json:"offset"`
	Sort        []sortInput     `json:"sort"`
}

// limits checks the bounds of a query and sets the defaults.
func (in *queryInput) limits() error {
	if in.First == nil {
		in.First = new(defaultFirst)
	}
	if in.FacetValues == nil {
		in.FacetValues = new(defaultFacetValues)
	}
	for _, one := range []struct {
		name             string
		given, low, high int
		unit             string
	}{
		{"first", *in.First, 0, maxFirst, ""},
		{"offset", in.Offset, 0, maxOffset, ""},
		{"facetValues", *in.FacetValues, 1, maxFacetValues, ""},
		{"fields", len(in.Fields), 0, maxColumns, " names"},
		{"facets", len(in.Facets), 0, maxFacets, " names"},
		{"sort", len(in.Sort), 0, maxSort, " fields"},
	} {
		if one.given < one.low || one.given > one.high {
			return core.NewError(core.CodeInvalid, fmt.Sprintf("%s must be %d to %d%s, not %d", one.name, one.low, one.high, one.unit, one.given))
		}
	}
	return nil
}

// executeQuery executes a query by GraphQL as the caller, so that the access filter is the same.
func (c *call) executeQuery(in queryInput) (any, error) {
	found, err := c.catalogue(in.CatalogueID)
	if err != nil {
		return nil, err
	}
	if err := api.RequireQuery(c.r, found); err != nil {
		return nil, err
	}
	if err := in.limits(); err != nil {
		return nil, err
	}
	known := newFields(found)
	variables, err := variablesOf(in, known, found.Fields)
	if err != nil {
		return nil, err
	}
	layout := explore.NewLayout(found.Fields, gjson.Result{})
	if in.Fields == nil {
		in.Fields = layout.Default
	}
	columns, err := pick(layout.Columns, in.Fields, known)
	if err != nil {
		return nil, err
	}
	facets, err := pick(layout.Columns, in.Facets, known)
	if err != nil {
		return nil, err
	}
	shown, err := facetLayout(facets)
	if err != nil {
		return nil, err
	}
	name := explore.DocumentName(found.DocumentType)
	response, err := c.graphql(found, explore.Query(name, shown, columns, found.Fields), variables)
	if err != nil {
		return nil, err
	}
	r := resultBuilder{known: known, room: maxResultBytes, facetValues: *in.FacetValues}
	return r.result(response, name, facets), nil
}

// facetLayout returns the layout of facets: values with counts, or the bounds of numbers and dates.
func facetLayout(facets []core.CatalogueField) (layout explore.Layout, err error) {
	for _, f := range facets {
		switch {
		case f.Uncounted != "":
			return layout, uncounted(f, "facet")
		case !fieldtype.Of(f.Type).Countable():
			return layout, &core.Error{Code: core.CodeInvalid, Message: fmt.Sprintf("the field %q of type %s has no facet", f.Name, f.Type), Hint: "use a keyword field"}
		case fieldtype.Of(f.Type).Ordered():
			layout.Ranges = append(layout.Ranges, f)
		default:
			layout.Terms = append(layout.Terms, f)
		}
	}
	return layout, nil
}

// variablesOf checks the input with the fields of a catalogue and returns the variables of explore.Query.
func variablesOf(in queryInput, known fields, all []core.CatalogueField) (map[string]any, error) {
	variables := map[string]any{"first": *in.First, "offset": in.Offset}
	if len(in.SQON) > 0 && string(in.SQON) != "null" {
		raw, _, err := parse(in.SQON, known)
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
		if _, exists := known[s.FieldName]; !exists {
			return nil, unknownField(s.FieldName, known)
		}
		if at := slices.IndexFunc(all, func(f core.CatalogueField) bool { return f.Name == s.FieldName }); at >= 0 && all[at].Uncounted != "" {
			return nil, uncounted(all[at], "sort")
		}
		order = append(order, s)
	}
	if len(order) > 0 {
		variables["sort"] = order
	}
	return variables, nil
}

// uncounted returns the error of a facet or a sort of a field that has none although its type has.
func uncounted(f core.CatalogueField, what string) error {
	return core.NewError(core.CodeInvalid, fmt.Sprintf("the field %q has no %s: %s", f.Name, what, f.Uncounted))
}

// pick returns the fields with names, each once.
func pick(all []core.CatalogueField, names []string, known fields) ([]core.CatalogueField, error) {
	var picked []core.CatalogueField
	seen := map[string]bool{}
	for _, name := range names {
		at := slices.IndexFunc(all, func(f core.CatalogueField) bool { return f.Name == name })
		field, exists := known[name]
		switch {
		case at < 0 && exists:
			hint := "name another field"
			if field.Type == "object" || field.Type == "nested" {
				hint = "name the fields inside an object or a nested field"
			}
			return nil, &core.Error{
				Code: core.CodeInvalid, Message: fmt.Sprintf("the field %.200q of the type %s cannot be shown or counted", name, field.Type), Hint: hint,
			}
		case at < 0:
			leaves := fields{}
			for _, f := range all {
				leaves[f.Name] = sqon.Field{}
			}
			return nil, unknownField(name, leaves)
		case !seen[name]:
			seen[name] = true
			picked = append(picked, all[at])
		}
	}
	return picked, nil
}

func unknownField(name string, known fields) error {
	e := &core.Error{Code: core.CodeInvalid, Message: fmt.Sprintf("there is no field %.200q", name), Hint: "get_catalogue_fields lists the fields"}
	if near := spelling.Suggest(name, known.Names()); near != "" {
		e.Message += fmt.Sprintf("; did you mean %q?", near)
	}
	return e
}

// graphql executes a query on a catalogue as the caller and returns the response.
func (c *call) graphql(of *core.Catalogue, query string, variables map[string]any) (gjson.Result, error) {
	encoded, err := json.Marshal(variables)
	if err != nil {
		return gjson.Result{}, core.WrapError(core.CodeInternal, "an internal error occurred", err)
	}
	caller, _ := api.CallerOf(c.r.Context())
	response, err := c.ports.GraphQL.Execute(c.r.Context(), of.ID, caller, core.GraphQLRequest{
		Query: query, Variables: encoded, ReadOnly: true, Header: c.r.Header, Caller: api.LimitCaller(c.r),
	})
	if err != nil {
		return gjson.Result{}, err
	}
	body := gjson.ParseBytes(response.Body) // a copy
	if response.Release != nil {
		response.Release()
	}
	if first := body.Get("errors.0"); first.Exists() {
		return gjson.Result{}, queryError(first)
	}
	return body, nil
}

// queryError returns the error of an error of GraphQL.
func queryError(of gjson.Result) error {
	e := &core.Error{Code: core.CodeInvalid, Message: of.Get("message").String(), Hint: of.Get("extensions.hint").String()}
	switch of.Get("extensions.code").String() {
	case "SERVICE_UNAVAILABLE":
		e.Code = core.CodeUnavailable
		if e.Hint == "" {
			e.Hint = "try again later; index_status shows the state"
		}
	case "INTERNAL_SERVER_ERROR":
		e.Code = core.CodeInternal
	case "FORBIDDEN":
		e.Code = core.CodeForbidden
	case "UNAUTHENTICATED":
		e.Code = core.CodeUnauthenticated
	default:
		if e.Hint == "" {
			e.Hint = "change the sqon, fields, facets or sort"
		}
	}
	return e
}
