package plan

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
)

// DefaultFirst is the default page size.
const DefaultFirst = 10

// page holds the arguments of hits.
type page struct {
	filter  *query.Node
	request index.HitsRequest
	counts  bool
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
