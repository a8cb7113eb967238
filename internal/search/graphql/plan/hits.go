package plan

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/response"
	"tutti/internal/search/graphql/selection"
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
