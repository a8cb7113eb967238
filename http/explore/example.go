package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
)

// maxExampleFields bounds the fields of documents in an example, of which one may be nested, and maxExamples its facets.
const maxExampleFields, maxExamples = 5, 2

// Example returns a GraphQL query with some documents and facets of a catalogue, indented for people. Its variable is filters.
func Example(document string, fields []core.CatalogueField) string {
	l := NewLayout(fields, gjson.Result{})
	root, nested := &selection{}, nestedOf(fields)
	chosen, deep := 0, false
	for _, f := range l.Columns {
		below := slices.ContainsFunc(fields, func(c core.CatalogueField) bool { return nested[c.Name] && strings.HasPrefix(f.Name, c.Name+".") })
		if fieldtype.Of(f.Type).Analyzed() || f.Name == "id" || below && deep || chosen == maxExampleFields {
			continue
		}
		root.add(strings.Split(f.Name, "."))
		chosen, deep = chosen+1, deep || below
	}
	var b strings.Builder
	b.WriteString("query ($filters: JSON) {\n  " + document + " {\n    hits(filters: $filters, first: 5) {\n      total\n      edges {\n        node {\n          id\n")
	root.indent(&b, strings.Repeat("  ", 5), "", nested)
	b.WriteString("        }\n      }\n    }\n")
	if len(l.Terms)+len(l.Ranges) > 0 {
		b.WriteString("    aggregations(filters: $filters) {\n")
		for _, f := range l.Terms[:min(len(l.Terms), maxExamples)] {
			fmt.Fprintf(&b, "      %s {\n        bucket_count\n        buckets(max: 10) {\n          key\n          doc_count\n        }\n      }\n", AggregationName(f.Name))
		}
		for _, f := range l.Ranges[:min(len(l.Ranges), 1)] {
			fmt.Fprintf(&b, "      %s {\n        stats {\n          min\n          max\n        }\n      }\n", AggregationName(f.Name))
		}
		b.WriteString("    }\n")
	}
	b.WriteString("  }\n}\n")
	return b.String()
}

// indent writes one line for each name.
func (s *selection) indent(b *strings.Builder, margin, prefix string, nested map[string]bool) {
	for _, name := range s.names {
		child := s.children[name]
		switch {
		case len(child.names) == 0:
			b.WriteString(margin + name + "\n")
		case nested[prefix+name]:
			b.WriteString(margin + name + " {\n" + margin + "  hits {\n" + margin + "    edges {\n" + margin + "      node {\n")
			child.indent(b, margin+"        ", prefix+name+".", nested)
			b.WriteString(margin + "      }\n" + margin + "    }\n" + margin + "  }\n" + margin + "}\n")
		default:
			b.WriteString(margin + name + " {\n")
			child.indent(b, margin+"  ", prefix+name+".", nested)
			b.WriteString(margin + "}\n")
		}
	}
}
