package schema

import (
	"maps"
	"slices"
	"strings"

	"tutti/internal/index/mapping"
)

// typeAlias is the type of a field that refers to another one and is in no document.
const typeAlias mapping.Type = "alias"

// container is a container whose type has not been written yet.
type container struct {
	// name is its dotted name, "" for the document.
	name  string
	field *mapping.Field
	// typeName is the type that has its members, base the prefix of the type names below it.
	typeName, base string
}

// objects writes the types of everything in documents. Type names are assigned from the outside in, so that deep types never take
// the name of one above them.
func (b *builder) objects() {
	document := b.schema.Document
	places := []container{{field: b.model.Root(), typeName: document + nodeSuffix, base: document}}
	for len(places) > 0 {
		places = append(places[1:], b.object(places[0])...)
	}
}

// object writes the type of a container, and returns the containers below it.
func (b *builder) object(p container) []container {
	keys := shownKeys(p.field)
	taken, head := []string(nil), "type "+p.typeName+" {\n"
	if p.name == "" {
		taken, head = []string{"id", "score"}, "type "+p.typeName+" implements Node {\n  id: ID!\n  score: Int\n"
	}
	leaves := newNames(taken...).claimAll(keys, fieldName, rankChange)
	o := &Object{Name: p.name, Members: make(map[string]Member, len(keys))}
	b.schema.objects[p.typeName] = o
	var below []container
	var connections strings.Builder
	b.out.WriteString(head)
	for i, key := range keys {
		m := Member{Key: key, Name: joined(p.name, key)}
		child := p.field.Properties[key]
		extended, _ := b.model.Extended(m.Name)
		isArray := extended.IsArray != nil && *extended.IsArray
		switch {
		case child.Type == mapping.Nested && len(shownKeys(child)) > 0:
			m.Kind, m.Type = Connection, b.types.claim(typeName(p.base, leaves[i]))
			m.Node = b.connection(&connections, m.Type)
			below = append(below, container{m.Name, child, m.Node, m.Type})
		case child.Container() && len(shownKeys(child)) > 0:
			m.Kind, m.Type, m.List = Plain, b.types.claim(typeName(p.base, leaves[i])), isArray
			below = append(below, container{m.Name, child, m.Type, m.Type})
		default: // a container without members is the JSON value
			m.Kind, m.Type, m.List = Scalar, scalarOf(string(child.Type)), isArray || child.Type == mapping.Nested
		}
		o.Members[leaves[i]] = m
		describe(&b.out, extended.Description, key, key == leaves[i])
		b.out.WriteString("  " + leaves[i] + ": " + typeText(m) + "\n")
	}
	b.out.WriteString("}\n\n")
	b.out.WriteString(connections.String())
	return below
}

// connection writes the types between a nested field and its elements, and returns the type of the elements.
func (b *builder) connection(out *strings.Builder, name string) (node string) {
	connection, edge := b.types.claim(name+connectionSuffix), b.types.claim(name+edgeSuffix)
	node = b.types.claim(name + nodeSuffix)
	out.WriteString("type " + name + " {\n" + nestedHits + connection + "\n}\n\n")
	connectionTypes(out, connection, edge, node)
	return node
}

// connectionTypes writes the types of a connection and its edges.
func connectionTypes(out *strings.Builder, connection, edge, node string) {
	out.WriteString("type " + connection + " {\n  total: Int!\n  edges: [" + edge + "]\n}\n\n")
	out.WriteString("type " + edge + " {\n  searchAfter: JSON\n  node: " + node + "\n}\n\n")
}

// shownKeys returns the members of a container that documents hold, by name.
func shownKeys(f *mapping.Field) []string {
	keys := slices.Sorted(maps.Keys(f.Properties))
	return slices.DeleteFunc(keys, func(key string) bool { return f.Properties[key].Type == typeAlias })
}

func typeText(m Member) string {
	if m.List {
		return "[" + m.Type + "]"
	}
	return m.Type
}

func joined(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}
