package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/http/explore"
	"tutti/http/search"
	"tutti/internal/core"
)

// hangsAfter is how long a read of a catalogue keeps others from being read: one whose index hangs must not hide those after it.
const hangsAfter = 100 * time.Millisecond

// catalogueEntry is one catalogue of the list.
type catalogueEntry struct {
	*core.Catalogue
	// Documents is the number of documents that the caller sees, nil if it is unknown. Closed says why the caller cannot read them.
	Documents *int64
	Closed    string
}

// cataloguesView is the content of the list of catalogues.
type cataloguesView struct {
	Base       string
	Catalogues []catalogueEntry
}

func (s *cataloguePages) catalogues(w http.ResponseWriter, r *http.Request) error {
	all := s.ports.Catalogues.Catalogues().Catalogues
	v := cataloguesView{Base: s.base, Catalogues: make([]catalogueEntry, len(all))}
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	bounded := r.WithContext(ctx)
	var reads sync.WaitGroup
	slots := make(chan struct{}, parallelReads)
	for i, c := range all {
		slots <- struct{}{}
		hangs := time.AfterFunc(hangsAfter, func() { <-slots })
		reads.Go(func() {
			v.Catalogues[i] = s.counted(bounded, c)
			if hangs.Stop() {
				<-slots
			}
		})
	}
	reads.Wait()
	s.render(w, r, http.StatusOK, "catalogues", page{Title: "Catalogues", Active: "catalogues", Content: v})
	return nil
}

// counted returns a catalogue with its number of documents, or why that is unknown: the context of the request bounds the search for it.
func (s *cataloguePages) counted(r *http.Request, c *core.Catalogue) catalogueEntry {
	e := catalogueEntry{Catalogue: c}
	if c.Problem != nil {
		return e
	}
	if err := api.RequireQuery(r, c); err != nil {
		e.Closed = core.MessageOf(err)
		return e
	}
	document := explore.DocumentName(c.DocumentType)
	data, err := s.graphql(r, c, "{"+document+"{hits(first:0){total}}}", nil)
	if err != nil && r.Context().Err() != nil {
		e.Closed = "the index did not answer within " + span(probeTimeout)
		return e
	}
	if err != nil {
		e.Closed = core.MessageOf(err)
		return e
	}
	total := data.Get(document + ".hits.total").Int()
	e.Documents = &total
	return e
}

// catalogueOf returns the catalogue that a path names.
func (s *cataloguePages) catalogueOf(r *http.Request) (*core.Catalogue, error) {
	id, err := api.PathParam(r, "id", "catalogue id")
	if err != nil {
		return nil, err
	}
	if c := s.ports.Catalogues.Catalogues().ByID(id); c != nil {
		return c, nil
	}
	return nil, &core.Error{Code: core.CodeNotFound, Message: "there is no such catalogue", Hint: "the list of catalogues has those that are configured"}
}

// openCatalogue returns the catalogue that a path names if the caller may search it.
func (s *cataloguePages) openCatalogue(r *http.Request) (*core.Catalogue, error) {
	c, err := s.catalogueOf(r)
	if err != nil {
		return nil, err
	}
	if c.Problem != nil {
		return nil, &core.Error{
			Code: core.CodeNotFound, Message: "the catalogue has failed: " + c.Problem.Message, Hint: "tutti tries again by itself, after a minute at most",
		}
	}
	return c, api.RequireQuery(r, c)
}

// graphql executes a query on a catalogue as the caller and returns its data.
func (s *cataloguePages) graphql(r *http.Request, c *core.Catalogue, query string, variables map[string]any) (gjson.Result, error) {
	caller, _ := api.CallerOf(r.Context())
	encoded, err := json.Marshal(variables)
	if err != nil {
		return gjson.Result{}, core.WrapError(core.CodeInternal, "an internal error occurred", err)
	}
	response, err := s.ports.GraphQL.Execute(r.Context(), c.ID, caller, core.GraphQLRequest{
		Query: query, Variables: encoded, ReadOnly: true, Header: r.Header, Caller: api.LimitCaller(r),
	})
	if err != nil {
		return gjson.Result{}, err
	}
	body := gjson.ParseBytes(slices.Clone(response.Body))
	if response.Release != nil {
		response.Release()
	}
	if first := body.Get("errors.0.message"); first.Exists() {
		return gjson.Result{}, &core.Error{Code: core.CodeInvalid, Message: first.String(), Hint: "change or remove the filters"}
	}
	return body.Get("data"), nil
}

// catalogueView is the content of the page of a catalogue.
type catalogueView struct {
	Base string
	catalogueEntry
	// Mapping is the mapping of the index, indented.
	Mapping string
}

func (s *cataloguePages) catalogue(w http.ResponseWriter, r *http.Request) error {
	c, err := s.catalogueOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	bounded := r.WithContext(ctx)
	v := catalogueView{Base: s.base, catalogueEntry: s.counted(bounded, c)}
	if v.Documents != nil {
		document := explore.DocumentName(c.DocumentType)
		if data, err := s.graphql(bounded, c, "{"+document+"{mapping}}", nil); err == nil {
			v.Mapping, _ = readable([]byte(data.Get(document + ".mapping").Raw))
		}
	}
	s.render(w, r, http.StatusOK, "catalogue", page{Title: "Catalogue " + c.ID, Active: "catalogues", Content: v})
	return nil
}

// exploreView is the content of the page that explores a catalogue.
type exploreView struct {
	Base string
	*core.Catalogue
	explore.Selection
	Facets []explore.Facet
	// Bounds are the facets of numbers and dates.
	Bounds []explore.RangeFacet
	Chips  []explore.Chip
	// Table are the chosen columns, Available those that may be chosen.
	Table      []column
	Available  []column
	Rows       []explore.Row
	Total      int64
	First      int
	Neighbours neighbours
	Says       says
	Elsewhere  elsewhere
}

// neighbours are the query strings of the pages before and after one, empty for none.
type neighbours struct{ Before, After string }

// elsewhere is the query of a page for other programs: Filter is the SQON, indented, empty for none; Params those of a download; Curl the same
// query as a command.
type elsewhere struct{ Filter, Params, Curl string }

// says is what the page of a catalogue says of a search.
type says struct {
	// ListFields are the fields that a list may be of, Missing the values of the list that no document has, Unknown is set if that cannot be told.
	ListFields []core.CatalogueField
	Missing    []string
	Unknown    bool
	// Quickly are the names of the fields that the quick search searches.
	Quickly []string
}

// column is one column of the table.
type column struct {
	core.CatalogueField
	Shown bool
	// Order is the value of aria-sort, Link the query string that sorts by the column.
	Order, Link string
}

func (s *cataloguePages) explore(w http.ResponseWriter, r *http.Request) error {
	c, err := s.openCatalogue(r)
	if err != nil {
		return err
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return core.WrapError(core.CodeInvalid, "the query string is malformed", err)
	}
	document := explore.DocumentName(c.DocumentType)
	configs, err := s.graphql(r, c, explore.ConfigQuery(document), nil)
	if err != nil {
		return err
	}
	layout := explore.NewLayout(c.Fields, configs.Get(document+".configs"))
	v := exploreView{Base: s.base, Catalogue: c, Says: says{ListFields: explore.ListFields(c.Fields)}}
	if v.Selection, err = explore.Parse(q, c.Fields); err != nil {
		return err
	}
	if len(v.Columns) == 0 {
		v.Columns = layout.Default
	}
	order, descending := v.Sort, v.Descending
	if order == "" {
		order, descending = layout.Sort, layout.Descending
	}
	v.setColumns(layout, order, descending)
	layout.Quick = layout.QuickFields(fieldsOf(v.Table))
	for _, f := range c.Fields {
		if slices.Contains(layout.Quick, f.Name) {
			v.Says.Quickly = append(v.Says.Quickly, f.DisplayName)
		}
	}
	filter, err := v.Filter(c.Fields, layout.Quick)
	if err != nil {
		return err
	}
	variables := map[string]any{"sqon": filter, "first": explore.PageSize, "offset": v.Page * explore.PageSize}
	if order != "" {
		direction := "asc"
		if descending {
			direction = "desc"
		}
		variables["sort"] = []map[string]string{{"fieldName": order, "order": direction}}
	}
	query := explore.Query(document, layout, fieldsOf(v.Table), c.Fields)
	data, err := s.graphql(r, c, query, variables)
	if err != nil {
		return err
	}
	found := data.Get(document)
	var histograms gjson.Result
	if second := explore.HistogramQuery(document, layout, found.Get("aggregations")); second != "" {
		drawn, err := s.graphql(r, c, second, map[string]any{"sqon": filter})
		if err != nil {
			return err
		}
		histograms = drawn.Get(document + ".aggregations")
	}
	if err := s.setMissing(r, &v, document); err != nil {
		return err
	}
	values, err := s.findValues(r, c, layout, v.Selection, found.Get("aggregations"))
	if err != nil {
		return err
	}
	v.Facets = explore.Facets(layout, v.Selection, found.Get("aggregations"), values)
	v.Bounds = explore.RangeFacets(layout, v.Selection, found.Get("aggregations"), histograms)
	v.Rows = explore.Rows(fieldsOf(v.Table), c.Fields, found.Get("hits.edges"))
	v.Total, v.Chips = found.Get("hits.total").Int(), v.Selection.Chips(c.Fields)
	v.setPages()
	s.setExports(&v, r, filter, query, variables)
	s.render(w, r, http.StatusOK, "explore", page{Title: "Explore " + c.ID, Active: "catalogues", Content: v})
	return nil
}

// setMissing sets which values of a pasted list no document has.
func (s *cataloguePages) setMissing(r *http.Request, v *exploreView, document string) error {
	if len(v.List.Values) == 0 {
		return nil
	}
	query, variables, err := v.List.Request(document)
	if err != nil {
		return err
	}
	data, err := s.graphql(r, v.Catalogue, query, variables)
	if err != nil {
		return err
	}
	missing, known := v.List.Missing(document, data)
	if v.Says.Unknown = !known; known {
		v.Says.Missing = missing
	}
	return nil
}

// findValues searches in all values of the facets of which only the first are known, and returns the facets by the names of their fields.
func (s *cataloguePages) findValues(
	r *http.Request, c *core.Catalogue, layout explore.Layout, selection explore.Selection, aggregations gjson.Result,
) (map[string]gjson.Result, error) {
	document := explore.DocumentName(c.DocumentType)
	found := map[string]gjson.Result{}
	for _, f := range explore.Searched(layout, selection, aggregations) {
		filter, err := selection.Finding(f, c.Fields, layout.Quick)
		if err != nil {
			return nil, err
		}
		data, err := s.graphql(r, c, explore.FindQuery(document, f), map[string]any{"sqon": filter})
		if err != nil {
			return nil, err
		}
		found[f.Name] = explore.Found(document, f, data)
	}
	return found, nil
}

func fieldsOf(columns []column) []core.CatalogueField {
	fields := make([]core.CatalogueField, len(columns))
	for i, c := range columns {
		fields[i] = c.CatalogueField
	}
	return fields
}

// setColumns sets the columns of the table and those that may be chosen.
func (v *exploreView) setColumns(l explore.Layout, order string, descending bool) {
	for _, f := range l.Columns {
		c := column{CatalogueField: f, Shown: slices.Contains(v.Columns, f.Name)}
		next := "asc"
		if f.Name == order && !descending {
			next = "desc"
		}
		if f.Name == order {
			c.Order = map[bool]string{false: "ascending", true: "descending"}[descending]
		}
		if explore.Countable(f) {
			c.Link = v.With(func(q url.Values) { q.Set("sort", f.Name); q.Set("order", next) })
		}
		v.Available = append(v.Available, c)
	}
	for _, name := range v.Columns {
		if at := slices.IndexFunc(v.Available, func(c column) bool { return c.Name == name }); at >= 0 {
			v.Table = append(v.Table, v.Available[at])
		}
	}
}

func (v *exploreView) setPages() {
	v.First = v.Page*explore.PageSize + 1
	if v.Page > 0 {
		v.Neighbours.Before = v.With(func(q url.Values) { q.Set("page", strconv.Itoa(v.Page-1)) })
	}
	if last := v.First + len(v.Rows); int64(last) <= v.Total && last < 10_000 {
		v.Neighbours.After = v.With(func(q url.Values) { q.Set("page", strconv.Itoa(v.Page+1)) })
	}
}

// setExports sets the forms of the query for other programs.
func (s *cataloguePages) setExports(v *exploreView, r *http.Request, filter json.RawMessage, query string, variables map[string]any) {
	params := map[string]any{"format": "tsv", "columns": v.Columns}
	if filter != nil {
		v.Elsewhere.Filter, _ = readable(filter)
		params["sqon"] = filter
	}
	if encoded, err := json.Marshal(params); err == nil {
		v.Elsewhere.Params = string(encoded)
	}
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return
	}
	v.Elsewhere.Curl = s.curl(r, v.Catalogue) + "'" + strings.ReplaceAll(string(body), "'", `'\''`) + "'"
}

// download sends the documents of a catalogue as a file.
func (s *cataloguePages) download(w http.ResponseWriter, r *http.Request) error {
	c, err := s.openCatalogue(r)
	if err != nil {
		return err
	}
	return search.ServeDownload(w, r, s.ports.Downloads, c)
}
