package plan

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/view"
)

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
