package searchtest

import (
	"encoding/json"
	"fmt"
	"slices"

	"tutti/internal/fieldtype"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest/model"
)

// maxNested is the maximum depth of nested fields within each other.
const maxNested = 3

// mappingGenerator generates a mapping.
type mappingGenerator struct {
	draw
	types  []mapping.Type
	fields int
}

// drawnTypes returns the types of random mappings: by Elasticsearch's names all that have filters, but those without, and keywords more often
// than others. Fields of constant_keyword have the same value in all documents, which a random one does not say.
func drawnTypes(without []mapping.Type) []mapping.Type {
	types := []mapping.Type{"keyword", "keyword"}
	for _, name := range fieldtype.Names(func(t *fieldtype.Type) bool { return t.Searchable() && t.Has(fieldtype.Elasticsearch) }) {
		if t := mapping.Type(name); t != "constant_keyword" && !slices.Contains(without, t) {
			types = append(types, t)
		}
	}
	return types
}

// drawMapping returns a random mapping of some types with the keyword uid.
func drawMapping(d draw, types []mapping.Type) *mapping.Field {
	m := mappingGenerator{draw: d, types: types}
	root := mapping.NewRoot()
	m.fill(root, "", 0, 0)
	root.Properties["uid"] = &mapping.Field{Type: mapping.Keyword}
	return root
}

// name returns a unique name.
func (m *mappingGenerator) name(of mapping.Type) string {
	m.fields++
	separator := pick(m.draw, []string{"", "", "", "_", "-"})
	return fmt.Sprintf("%s%s%d", of, separator, m.fields)
}

// fill adds random fields to a container.
func (m *mappingGenerator) fill(f *mapping.Field, path string, nested, depth int) {
	f.Properties = map[string]*mapping.Field{}
	var aimed []string
	for range m.between(1, 4) {
		t := pick(m.draw, m.types)
		name := m.name(t)
		f.Properties[name] = m.leaf(t)
		aimed = append(aimed, model.Join(path, name))
	}
	if m.percent(25) {
		target, _ := json.Marshal(pick(m.draw, aimed)) // a string always encodes
		f.Properties[m.name("alias")] = &mapping.Field{Type: "alias", Params: map[string]json.RawMessage{"path": target}}
	}
	if depth >= 4 {
		return
	}
	for range m.IntN(3) {
		t := mapping.Object
		below := nested
		if nested < maxNested && m.percent(70) {
			t, below = mapping.Nested, nested+1
		}
		name := m.name(t)
		child := &mapping.Field{Type: t}
		m.fill(child, model.Join(path, name), below, depth+1)
		f.Properties[name] = child
	}
}

// leaf returns a random field with values.
func (m *mappingGenerator) leaf(t mapping.Type) *mapping.Field {
	f := leafOf(t)
	switch {
	case t == mapping.Keyword && m.percent(15):
		f.Params = map[string]json.RawMessage{"ignore_above": json.RawMessage("3")}
	case t == mapping.Keyword && m.percent(10):
		f.Fields = map[string]*mapping.Field{"short": {Type: mapping.Keyword, Params: map[string]json.RawMessage{"ignore_above": json.RawMessage("2")}}}
	case t == "text" && m.percent(60):
		f.Fields = map[string]*mapping.Field{"raw": {Type: mapping.Keyword}}
	}
	return f
}

// leafOf returns a field with the parameters that its type needs.
func leafOf(t mapping.Type) *mapping.Field {
	f := &mapping.Field{Type: t}
	if t == "scaled_float" {
		f.Params = map[string]json.RawMessage{"scaling_factor": json.RawMessage("100")}
	}
	return f
}

// poolAt returns the pool of a field. The values for a keyword below a text include those of the text.
func poolAt(fields *model.FieldSet, name string) pool {
	f := fields.ByName[name]
	p := poolOf(f.Mapped.Type)
	if above, raw := fields.ByName[parentOf(f.Path)]; raw && above.Mapped.Type == "text" {
		p.values = slices.Concat(p.values, poolOf("text").stored, poolOf("text").values)
	}
	return p
}
