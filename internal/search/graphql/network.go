package graphql

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/graphql/execute"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/view"
)

// Network queries the nodes of federations.
type Network interface {
	// Membership reports whether a catalogue is part of a federation, and returns the fields that the other nodes can aggregate:
	// type names by GraphQL field name (schema.Options.Remote). The implementation calls Service.Forget when that changes.
	Membership(m *catalogue.Model) (federated bool, remote map[string]string)
	// Query queries all nodes. The error of a node is in its NetworkNode; the returned error fails the whole query.
	Query(ctx context.Context, view *view.View, r NetworkRequest) (NetworkAnswer, error)
}

// NetworkRequest is a query to the nodes.
type NetworkRequest struct {
	// Filters is the SQON as the client sent it, nil for none. Each of its fields belongs to this catalogue or to another node.
	Filters json.RawMessage
	// Lacking are the fields and pivots of Filters that this catalogue does not have, by the names in Filters.
	Lacking []string
	// Themselves and Missing are aggregations_filter_themselves and include_missing.
	Themselves, Missing bool
	// Nodes are the ids of the nodes to query; nil for all.
	Nodes []string
	// Fields are the requested aggregations, each field once; empty if only the nodes are requested.
	Fields []NetworkField
	// Header are the headers of the client's request, as passed to WithHeader.
	Header http.Header
	// Known reports whether some node can aggregate a field of Filters, or a field below it.
	Known func(name string) bool
	// Document is the root field of this catalogue. Own reports whether the catalogue has an aggregation. Local executes a query
	// on this catalogue as if the client had sent it; it is safe for concurrent use.
	Document string
	Own      func(field string) bool
	Local    func(ctx context.Context, r core.GraphQLRequest) core.GraphQLResponse
}

// NetworkField is the aggregation of one field, by its GraphQL name.
type NetworkField struct {
	Name string
	// Parts are its requested parts, for example buckets, with their arguments as JSON.
	Parts map[string]map[string]json.RawMessage
}

// NetworkAnswer is the merged response of the nodes.
type NetworkAnswer struct {
	Nodes []NetworkNode
	// Aggregations are by field name. Each is an object with all requested members of its type.
	Aggregations map[string]json.RawMessage
}

// NetworkNode is the result of one node.
type NetworkNode struct {
	// ID is "" for a node without one.
	ID     string `json:"nodeId,omitempty"`
	Name   string `json:"name"`
	Hits   int64  `json:"hits"`
	Status string `json:"status"`
	Errors string `json:"errors"`
}

// nodeAggregations is the type of the aggregations of a federation.
const nodeAggregations = "NodeAggregations"

// headerKey is the context key of the client's request headers.
type headerKey struct{}

// WithHeader returns a context with headers of the client's request, which are forwarded to other nodes of a federation.
func WithHeader(ctx context.Context, h http.Header) context.Context {
	return context.WithValue(ctx, headerKey{}, h)
}

// network plans the query to a federation. It is sent when the field is written.
func (s *resolver) network(ctx context.Context, p *execute.Planner, f *ast.Field) (execute.Value, *output.Error) {
	if s.service.cfg.Network == nil {
		return nil, (&output.Error{Message: "this catalogue is not part of a network", Code: output.CodeInput}).At(f.Position)
	}
	args := p.Arguments(f)
	r := NetworkRequest{
		Filters: args.Raw("filters"), Document: s.served.schema.Document, Nodes: args.Texts("nodesFilter"),
		Themselves: args.Bool("aggregations_filter_themselves", false), Missing: args.Bool("include_missing", true),
		Local: func(ctx context.Context, r core.GraphQLRequest) core.GraphQLResponse {
			return s.local(ctx, p.View(), r)
		},
		Known: s.networkHas,
		Own: func(field string) bool {
			_, own := s.served.schema.Aggregated[field]
			return own
		},
	}
	r.Header, _ = ctx.Value(headerKey{}).(http.Header)
	if bad := s.networkFilter(p, &r, f); bad != nil {
		return nil, bad
	}
	for _, part := range p.Below(f) {
		if part.Name != "aggregations" {
			continue
		}
		if bad := s.networkFields(p, &r, part); bad != nil {
			return nil, bad
		}
	}
	selection := p.Selection(f)
	return func(w *execute.Writer) {
		answer, err := s.service.cfg.Network.Query(ctx, p.View(), r)
		if err != nil {
			w.NullWithError(output.ErrorOf(err).At(f.Position))
			return
		}
		if answer.Nodes == nil {
			answer.Nodes = []NetworkNode{}
		}
		raw := toJSON(map[string]any{"nodes": answer.Nodes, "aggregations": answer.Aggregations})
		w.Documents.Document(selection, raw, 0, nil)
	}, nil
}

// networkFilter checks the filter and records its fields. A filter with fields of other nodes is checked by those nodes.
func (s *resolver) networkFilter(p *execute.Planner, r *NetworkRequest, f *ast.Field) *output.Error {
	args := p.Arguments(f)
	p.Filter(args, "filters")
	bad := args.Err()
	filter, err := sqon.Parse(r.Filters)
	if err != nil || bad != nil && s.served.model.Definition().DisableFilters {
		return bad
	}
	s.noteLacking(r, filter.Root)
	foreign := func(name string) bool { return !s.networkHas(name) }
	if len(r.Lacking) > 0 && !slices.ContainsFunc(r.Lacking, foreign) {
		return nil
	}
	return bad
}

// noteLacking records the fields and pivots of a filter that this catalogue does not have.
func (s *resolver) noteLacking(r *NetworkRequest, n *sqon.Node) {
	if n == nil {
		return
	}
	names := n.Fields
	if n.Pivot != "" {
		names = append(slices.Clip(names), n.Pivot)
	}
	for _, name := range names {
		if _, own := s.served.model.Field(name); !own && name != view.IDField {
			r.Lacking = append(r.Lacking, name)
		}
	}
	for _, child := range n.Content {
		s.noteLacking(r, child)
	}
}

// networkHas reports whether some node can aggregate a field, or a field below it.
func (s *resolver) networkHas(dotted string) bool {
	name := strings.ReplaceAll(dotted, ".", "__")
	all := s.served.schema.AST.Types[nodeAggregations]
	return all != nil && slices.ContainsFunc(all.Fields, func(field *ast.FieldDefinition) bool {
		return field.Name == name || strings.HasPrefix(field.Name, name+"__")
	})
}

// networkFields adds the requested aggregations.
func (s *resolver) networkFields(p *execute.Planner, r *NetworkRequest, aggregations *ast.Field) *output.Error {
	for _, f := range p.Below(aggregations) {
		if f.Name == "__typename" {
			continue
		}
		i := slices.IndexFunc(r.Fields, func(known NetworkField) bool { return known.Name == f.Name })
		if i < 0 {
			r.Fields = append(r.Fields, NetworkField{Name: f.Name, Parts: map[string]map[string]json.RawMessage{}})
			i = len(r.Fields) - 1
		}
		for _, part := range p.Below(f) {
			if bad := networkPart(p, &r.Fields[i], part); bad != nil {
				return bad
			}
		}
	}
	return nil
}

// networkPart adds one requested part of a field. A part may be requested once, and only for counts.
func networkPart(p *execute.Planner, field *NetworkField, part *ast.Field) *output.Error {
	if part.Name == "__typename" {
		return nil
	}
	for _, below := range p.Below(part) {
		if below.Name == "top_hits" || below.Name == "filter_by_term" {
			return output.InputError(fmt.Sprintf("network aggregations have only document counts by value: %s is not available", below.Name)).At(below.Position)
		}
	}
	arguments := map[string]json.RawMessage{}
	for _, arg := range part.Arguments {
		arguments[arg.Name] = p.Arguments(part).Raw(arg.Name)
	}
	known, before := field.Parts[part.Name]
	same := func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
	if before && !maps.EqualFunc(known, arguments, same) {
		return output.InputError(fmt.Sprintf("a network aggregation has only one %s per field: use the same arguments wherever %s has it", part.Name, field.Name)).At(part.Position)
	}
	field.Parts[part.Name] = arguments
	return nil
}

// local executes a query that was built for the nodes of a federation on this catalogue, for the same client. Query limits do not
// apply: they are for client queries, and this one is as large as the query to the federation.
func (s *resolver) local(ctx context.Context, v *view.View, r core.GraphQLRequest) core.GraphQLResponse {
	op, faults := s.served.parser.ParseTrusted(r)
	if len(faults) > 0 {
		return output.Rejection(faults...)
	}
	return s.service.executor.Execute(ctx, v, execute.New(ctx, s.served.planned, op, v, s.resolve), r.Caller)
}
