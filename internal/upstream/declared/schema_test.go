package declared_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/index/mapping"
	"tutti/internal/upstream/declared"
)

// typesOf returns the decided types by path, "" for paths without one.
func typesOf(types *mapping.Types) map[string]mapping.Type {
	found := map[string]mapping.Type{}
	for path, d := range types.All() {
		found[path] = d.Type
	}
	return found
}

func TestSchema(t *testing.T) {
	t.Parallel()
	const k, l, d, b, date, none = mapping.Keyword, mapping.Long, mapping.Double, mapping.Boolean, mapping.Date, mapping.Type("")
	tests := []struct {
		name, schema string
		want         map[string]mapping.Type
	}{
		{
			"types", `{"properties":{"a":{"type":"number"},"b":{"type":"integer"},"c":{"type":"string"},"d":{"type":"boolean"},"e":{"type":"null"},"f":{}}}`,
			map[string]mapping.Type{"a": d, "b": l, "c": k, "d": b},
		},
		{
			"formats", `{"properties":{"a":{"type":"string","format":"date"},"b":{"type":["null","string"],"format":"date-time"},"c":{"type":"string","format":"time"},"d":{"format":"date"}}}`,
			map[string]mapping.Type{"a": date, "b": date, "c": k},
		},
		{
			"several types", `{"properties":{"a":{"type":["integer","null"]},"b":{"type":["integer","number"]},"c":{"type":["number","string"]},"d":{"type":["boolean","integer"]},"e":{"type":["object","string"]}}}`,
			map[string]mapping.Type{"a": l, "b": d, "c": k, "d": k, "e": none},
		},
		{
			"below objects and arrays", `{"properties":{"o":{"type":"object","properties":{"x":{"type":"integer"}}},"l":{"type":"array","items":{"type":"array","items":{"properties":{"y":{"type":"number"}}}}},
			"t":{"items":[{"type":"integer"},{"type":"number"}]},"p":{"prefixItems":[{"type":"integer"}],"items":{"type":"string"}}}}`,
			map[string]mapping.Type{"o": none, "o.x": l, "l.y": d, "t": d, "p": k},
		},
		{
			"alternatives", `{"allOf":[{"properties":{"a":{"type":"integer"}}}],"anyOf":[{"properties":{"b":{"type":"integer"}}},{"properties":{"b":{"type":"number"}}}],
			"oneOf":[{"properties":{"c":{"type":"string","format":"date"}}},{"properties":{"c":{"type":"string"}}}],
			"if":{"properties":{"e":{"type":"boolean"}}},"then":{"properties":{"d":{"type":"integer"}}},"else":{"properties":{"d":{"type":"string"}}},"not":{"properties":{"f":{"type":"string"}}}}`,
			map[string]mapping.Type{"a": l, "b": d, "c": k, "d": k},
		},
		{
			"references", `{"definitions":{"n":{"type":"number"},"a/b":{"type":"integer"},"x":{"$id":"#x","type":"boolean"},"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/definitions/node"}}}},
			"properties":{"a":{"$ref":"#/definitions/n","type":"string"},"b":{"$ref":"#/definitions/a~1b"},"c":{"$ref":"#x"},"d":{"$ref":"other.json"},"e":{"$ref":"#/definitions/none"},"n":{"$ref":"#/definitions/node"}}}`,
			map[string]mapping.Type{"a": d, "b": l, "c": b, "n": none, "n.v": l, "n.next": none, "n.next.v": l},
		},
		{
			"references with siblings", `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://x.example/s","$defs":{"n":{"type":"number"},"m":{"$anchor":"m","type":"integer"}},
			"properties":{"a":{"$ref":"https://x.example/s#/$defs/n","type":"integer"},"b":{"$ref":"#m"}}}`,
			map[string]mapping.Type{"a": d, "b": l},
		},
		{
			"a reference to itself", `{"definitions":{"a":{"allOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/a"}],"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/a"}}}`,
			map[string]mapping.Type{"a": l},
		},
		{"names with dots", `{"properties":{"a.b":{"type":"integer"},"a":{"properties":{"b":{"type":"number"}}}}}`, map[string]mapping.Type{"a.b": d}},
		{"no schema", `[true]`, map[string]mapping.Type{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var b mapping.TypesBuilder
			declared.Schema(&b, []byte(tt.schema), "s:1")
			if d := cmp.Diff(tt.want, typesOf(b.Types())); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestExplosion: references that repeat others do not take longer than the bound of visits.
func TestExplosion(t *testing.T) {
	t.Parallel()
	schema := `{"definitions":{"a":{"properties":{`
	for _, name := range []string{"p", "q", "r", "s", "t", "u"} {
		schema += `"` + name + `":{"$ref":"#/definitions/b"},`
	}
	schema += `"z":{"type":"integer"}}},"b":{"oneOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/c"}]},"c":{"anyOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/b"}]}},"$ref":"#/definitions/a"}`
	var b mapping.TypesBuilder
	declared.Schema(&b, []byte(schema), "s:1")
	if got := maps.Collect(b.Types().All()); got["z"].Type != mapping.Long || len(got) > mapping.MaxTypes {
		t.Errorf("%d paths, %v", len(got), got["z"])
	}
}
