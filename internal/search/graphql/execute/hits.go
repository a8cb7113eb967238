package execute

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
	"tutti/internal/search/graphql/selection"
	"tutti/internal/search/view"
)

// hits plans the documents of a catalogue.
func (p *Planner) hits(ctx context.Context, f *ast.Field) (Value, *output.Error) {
	page, bad := p.page(ctx, f)
	if bad != nil {
		return nil, bad
	}
	found := &hits{request: -1, prefix: p.catalogue.prefix}
	reads := selection.NewProjection(p.catalogue.model)
	var selections []*selection.Set
	total, edges := false, false
	members := p.members(p.Below(f), func(f *ast.Field) (Value, *output.Error) {
		if f.Name == "total" {
			total = true
			return found.total, nil
		}
		edges = true
		e := p.edge(reads, f)
		selections = append(selections, e.NodeSelections()...)
		return func(w *Writer) { found.edges(w, e) }, nil
	})
	found.counted = total && page.counts
	if edges {
		page.request.Source = reads.Source(p.catalogue.leaves)
		found.offset = page.request.From
		found.request = p.requests.documents(index.SearchRequest{Filter: page.filter, Total: found.counted, Hits: &page.request})
		if !page.request.Source.None && len(p.catalogue.prefix) == 0 && len(selections) == 1 {
			p.streams = append(p.streams, stream{request: found.request, documents: page.request.Size, selection: selections[0]})
		}
	} else if found.counted {
		found.request = p.requests.aggregation(page.filter)
		p.requests.all[found.request].Total = true
	}
	return func(w *Writer) {
		if found.request >= 0 && w.results.err != nil {
			w.NullWithError(output.ErrorOf(w.results.err).At(f.Position))
			return
		}
		w.object(members)
	}, nil
}

// hits writes the documents of one request.
type hits struct {
	// request is the index of the request, -1 for none.
	request int
	// counted is set if all documents are counted.
	counted bool
	// offset is the number of documents before the page.
	offset int
	// prefix is the path of the objects that contain the catalogue's fields in a document.
	prefix []string
}

// result returns the result of the request.
func (h *hits) result(w *Writer) *index.SearchResult {
	if h.request < 0 {
		return &index.SearchResult{}
	}
	return &w.results.searches[h.request]
}

// total writes the number of matching documents. If they were not counted, it is the number of documents up to the end of the
// page.
func (h *hits) total(w *Writer) {
	result := h.result(w)
	switch {
	case h.counted:
		w.Int(result.Total)
	case len(result.Hits) == 0:
		w.Int(0)
	default:
		w.Int(int64(h.offset + len(result.Hits)))
	}
}

// edges writes the documents.
func (h *hits) edges(w *Writer, e *selection.Edge) {
	found := h.result(w).Hits
	if n := len(found); n > 0 && found[n-1].Read && len(found[n-1].Source) == 0 { // the response was too large before the last document
		w.NullWithError(output.TooLarge())
		return
	}
	w.List(len(found), func(i int) {
		w.Documents.Edge(e, found[i].Source, selection.OffsetOf(found[i].Source, h.prefix), &found[i])
	})
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
func (p *Planner) page(ctx context.Context, f *ast.Field) (*page, *output.Error) {
	args := p.Arguments(f)
	g := &page{filter: p.LowerFilter(ctx, args, "filters"), counts: args.Bool("trackTotalHits", true)}
	g.request.Size, g.request.From = args.Int("first", DefaultFirst), args.Int("offset", 0)
	p.clamp(&g.request, args.Given("first") != nil)
	g.request.Sort = p.Sort(args)
	g.request.After = readSearchAfter(args, g.request.Sort)
	g.check(args)
	return g, args.Err()
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
func (g *page) check(args *request.Arguments) {
	first, offset := g.request.Size, g.request.From
	switch {
	case first < 0:
		args.Reject("first", "is negative")
	case offset < 0:
		args.Reject("offset", "is negative")
	case offset > 0 && g.request.After != nil:
		args.Reject("offset", "and searchAfter exclude each other")
	case first+offset > index.MaxWindow:
		args.Reject("offset", fmt.Sprintf(
			"plus first is more than %d documents: continue with the searchAfter of the last edge", index.MaxWindow,
		))
	}
}

// readSearchAfter reads the cursor of a page: the searchAfter of an edge in the same order.
func readSearchAfter(args *request.Arguments, keys []index.Sort) []json.RawMessage {
	v := args.Value("searchAfter")
	if !v.Exists() {
		return nil
	}
	items := v.Array()
	if !v.IsArray() || len(items) != len(keys) {
		args.Reject("searchAfter", fmt.Sprintf(
			"is not the searchAfter of an edge in this order, which has %d values including the tie-breaker", len(keys),
		))
		return nil
	}
	values := make([]json.RawMessage, len(items))
	for i, item := range items {
		if item.IsObject() || item.IsArray() {
			args.Reject("searchAfter", "must contain only scalar values")
		}
		values[i] = json.RawMessage(item.Raw)
		if item.Type == gjson.String && query.Keyed(keys[i].Field.Type) && output.UnsafeInteger([]byte(item.Str)) {
			values[i] = json.RawMessage(item.Str)
		}
	}
	return values
}

// Sort reads the sort keys in the argument sort. The last one is unique per document, so that the order is total.
func (p *Planner) Sort(args *request.Arguments) []index.Sort {
	var keys []index.Sort
	for i, item := range args.List("sort") {
		name, order, missing := item.Get("fieldName").String(), item.Get("order").String(), item.Get("missing").String()
		if item.Type == gjson.Null || name == scoreKey && !p.hasField(scoreKey) {
			continue
		}
		key, err := p.view.SortKey(name, index.Sort{
			Descending: order == "desc", Mode: item.Get("mode").String(),
			// An explicit ascending order has missing values first, as clients of Arranger expect.
			MissingFirst: missing == "first" || missing == "" && order == "asc",
		})
		if err != nil {
			args.Reject("sort", fmt.Sprintf("[%d]: %s", i, core.MessageOf(err)))
		}
		keys = append(keys, key)
		if key.Field.Path == p.identity.Field.Path {
			return keys
		}
	}
	return append(keys, p.identity)
}

// scoreKey is the sort key that table components of Arranger use if a column of counts is selected. Documents are not scored: all
// have the same score, so the other keys decide.
const scoreKey = "_score"

func (p *Planner) hasField(name string) bool {
	_, own := p.view.Field(name)
	return own
}

// Filter parses the filter in an argument. The schema declares it as JSON, so it is validated here.
func (p *Planner) Filter(args *request.Arguments, name string) sqon.Filter {
	raw := args.Raw(name)
	filter, err := p.view.Parse(raw)
	if err != nil {
		args.Fail(name, withIDHint(p.catalogue.model, output.ErrorOf(err), raw))
	}
	return filter
}

// LowerFilter parses the filter in an argument and translates it into an index query.
func (p *Planner) LowerFilter(ctx context.Context, args *request.Arguments, name string) *query.Node {
	filter := p.Filter(args, name)
	if args.Err() != nil {
		return nil
	}
	node, err := p.view.Lower(ctx, filter)
	if err != nil {
		args.Fail("", output.ErrorOf(err))
	}
	return node
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
