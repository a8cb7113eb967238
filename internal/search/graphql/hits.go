package graphql

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
)

// defaultFirst is the default page size.
const defaultFirst = 10

// filter parses the filter in an argument. The schema declares it as JSON, so it is validated here.
func (x *execution) filter(f *ast.Field, name string) (sqon.Filter, *gqlError) {
	args := x.args(f)
	raw := args.raw(name)
	filter, err := x.view.Parse(raw)
	if err != nil {
		bad := x.idHint(errorOf(err), raw)
		if arg := f.Arguments.ForName(name); arg != nil {
			bad.at(arg.Position)
		}
		return filter, bad
	}
	if !matchesAll(filter) && x.served.model.Definition().DisableFilters {
		return filter, args.invalid(name, "cannot be used: filters are disabled for this catalogue")
	}
	return filter, nil
}

// matchesAll reports whether a filter is empty, as clients send it without a selection.
func matchesAll(filter sqon.Filter) bool {
	return filter.Root == nil || filter.Root.Op == sqon.And && len(filter.Root.Content) == 0
}

// lowerFilter parses the filter in an argument and translates it into an index query.
func (x *execution) lowerFilter(ctx context.Context, f *ast.Field, name string) (*query.Node, *gqlError) {
	filter, bad := x.filter(f, name)
	if bad != nil {
		return nil, bad
	}
	node, err := x.view.Lower(ctx, filter)
	if err != nil {
		return nil, errorOf(err).at(f.Position)
	}
	return node, nil
}

// page holds the arguments of hits.
type page struct {
	filter  *query.Node
	request index.HitsRequest
	counts  bool
}

// page reads the arguments of hits.
func (x *execution) page(ctx context.Context, f *ast.Field) (page, *gqlError) {
	args := x.args(f)
	var p page
	var bad *gqlError
	if p.filter, bad = x.lowerFilter(ctx, f, "filters"); bad != nil {
		return p, bad
	}
	if p.request.Size, bad = args.int("first", defaultFirst); bad != nil {
		return p, bad
	}
	if p.request.From, bad = args.int("offset", 0); bad != nil {
		return p, bad
	}
	if p.counts, bad = args.flag("trackTotalHits", true); bad != nil {
		return p, bad
	}
	x.clamp(&p.request, args.given("first") != nil)
	if p.request.Sort, bad = x.sort(args); bad != nil {
		return p, bad
	}
	if p.request.After, bad = readSearchAfter(args, p.request.Sort); bad != nil {
		return p, bad
	}
	return p, p.check(args)
}

// clamp reduces a page to the window, as clients of Arranger expect, with a warning if its size was given.
func (x *execution) clamp(r *index.HitsRequest, given bool) {
	window := x.served.window
	if r.Size <= window {
		return
	}
	if given {
		x.warnings = append(x.warnings, clamped(r.Size, window))
	}
	r.Size = window
	if r.From > 0 && r.From < index.MaxWindow {
		r.Size = min(r.Size, index.MaxWindow-r.From)
	}
}

// maxPage returns the maximum page size: maxResultsWindow of the catalogue's table, up to the engine's limit.
func (s *servedCatalogue) maxPage() int {
	var table struct {
		Window int `json:"maxResultsWindow"`
	}
	_ = json.Unmarshal(s.model.Definition().Table, &table) // validated before; without it, the window is 0
	if table.Window < 1 {
		return index.MaxWindow
	}
	return min(table.Window, index.MaxWindow)
}

// check rejects pages that engines cannot return.
func (p *page) check(args arguments) *gqlError {
	first, offset := p.request.Size, p.request.From
	switch {
	case first < 0:
		return args.invalid("first", "is negative")
	case offset < 0:
		return args.invalid("offset", "is negative")
	case offset > 0 && p.request.After != nil:
		return args.invalid("offset", "and searchAfter exclude each other")
	case first+offset > index.MaxWindow:
		return args.invalid("offset", fmt.Sprintf(
			"plus first is more than %d documents: continue with the searchAfter of the last edge", index.MaxWindow,
		))
	default:
		return nil
	}
}

// sort reads the sort keys and adds identity as the last one, so that the order is total.
func (x *execution) sort(args arguments) ([]index.Sort, *gqlError) {
	identity := x.identity
	var keys []index.Sort
	for i, item := range args.list("sort") {
		if item.Type == gjson.Null || x.sortsByScore(item) {
			continue
		}
		key, bad := x.sortKey(args, i, item)
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

func (x *execution) sortKey(args arguments, i int, item gjson.Result) (index.Sort, *gqlError) {
	wrong := func(format string, with ...any) (index.Sort, *gqlError) {
		return index.Sort{}, args.invalid("sort", fmt.Sprintf("[%d]: ", i)+fmt.Sprintf(format, with...))
	}
	name, order, mode, missing := item.Get("fieldName").String(), item.Get("order").String(), item.Get("mode").String(), item.Get("missing").String()
	key := index.Sort{Descending: order == "desc", Mode: mode}
	// An explicit ascending order has missing values first, as clients of Arranger expect.
	key.MissingFirst = missing == "first" || missing == "" && order == "asc"
	field, known := x.view.Field(name)
	switch {
	case known:
		key.Field = field
	case name == "_id":
		key.Field = query.Field{Path: "_id", Type: "keyword"}
		return key, nil
	default:
		if _, container := x.served.model.Field(name); container {
			return wrong("%q is an object, not a value", name)
		}
		near := ""
		if meant := core.Suggest(name, x.served.model.Names()); meant != "" {
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

// readSearchAfter reads the cursor of a page: the searchAfter of an edge in the same order.
func readSearchAfter(args arguments, keys []index.Sort) ([]json.RawMessage, *gqlError) {
	v := args.value("searchAfter")
	if !v.Exists() {
		return nil, nil
	}
	items := v.Array()
	if !v.IsArray() || len(items) != len(keys) {
		return nil, args.invalid("searchAfter", fmt.Sprintf(
			"is not the searchAfter of an edge in this order, which has %d values including the tie-breaker", len(keys),
		))
	}
	values := make([]json.RawMessage, len(items))
	for i, item := range items {
		if item.IsObject() || item.IsArray() {
			return nil, args.invalid("searchAfter", "must contain only scalar values")
		}
		values[i] = json.RawMessage(item.Raw)
		if item.Type == gjson.String && query.Keyed(keys[i].Field.Type) && unsafeInteger([]byte(item.Str)) {
			values[i] = json.RawMessage(item.Str)
		}
	}
	return values, nil
}

// hits plans the documents of a catalogue.
func (x *execution) hits(ctx context.Context, f *ast.Field) (writeFunc, *gqlError) {
	p, bad := x.page(ctx, f)
	if bad != nil {
		return nil, bad
	}
	found := &hitsResult{batch: &x.batch, request: -1}
	needed := &projection{model: x.served.model}
	builder := selectionBuilder{schema: x.served.schema, collect: x.collect, projection: needed, args: x.args, reject: x.reject}
	total, edges := false, false
	members := x.plan(x.below(f), func(f *ast.Field) (writeFunc, *gqlError) {
		if f.Name == "total" {
			total = true
			return found.total, nil
		}
		edges = true
		e := x.edge(builder, f)
		found.selections = append(found.selections, e.nodes()...)
		return found.edges(e, x.served.prefix, itemRequired(f)), nil
	})
	found.counted = total && p.counts
	if edges {
		p.request.Source = needed.source(x.served.leaves)
		if !p.request.Source.None && len(x.served.prefix) == 0 {
			p.request.Read = x.documentWriter(found, p.request.Size)
		}
		found.offset = p.request.From
		found.request = x.batch.documents(index.SearchRequest{Filter: p.filter, Total: found.counted, Hits: &p.request})
	} else if found.counted {
		found.request = x.batch.aggregationRequest(p.filter)
		x.batch.reqs[found.request].Total = true
	}
	return found.write(f, members), nil
}

// edge returns the selection of the edges that a field returns.
func (x *execution) edge(p selectionBuilder, edges *ast.Field) *edge {
	kept, found := x.edges.get(edges)
	if !found {
		own := projection{model: p.projection.model}
		kept.edge = selectionBuilder{schema: p.schema, collect: p.collect, projection: &own, args: p.args, reject: p.reject}.edge(x.served.schema.Document+"Node", edges)
		kept.projection = &own
		if !x.rejected && independentOfVariables(edges.SelectionSet, map[*ast.FragmentDefinition]bool{}) {
			x.edges.put(edges, kept)
		}
	}
	p.projection.join(kept.projection)
	return kept.edge
}

// hitsResult is the index result of one field hits.
type hitsResult struct {
	batch *batch
	// request is its index in the batch, -1 for none.
	request int
	// counted is set if all documents are counted.
	counted bool
	offset  int
	// selections are the selection sets of the documents.
	selections []*selectionSet
}

func (r *hitsResult) result() *index.SearchResult {
	if r.request < 0 {
		return &index.SearchResult{}
	}
	return &r.batch.results[r.request]
}

// write writes the connection, or null with an error.
func (r *hitsResult) write(f *ast.Field, members []member) writeFunc {
	return func(w *responseWriter) bool {
		if r.request >= 0 && r.batch.err != nil {
			return w.nullWithError(errorOf(r.batch.err).at(f.Position))
		}
		return w.object(members)
	}
}

// total writes the number of matching documents. If they were not counted, it is the number of documents up to the end of the
// page.
func (r *hitsResult) total(w *responseWriter) bool {
	result := r.result()
	if r.counted {
		return w.int(result.Total)
	}
	if len(result.Hits) == 0 {
		return w.int(0)
	}
	return w.int(int64(r.offset + len(result.Hits)))
}

// edges writes the documents.
func (r *hitsResult) edges(e *edge, root []string, required bool) writeFunc {
	return func(w *responseWriter) bool {
		hits := r.result().Hits
		return w.list(len(hits), required, func(i int) bool {
			return w.edge(e, hits[i].Source, inside(hits[i].Source, root), &hits[i])
		})
	}
}
