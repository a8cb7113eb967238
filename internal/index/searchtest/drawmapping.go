package searchtest

import (
	"encoding/json"
	"fmt"
	"slices"

	"tutti/internal/index/mapping"
)

// maxNested is how deep nested fields are in each other.
const maxNested = 3

// mappingMaker makes a mapping.
type mappingMaker struct {
	draw
	types []mapping.Type
	made  int
}

// drawMapping returns a mapping of fields of all kinds and the keyword uid; extra are types beside those that all engines have.
func drawMapping(d draw, extra []mapping.Type) *mapping.Field {
	m := mappingMaker{draw: d, types: append([]mapping.Type{
		"keyword", "keyword", "keyword", "long", "integer", "short", "byte", "double", "float", "half_float", "boolean", "date",
		"date_nanos", "ip", "text", "flattened",
	}, extra...)}
	root := mapping.NewRoot()
	m.fill(root, "", 0, 0)
	root.Properties["uid"] = &mapping.Field{Type: mapping.Keyword}
	return root
}

// name returns a name that no other field has.
func (m *mappingMaker) name(of mapping.Type) string {
	m.made++
	separator := pick(m.draw, []string{"", "", "", "_", "-"})
	return fmt.Sprintf("%s%s%d", of, separator, m.made)
}

// fill makes the fields of a container.
func (m *mappingMaker) fill(f *mapping.Field, path string, nested, depth int) {
	f.Properties = map[string]*mapping.Field{}
	var aimed []string
	for range m.between(1, 4) {
		t := pick(m.draw, m.types)
		name := m.name(t)
		f.Properties[name] = m.leaf(t)
		aimed = append(aimed, join(path, name))
	}
	if m.in(25) {
		target, _ := json.Marshal(pick(m.draw, aimed)) // a text has a form in JSON
		f.Properties[m.name("alias")] = &mapping.Field{Type: "alias", Params: map[string]json.RawMessage{"path": target}}
	}
	if depth >= 4 {
		return
	}
	for range m.IntN(3) {
		t := mapping.Object
		below := nested
		if nested < maxNested && m.in(70) {
			t, below = mapping.Nested, nested+1
		}
		name := m.name(t)
		child := &mapping.Field{Type: t}
		m.fill(child, join(path, name), below, depth+1)
		f.Properties[name] = child
	}
}

// leaf makes a field with values.
func (m *mappingMaker) leaf(t mapping.Type) *mapping.Field {
	f := &mapping.Field{Type: t}
	switch {
	case t == mapping.Keyword && m.in(15):
		f.Params = map[string]json.RawMessage{"ignore_above": json.RawMessage("3")}
	case t == mapping.Keyword && m.in(10):
		f.Fields = map[string]*mapping.Field{"short": {Type: mapping.Keyword, Params: map[string]json.RawMessage{"ignore_above": json.RawMessage("2")}}}
	case t == "text" && m.in(60):
		f.Fields = map[string]*mapping.Field{"raw": {Type: mapping.Keyword}}
	case t == "scaled_float":
		f.Params = map[string]json.RawMessage{"scaling_factor": json.RawMessage("100")}
	}
	return f
}

// poolAt returns the pool of a field: what is asked of a keyword below a text is that of both.
func poolAt(fields *fieldSet, name string) pool {
	f := fields.byName[name]
	p := poolOf(f.mapped.Type)
	if above, raw := fields.byName[parentOf(f.Path)]; raw && above.mapped.Type == "text" {
		p.asked = slices.Concat(p.asked, poolOf("text").stored, poolOf("text").asked)
	}
	return p
}
