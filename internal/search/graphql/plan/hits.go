package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
	"tutti/internal/search/graphql/response"
	"tutti/internal/search/graphql/selection"
	"tutti/internal/search/view"
)

// hits plans the documents of a catalogue.
func (p *Planner) hits(ctx context.Context, f *ast.Field) (response.Value, *output.Error) {
	page, bad := p.page(ctx, f)
	if bad != nil {
		return nil, bad
	}
	found := &response.Hits{Request: -1, Field: f, Prefix: p.catalogue.prefix}
	reads := selection.NewProjection(p.catalogue.model)
	var selections []*selection.Set
	total, edges := false, false
	found.Members = p.members(p.Below(f), func(f *ast.Field) (response.Value, *output.Error) {
		if f.Name == "total" {
			total = true
			return found.Total, nil
		}
		edges = true
		e := p.edge(reads, f)
		selections = append(selections, e.Nodes()...)
		return found.Edges(e, output.ItemRequired(f)), nil
	})
	found.Counted = total && page.counts
	if edges {
		page.request.Source = reads.Source(p.catalogue.leaves)
		found.Offset = page.request.From
		found.Request = p.requests.documents(index.SearchRequest{Filter: page.filter, Total: found.Counted, Hits: &page.request})
		if !page.request.Source.None && len(p.catalogue.prefix) == 0 && len(selections) == 1 {
			p.streams = append(p.streams, Stream{Request: found.Request, Documents: page.request.Size, Selection: selections[0]})
		}
	} else if found.Counted {
		found.Request = p.requests.aggregation(page.filter)
		p.requests.all[found.Request].Total = true
	}
	return found.Write, nil
}

// selectedEdge is the selection of edges with what it reads of the documents.
type selectedEdge struct {
	edge  *selection.Edge
	reads *selection.Projection
}

// edge returns the selection of the edges that a field returns, and adds what it reads to reads.
func (p *Planner) edge(reads *selection.Projection, edges *ast.Field) *selection.Edge {
	known, found := p.Derived(edges).(selectedEdge)
	if !found {
		own := selection.NewProjection(p.catalogue.model)
		known = selectedEdge{p.selections(own).Edge(p.catalogue.schema.Document+"Node", edges), own}
		if !p.rejected {
			p.Derive(edges, known)
		}
	}
	reads.Join(known.reads)
	return known.edge
}

// page reads the arguments of hits.
func (p *Planner) page(ctx context.Context, f *ast.Field) (page, *output.Error) {
	args := p.Arguments(f)
	var g page
	var bad *output.Error
	if g.filter, bad = p.LowerFilter(ctx, f, "filters"); bad != nil {
		return g, bad
	}
	if g.request.Size, bad = args.Int("first", DefaultFirst); bad != nil {
		return g, bad
	}
	if g.request.From, bad = args.Int("offset", 0); bad != nil {
		return g, bad
	}
	if g.counts, bad = args.Bool("trackTotalHits", true); bad != nil {
		return g, bad
	}
	p.clamp(&g.request, args.Given("first") != nil)
	if g.request.Sort, bad = p.Sort(args); bad != nil {
		return g, bad
	}
	if g.request.After, bad = readSearchAfter(args, g.request.Sort); bad != nil {
		return g, bad
	}
	return g, g.check(args)
}

// clamp reduces a page to the window, as clients of Arranger expect, with a warning if its size was given.
func (p *Planner) clamp(r *index.HitsRequest, given bool) {
	window := p.catalogue.window
	if r.Size <= window {
		return
	}
	if given {
		p.warnings = append(p.warnings, output.PageClamped(r.Size, window))
	}
	r.Size = window
	if r.From > 0 && r.From < index.MaxWindow {
		r.Size = min(r.Size, index.MaxWindow-r.From)
	}
}

// DefaultFirst is the default page size.
const DefaultFirst = 10

// page holds the arguments of hits.
type page struct {
	filter  *query.Node
	request index.HitsRequest
	counts  bool
}

// check rejects pages that engines cannot return.
func (g *page) check(args request.Arguments) *output.Error {
	first, offset := g.request.Size, g.request.From
	switch {
	case first < 0:
		return args.Invalid("first", "is negative")
	case offset < 0:
		return args.Invalid("offset", "is negative")
	case offset > 0 && g.request.After != nil:
		return args.Invalid("offset", "and searchAfter exclude each other")
	case first+offset > index.MaxWindow:
		return args.Invalid("offset", fmt.Sprintf(
			"plus first is more than %d documents: continue with the searchAfter of the last edge", index.MaxWindow,
		))
	default:
		return nil
	}
}

// readSearchAfter reads the cursor of a page: the searchAfter of an edge in the same order.
func readSearchAfter(args request.Arguments, keys []index.Sort) ([]json.RawMessage, *output.Error) {
	v := args.Value("searchAfter")
	if !v.Exists() {
		return nil, nil
	}
	items := v.Array()
	if !v.IsArray() || len(items) != len(keys) {
		return nil, args.Invalid("searchAfter", fmt.Sprintf(
			"is not the searchAfter of an edge in this order, which has %d values including the tie-breaker", len(keys),
		))
	}
	values := make([]json.RawMessage, len(items))
	for i, item := range items {
		if item.IsObject() || item.IsArray() {
			return nil, args.Invalid("searchAfter", "must contain only scalar values")
		}
		values[i] = json.RawMessage(item.Raw)
		if item.Type == gjson.String && query.Keyed(keys[i].Field.Type) && output.UnsafeInteger([]byte(item.Str)) {
			values[i] = json.RawMessage(item.Str)
		}
	}
	return values, nil
}

// sortKeys reads the sort keys and adds identity as the last one, so that the order is total.
func sortKeys(args request.Arguments, v *view.View, identity index.Sort) ([]index.Sort, *output.Error) {
	var keys []index.Sort
	for i, item := range args.List("sort") {
		if item.Type == gjson.Null || sortsByScore(v, item) {
			continue
		}
		key, bad := sortKey(v, args, i, item)
		if bad != nil {
			return nil, bad
		}
		keys = append(keys, key)
		if key.Field.Path == identity.Field.Path {
			return keys, nil
		}
	}
	return append(keys, identity), nil
}

// sortKey reads one sort key.
func sortKey(v *view.View, args request.Arguments, i int, item gjson.Result) (index.Sort, *output.Error) {
	wrong := func(format string, with ...any) (index.Sort, *output.Error) {
		return index.Sort{}, args.Invalid("sort", fmt.Sprintf("[%d]: ", i)+fmt.Sprintf(format, with...))
	}
	name, order, mode, missing := item.Get("fieldName").String(), item.Get("order").String(), item.Get("mode").String(), item.Get("missing").String()
	key := index.Sort{Descending: order == "desc", Mode: mode}
	// An explicit ascending order has missing values first, as clients of Arranger expect.
	key.MissingFirst = missing == "first" || missing == "" && order == "asc"
	field, known := v.Field(name)
	switch {
	case known:
		key.Field = field
	case name == "_id":
		key.Field = query.Field{Path: "_id", Type: "keyword"}
		return key, nil
	default:
		if _, container := v.Model().Field(name); container {
			return wrong("%q is an object, not a value", name)
		}
		near := ""
		if meant := core.Suggest(name, v.Model().Names()); meant != "" {
			near = fmt.Sprintf(", did you mean %q?", meant)
		}
		return wrong("there is no field %q%s", name, near)
	}
	switch {
	case !sortable(field.Type):
		return wrong("type %s, the type of %q, is not sortable", field.Type, name)
	case !query.Keyed(field.Type) && mode != "" && mode != "min" && mode != "max":
		return wrong("mode %s is for numeric fields, but %q has type %s", mode, name, field.Type)
	}
	return key, nil
}

// sortable reports whether documents can be sorted by values of a type.
func sortable(fieldType string) bool {
	return !slices.Contains([]string{
		"text", "match_only_text", "search_as_you_type", "annotated_text", "binary", "geo_point", "geo_shape", "shape", "point",
		"completion", "alias", "dense_vector", "sparse_vector", "rank_feature", "rank_features", "join", "percolator",
	}, fieldType) && !endsInRange(fieldType)
}

func endsInRange(fieldType string) bool {
	const end = "_range"
	return len(fieldType) > len(end) && fieldType[len(fieldType)-len(end):] == end
}

// scoreKey is the sort key that table components of Arranger use if a column of counts is selected.
const scoreKey = "_score"

// sortsByScore reports whether a sort key is the score. Documents are not scored: all have the same score, so the other keys
// decide.
func sortsByScore(v *view.View, item gjson.Result) bool {
	if item.Get("fieldName").String() != scoreKey {
		return false
	}
	_, own := v.Field(scoreKey)
	return !own
}

// Filter parses the filter in an argument. The schema declares it as JSON, so it is validated here.
func (p *Planner) Filter(f *ast.Field, name string) (sqon.Filter, *output.Error) {
	args := p.Arguments(f)
	raw := args.Raw(name)
	filter, err := p.view.Parse(raw)
	if err != nil {
		bad := withIDHint(p.catalogue.model, output.ErrorOf(err), raw)
		if arg := f.Arguments.ForName(name); arg != nil {
			bad.At(arg.Position)
		}
		return filter, bad
	}
	if !matchesAll(filter) && p.catalogue.model.Definition().DisableFilters {
		return filter, args.Invalid(name, "cannot be used: filters are disabled for this catalogue")
	}
	return filter, nil
}

// matchesAll reports whether a filter is empty, as clients send it without a selection.
func matchesAll(filter sqon.Filter) bool {
	return filter.Root == nil || filter.Root.Op == sqon.And && len(filter.Root.Content) == 0
}

// LowerFilter parses the filter in an argument and translates it into an index query.
func (p *Planner) LowerFilter(ctx context.Context, f *ast.Field, name string) (*query.Node, *output.Error) {
	filter, bad := p.Filter(f, name)
	if bad != nil {
		return nil, bad
	}
	node, err := p.view.Lower(ctx, filter)
	if err != nil {
		return nil, output.ErrorOf(err).At(f.Position)
	}
	return node, nil
}

// withIDHint adds a hint to the error of a filter that uses the node field id: in filters the document id has another name.
func withIDHint(m *catalogue.Model, bad *output.Error, raw json.RawMessage) *output.Error {
	filter, err := sqon.Parse(raw)
	if err == nil && bad.Hint == "" && namesID(m, filter.Root) {
		bad.Hint = "id is not a field: filter by " + view.IDField + ", the document id"
	}
	return bad
}

// namesID reports whether a filter names id although the catalogue has no such field.
func namesID(m *catalogue.Model, n *sqon.Node) bool {
	if n == nil {
		return false
	}
	if slices.ContainsFunc(n.Fields, func(name string) bool {
		_, own := m.Field(name)
		return !own && name == "id"
	}) {
		return true
	}
	return slices.ContainsFunc(n.Content, func(child *sqon.Node) bool { return namesID(m, child) })
}
