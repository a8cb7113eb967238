package schema

import (
	"maps"
	"slices"
	"strings"
)

// aggregation is a field of the document's aggregations.
type aggregation struct {
	// name is the GraphQL name, field the dotted name in the catalogue, "" for a field that only other nodes have.
	name, field string
	// of is the GraphQL type.
	of string
}

// aggregations returns the fields that can be aggregated, including aliases, runtime fields and multi-fields with their full
// paths.
func (b *builder) aggregations() []aggregation {
	var fields, types []string
	for name := range b.model.Names() {
		f, _ := b.model.Field(name)
		if of := aggregationsOf(f.Type); of != "" {
			fields, types = append(fields, name), append(types, of)
		}
	}
	out := make([]aggregation, len(fields))
	for i, name := range newNames().claimAll(fields, aggregationName, rankPathChange) {
		out[i] = aggregation{name, fields[i], types[i]}
		b.schema.values[name] = fields[i]
	}
	return out
}

// aggregationTypes writes the aggregation types of the document, and of a federation. A GraphQL type needs fields: without any
// there is no type.
func (b *builder) aggregationTypes(fields []aggregation) {
	b.aggregationType(b.schema.Document+aggregationsSuffix, fields)
	if !b.options.Network {
		return
	}
	fields = append(fields, b.remote()...)
	b.aggregationType(nodeAggregations, fields)
	b.out.WriteString("type Network {\n  nodes: [NetworkNode]\n")
	if len(fields) > 0 {
		b.out.WriteString("  aggregations: " + nodeAggregations + "\n")
	}
	b.out.WriteString("}\n\n" + networkNode)
}

func (b *builder) aggregationType(name string, fields []aggregation) {
	if len(fields) == 0 {
		return
	}
	b.out.WriteString("type " + name + " {\n")
	for _, f := range fields {
		if f.field != "" {
			extended, _ := b.model.Extended(f.field)
			describe(&b.out, extended.Description, f.field, strings.ReplaceAll(f.field, ".", "__") == f.name)
		}
		b.out.WriteString("  " + f.name + ": " + f.of + "\n")
	}
	b.out.WriteString("}\n\n")
}

// remote returns the fields that only other nodes can aggregate, by name. Names from other nodes may be invalid GraphQL; those
// are left out.
func (b *builder) remote() []aggregation {
	var out []aggregation
	for _, name := range slices.Sorted(maps.Keys(b.options.Remote)) {
		of := b.options.Remote[name]
		_, own := b.schema.values[name]
		if own || !isName(name) || of != termsAggregations && of != numericAggregations {
			continue
		}
		out = append(out, aggregation{name: name, of: of})
	}
	return out
}
