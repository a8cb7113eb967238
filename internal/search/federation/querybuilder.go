package federation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tutti/internal/search/graphql"
)

// aggregate is the requested aggregation of one field.
type aggregate struct {
	name  string
	parts map[string]graphql.NetworkPart
}

// aggregates converts the requested fields.
func aggregates(fields []graphql.NetworkField) []*aggregate {
	all := make([]*aggregate, len(fields))
	for i, f := range fields {
		all[i] = &aggregate{name: f.Name, parts: map[string]graphql.NetworkPart{}}
		for _, part := range f.Parts {
			all[i].parts[part.Name] = part
		}
	}
	return all
}

func (g *aggregate) requests(part string) bool {
	_, asked := g.parts[part]
	return asked
}

// terms reports whether values or their number are requested: the number is computed from the values.
func (g *aggregate) terms() bool {
	return g.requests("buckets") || g.requests("bucket_count") || g.requests("cardinality")
}

// of returns the name of the field's type as implied by the requested parts; "" for none.
func (g *aggregate) of() string {
	switch {
	case g.terms():
		return termsType
	case len(g.parts) > 0:
		return numericType
	default:
		return ""
	}
}

// argument returns an argument of a part; nil if it is absent.
func (g *aggregate) argument(part, name string) json.RawMessage {
	raw := g.parts[part].Arguments[name]
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// queryBuilder builds the query for one node. All arguments are variables, so that no client input is part of the query text.
type queryBuilder struct {
	fields strings.Builder
	types  map[string]string
	values map[string]json.RawMessage
}

// field adds a field that the node has.
func (w *queryBuilder) field(g *aggregate) {
	if len(g.parts) == 0 {
		return
	}
	w.fields.WriteString(" " + g.name + " {")
	if g.terms() {
		// All values are needed, even if few are requested: the most frequent values of all nodes may be rare in one.
		w.fields.WriteString(" buckets { key key_as_string doc_count }")
	}
	if g.requests("stats") {
		w.fields.WriteString(" stats { min max sum count }")
	}
	if g.requests("histogram") {
		w.fields.WriteString(" histogram" + w.argument(g, "histogram", "interval", "Float") + " { buckets { key key_as_string doc_count } }")
	}
	if g.requests("range") {
		w.fields.WriteString(" range" + w.argument(g, "range", "ranges", "[RangesArg]") + " { buckets { key key_as_string doc_count } }")
	}
	w.fields.WriteString(" }")
}

// argument returns an argument of a part, "" if it is absent.
func (w *queryBuilder) argument(g *aggregate, part, name, of string) string {
	raw := g.argument(part, name)
	if raw == nil {
		return ""
	}
	variable := fmt.Sprint("a", len(w.types))
	w.declare(variable, of, raw)
	return "(" + name + ": $" + variable + ")"
}

func (w *queryBuilder) declare(variable, of string, value json.RawMessage) {
	if w.types == nil {
		w.types, w.values = map[string]string{}, map[string]json.RawMessage{}
	}
	w.types[variable], w.values[variable] = of, value
}

// query returns the complete query.
func (w *queryBuilder) query(document string, filter json.RawMessage, r graphql.NetworkRequest) nodeQuery {
	filters := ""
	if filter != nil {
		w.declare("filters", "JSON", filter)
		filters = "filters: $filters"
	}
	text := document + " { hits"
	if filters != "" {
		text += "(" + filters + ")"
	}
	text += " { total }"
	if w.fields.Len() > 0 {
		w.declare("themselves", "Boolean", flag(r.Themselves))
		w.declare("missing", "Boolean", flag(r.Missing))
		text += " aggregations(" + filters + " aggregations_filter_themselves: $themselves include_missing: $missing) {" + w.fields.String() + " }"
	}
	head := "query node"
	if len(w.types) > 0 {
		var declared []string
		for _, name := range slices.Sorted(maps.Keys(w.types)) {
			declared = append(declared, "$"+name+": "+w.types[name])
		}
		head += "(" + strings.Join(declared, ", ") + ")"
	}
	return nodeQuery{Query: head + " { " + text + " } }", Variables: w.values, aggregates: w.fields.Len() > 0}
}

func flag(is bool) json.RawMessage {
	if is {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}
