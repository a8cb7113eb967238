package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// describe writes the description of a field: the configured one, or the dotted name if the GraphQL name does not show it.
func describe(out *strings.Builder, description, name string, seen bool) {
	if description == "" && !seen {
		description = "The field " + name + "."
	}
	if description != "" {
		out.WriteString("  ")
		quote(out, description)
		out.WriteByte('\n')
	}
}

// quote writes a GraphQL string. Invalid UTF-8 becomes U+FFFD.
func quote(out *strings.Builder, text string) {
	out.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError:
			_, _ = fmt.Fprintf(out, `\u%04X`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
}

// root writes the schema definition and the root type.
func (b *builder) root() {
	document := b.schema.Document
	b.out.WriteString("schema {\n  query: Root\n  mutation: Mutation\n}\n\ntype Root {\n  " + document + ": " + document + "\n  sets: sets\n")
	if b.options.Network {
		b.out.WriteString(networkField)
	}
	if document != "hasValidConfig" {
		b.out.WriteString(validField)
	}
	b.out.WriteString("}\n\nenum DocumentType {\n  " + document + "\n  sets\n}\n\n")
}

// document writes the types around the nodes of the catalogue.
func (b *builder) document(aggregated bool) {
	name := b.schema.Document
	b.out.WriteString("type " + name + " {\n" + documentHits + name + connectionSuffix + "\n")
	if aggregated {
		b.out.WriteString(documentAggregations + name + aggregationsSuffix + "\n")
	}
	b.out.WriteString(documentRest + "}\n\n")
	connectionTypes(&b.out, name+connectionSuffix, name+edgeSuffix, name+nodeSuffix)
}
