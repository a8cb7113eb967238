package execute

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
	"tutti/internal/search/graphql/schema"
	"tutti/internal/search/graphql/selection"
	"tutti/internal/search/view"
)

// Catalogue is a catalogue with its schema and what planning derives from them. It is safe for concurrent use.
type Catalogue struct {
	model  *catalogue.Model
	schema *schema.Schema
	// prefix is the path of the objects that contain the catalogue's fields.
	prefix []string
	// leaves is the number of values of a document.
	leaves int
	// window is the maximum number of documents per page.
	window int
}

// NewCatalogue returns the Catalogue of a model and its schema.
func NewCatalogue(m *catalogue.Model, s *schema.Schema) *Catalogue {
	c := &Catalogue{model: m, schema: s, leaves: selection.CountLeaves(s, s.Document+"Node"), window: maxPage(m)}
	if prefix := m.Definition().NestingPrefix; prefix != "" {
		c.prefix = strings.Split(prefix, ".")
	}
	return c
}

// Window returns the maximum number of documents per page.
func (c *Catalogue) Window() int { return c.window }

// maxPage returns the maximum page size: maxResultsWindow of the catalogue's table, up to the engine's limit.
func maxPage(m *catalogue.Model) int {
	var table struct {
		Window int `json:"maxResultsWindow"`
	}
	_ = json.Unmarshal(m.Definition().Table, &table) // validated before; without it, the window is 0
	if table.Window < 1 {
		return index.MaxWindow
	}
	return min(table.Window, index.MaxWindow)
}

// Plan is a planned operation: requests to the index, and the response that is written from their results. It is immutable and
// safe for concurrent use.
type Plan struct {
	// Rejected is set if the request is invalid: the response has only errors.
	Rejected bool
	// Reusable is set if the plan depends only on the operation, its variables, the catalogue and Identity.
	Reusable bool
	// Identity is the path of the field that identifies documents (view.View.Identity).
	Identity string
	// Weight is the size of the plan: members, requests, clauses. Each takes about 600 bytes at most.
	Weight int
	// Errors are those of planning; dropped counts the errors beyond the limit.
	Errors   []*output.Error
	dropped  int
	warnings []output.Warning
	members  []member
	// requests are the requests to the index, kind is their purpose.
	requests []index.SearchRequest
	kind     view.Kind
	// streams are the requests whose documents can be written while the index reads them.
	streams []stream
}

// stream is a request whose documents have one selection.
type stream struct {
	// request is the index of the request, documents the maximum number of documents.
	request, documents int
	selection          *selection.Set
}

// Resolver plans a field other than hits and aggregations. The plan of an operation with such a field is not Reusable.
type Resolver func(ctx context.Context, p *Planner, f *ast.Field) (Value, *output.Error)

// Planner plans one operation.
type Planner struct {
	*request.Operation

	catalogue *Catalogue
	view      *view.View
	// identity is the sort key that is unique per document.
	identity index.Sort
	resolve  Resolver
	requests requests
	streams  []stream
	warnings []output.Warning
	// problems has the errors, at the path of the field that is being planned.
	problems output.Writer
	rejected bool
	// resolved is set if the resolver planned a field.
	resolved bool
}

// New plans an operation for a view.
func New(ctx context.Context, c *Catalogue, op *request.Operation, v *view.View, resolve Resolver) *Plan {
	p := &Planner{Operation: op, catalogue: c, view: v, identity: v.Identity(), resolve: resolve}
	members := p.members(op.Root(), func(f *ast.Field) (Value, *output.Error) {
		if f.Name == c.schema.Document {
			return p.document(ctx, f), nil
		}
		return p.other(ctx, f)
	})
	return &Plan{
		Rejected: p.rejected, Reusable: !p.resolved && !v.UsedSets() && len(p.problems.Errors) == 0, Identity: p.identity.Field.Path,
		Weight: 1 + op.Collected() + p.requests.weight(), Errors: p.problems.Errors, dropped: p.problems.Dropped, warnings: p.warnings,
		members: members, requests: p.requests.all, kind: p.requests.kind(), streams: p.streams,
	}
}

// members plans the members of an object. do plans one field; its error rejects the request if the client caused it.
func (p *Planner) members(fields []*ast.Field, do func(f *ast.Field) (Value, *output.Error)) []member {
	all := make([]member, 0, len(fields))
	for _, f := range fields {
		if f.Name == "__typename" {
			all = append(all, member{f.Alias, text(f.ObjectDefinition.Name)})
			continue
		}
		p.problems.Push(f.Alias)
		value, bad := do(f)
		if bad != nil {
			p.problems.AddError(bad)
			p.rejected = p.rejected || bad.Code == output.CodeInput
			value = Null
		}
		p.problems.Pop()
		all = append(all, member{f.Alias, value})
	}
	return all
}

// Object plans the object of field f; do plans its fields.
func (p *Planner) Object(f *ast.Field, do func(f *ast.Field) (Value, *output.Error)) Value {
	return object(p.members(p.Below(f), do))
}

// document plans the fields of the catalogue.
func (p *Planner) document(ctx context.Context, f *ast.Field) Value {
	return p.Object(f, func(f *ast.Field) (Value, *output.Error) {
		switch f.Name {
		case "hits":
			return p.hits(ctx, f)
		case "aggregations":
			return p.aggregations(ctx, f)
		default:
			return p.other(ctx, f)
		}
	})
}

// other plans a field with the resolver.
func (p *Planner) other(ctx context.Context, f *ast.Field) (Value, *output.Error) {
	p.resolved = true
	return p.resolve(ctx, p, f)
}

// Selection returns the selection of JSON objects whose member names are the field names of their type.
func (p *Planner) Selection(f *ast.Field) *selection.Set {
	return p.selections(nil).Plain(f.Definition.Type.Name(), f.SelectionSet)
}

// Member returns the selection of one member of JSON objects, by the name of a field.
func (p *Planner) Member(f *ast.Field) *selection.Set { return p.selections(nil).Member(f) }

// selections returns a builder of selections that records what they read.
func (p *Planner) selections(reads *selection.Projection) selection.Builder {
	return selection.Builder{Op: p.Operation, Schema: p.catalogue.schema, Projection: reads, Reject: p.reject}
}

// reject records an error of the client in the field that is being planned: nothing is executed.
func (p *Planner) reject(bad *output.Error) {
	p.problems.AddError(bad)
	p.rejected = true
}

// View returns the view for which the operation is planned.
func (p *Planner) View() *view.View { return p.view }

// requests collects everything that an operation requests from the index, for one call.
type requests struct {
	all []index.SearchRequest
	// byKey holds the requests without documents by their filter: an engine computes facets over the same documents together, and
	// caches the result.
	byKey map[string]int
	// byFilter holds the requests of filters that were looked up before.
	byFilter map[*query.Node]int
	// facets are the requested facets, each shared by all aliases of a field.
	facets  map[facetKey]*facet
	hasHits bool
}

// facetKey is what the facets of a field depend on.
type facetKey struct {
	request         int
	path, fieldType string
	elements        string
}

// documents adds a request for documents and returns its index.
func (r *requests) documents(req index.SearchRequest) int {
	r.hasHits = true
	r.all = append(r.all, req)
	return len(r.all) - 1
}

// aggregation returns the index of the request without documents for a filter, and adds it if there is none.
func (r *requests) aggregation(filter *query.Node) int {
	if i, known := r.byFilter[filter]; known {
		return i
	}
	if r.byKey == nil {
		r.byKey, r.byFilter = map[string]int{}, map[*query.Node]int{}
	}
	key := string(appendFilterKey(nil, filter))
	i, known := r.byKey[key]
	if !known {
		i = len(r.all)
		r.all = append(r.all, index.SearchRequest{Filter: filter})
		r.byKey[key] = i
	}
	r.byFilter[filter] = i
	return i
}

// facet returns the facet of a field with these filters, and adds it if there is none.
func (r *requests) facet(n query.FacetFilters, name string, field query.Field) *facet {
	i := r.aggregation(n.Documents)
	key := facetKey{i, field.Path, field.Type, string(appendFilterKey(nil, n.Elements))}
	one := r.facets[key]
	if one == nil {
		if r.facets == nil {
			r.facets = map[facetKey]*facet{}
		}
		one = &facet{requests: r, request: i, name: name, field: field, elements: n.Elements, missingInPivot: n.MissingInPivot(field), missing: -1}
		r.facets[key] = one
	}
	return one
}

// kind returns the purpose of the requests.
func (r *requests) kind() view.Kind {
	switch {
	case len(r.facets) == 0:
		return view.KindHits
	case !r.hasHits:
		return view.KindFacets
	default:
		return view.KindMixed
	}
}

// weight returns the size of the requests.
func (r *requests) weight() int {
	n := 0
	for _, req := range r.all {
		n += 8 + clauses(req.Filter)
		for _, f := range req.Facets {
			n += 4 + clauses(f.Elements) + len(f.Ranges)
			if f.Buckets != nil {
				for _, filter := range f.Buckets.Filters {
					n += clauses(filter)
				}
			}
		}
	}
	return n
}

// clauses counts the nodes and values of a filter.
func clauses(n *query.Node) int {
	if n == nil {
		return 0
	}
	count := 1 + len(n.Terms)
	for _, child := range n.Children {
		count += clauses(child)
	}
	return count
}

// appendFilterKey encodes a filter so that two filters have the same encoding if and only if they are equal. Nil, which matches
// everything, is empty.
func appendFilterKey(dst []byte, n *query.Node) []byte {
	if n == nil {
		return dst
	}
	dst = strconv.AppendUint(append(dst, '('), uint64(n.Op), 10)
	dst = appendKeyPart(dst, n.Path)
	dst = appendKeyPart(dst, n.Field.Path)
	dst = appendKeyPart(dst, n.Field.Type)
	for _, term := range n.Terms {
		dst = appendKeyPart(dst, term)
	}
	dst = appendBoundKey(append(dst, '<'), n.From)
	dst = appendBoundKey(append(dst, '>'), n.To)
	for _, p := range n.Patterns {
		dst = appendKeyPart(dst, string(p))
	}
	if n.Fold {
		dst = append(dst, '~')
	}
	for _, child := range n.Children {
		dst = appendFilterKey(dst, child)
	}
	return append(dst, ')')
}

func appendKeyPart(dst []byte, s string) []byte {
	return append(append(strconv.AppendInt(append(dst, ':'), int64(len(s)), 10), ':'), s...)
}

func appendBoundKey(dst []byte, b query.Bound) []byte {
	if !b.Set {
		return dst
	}
	dst = strconv.AppendBool(dst, b.Inclusive)
	dst = appendKeyPart(dst, b.Number)
	return appendKeyPart(dst, strconv.FormatInt(b.Time.Unix(), 10)+"."+strconv.Itoa(b.Time.Nanosecond()))
}
