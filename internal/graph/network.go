package graph

import (
	"context"
	"encoding/json"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/catalogue"
	"tutti/internal/search"
	"tutti/internal/sqon"
)

// Network asks the nodes of federations.
type Network interface {
	// Of tells whether a catalogue is part of a federation, and gives the fields that the other nodes of it can aggregate, by
	// their names in GraphQL, with the names of their types (schema.Options.Remote).
	Of(m *catalogue.Model) (federated bool, remote map[string]string)
	// Ask asks all nodes. What one of them fails at is in its node of the answer; an error is that of the whole.
	Ask(ctx context.Context, view *search.View, r NetworkRequest) (NetworkAnswer, error)
}

// NetworkRequest is what the nodes are asked.
type NetworkRequest struct {
	// Filters are as the client sent them, nil for none; they fit the fields of this catalogue, as does Filter.
	Filters json.RawMessage
	Filter  sqon.Filter
	// Themselves and Missing are aggregations_filter_themselves and include_missing.
	Themselves, Missing bool
	// Nodes are the ids of those that are asked; nil for all.
	Nodes []string
	// Fields are the aggregations that are asked for; none when the nodes alone are.
	Fields []NetworkField
}

// NetworkField is the aggregation of one field, by its name in GraphQL, and what is asked of it.
type NetworkField struct {
	Name  string
	Parts []NetworkPart
}

// NetworkPart is one part of an aggregation, such as buckets, with its arguments as JSON.
type NetworkPart struct {
	Name      string
	Arguments map[string]json.RawMessage
}

// NetworkAnswer is what the nodes said together.
type NetworkAnswer struct {
	Nodes []NetworkNode
	// Aggregations are by the names of the fields, each an object with everything that its type has and that was asked for.
	Aggregations map[string]json.RawMessage
}

// NetworkNode is how one node fared.
type NetworkNode struct {
	ID     string `json:"nodeId"`
	Name   string `json:"name"`
	Hits   int64  `json:"hits"`
	Status string `json:"status"`
	Errors string `json:"errors"`
}

// network plans the question to a federation. It is asked when its place in the answer is written.
func (x *execution) network(ctx context.Context, f *ast.Field) (write, *fault) {
	if x.cfg.Network == nil {
		return nil, (&fault{message: "this catalogue is part of no network", code: codeInput}).at(f.Position)
	}
	args := x.args(f)
	r := NetworkRequest{Filters: args.raw("filters")}
	var bad *fault
	if r.Filter, bad = x.filter(f, "filters"); bad != nil {
		return nil, bad
	}
	if r.Themselves, bad = args.flag("aggregations_filter_themselves", false); bad != nil {
		return nil, bad
	}
	if r.Missing, bad = args.flag("include_missing", true); bad != nil {
		return nil, bad
	}
	if r.Nodes, bad = args.texts("nodesFilter"); bad != nil {
		return nil, bad
	}
	for _, part := range x.below(f) {
		if part.Name == "aggregations" {
			r.Fields = append(r.Fields, x.networkFields(part)...)
		}
	}
	shape := x.plainShape(f.Definition.Type.Name(), f.SelectionSet)
	return func(w *answer) bool {
		answer, err := x.cfg.Network.Ask(ctx, x.view, r)
		if err != nil {
			return w.failed(faultOf(err).at(f.Position))
		}
		if answer.Nodes == nil {
			answer.Nodes = []NetworkNode{}
		}
		raw := marshalled(map[string]any{"nodes": answer.Nodes, "aggregations": answer.Aggregations})
		return w.shaped(shape, raw, 0, nil)
	}, nil
}

// networkFields gives what is asked of the fields of a federation.
func (x *execution) networkFields(aggregations *ast.Field) []NetworkField {
	var fields []NetworkField
	for _, f := range x.below(aggregations) {
		if f.Name == "__typename" {
			continue
		}
		field := NetworkField{Name: f.Name}
		for _, part := range x.below(f) {
			if part.Name == "__typename" {
				continue
			}
			one := NetworkPart{Name: part.Name, Arguments: map[string]json.RawMessage{}}
			for _, arg := range part.Arguments {
				one.Arguments[arg.Name] = x.args(part).raw(arg.Name)
			}
			field.Parts = append(field.Parts, one)
		}
		fields = append(fields, field)
	}
	return fields
}
