package catalogue_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

// shown is the visible part of one field of a Model.
type shown struct {
	core.CatalogueField
	Path   string
	Nested []string `json:",omitempty"`
}

func shownFields(t *testing.T, m *catalogue.Model) []shown {
	t.Helper()
	var all []shown
	for _, f := range m.Catalogue().Fields {
		field, known := m.Field(f.Name)
		path, found := m.Path(f.Name)
		if !known || !found || field.Type != f.Type {
			t.Errorf("the field %q is %+v in the catalogue, %+v, %q in the model", f.Name, f, field, path)
		}
		all = append(all, shown{CatalogueField: f, Path: path, Nested: field.Nested})
	}
	return all
}

// physical returns the mapping of the only index in a recorded response of Elasticsearch.
func physical(t *testing.T, recorded string) string {
	t.Helper()
	var answer map[string]struct {
		Mappings json.RawMessage `json:"mappings"`
	}
	if err := json.Unmarshal([]byte(recorded), &answer); err != nil || len(answer) != 1 {
		t.Fatalf("%d indices, %v", len(answer), err)
	}
	for _, index := range answer {
		return string(index.Mappings)
	}
	return ""
}

// ensured returns the mapping that the embedded index creates from a specification.
func ensured(t *testing.T, spec index.Spec) string {
	t.Helper()
	x, err := embedded.Open(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.Ensure(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	raw, err := x.Mapping(t.Context(), spec.Alias)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// read returns the mapping of a spec as an embedded index of an earlier release has it, which took parameters that are refused now.
func read(t *testing.T, spec index.Spec) string {
	t.Helper()
	tree, err := spec.Fields()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestModelOfBothEngines: the recorded mapping of Elasticsearch 8.19 and the mapping of the embedded index result in the same
// Model.
func TestModelOfBothEngines(t *testing.T) {
	tests := []struct {
		name     string
		recorded string
		own      string
		prefix   string
	}{
		{"song", "song_elasticsearch.json", ensured(t, index.Spec{Alias: "a", Known: mapping.Song()}), ""},
		{"rich", "rich_elasticsearch.json", read(t, index.Spec{Alias: "a", Mapping: json.RawMessage(file(t, "rich.json"))}), ""},
		{"rich_data", "rich_elasticsearch.json", read(t, index.Spec{Alias: "a", Mapping: json.RawMessage(file(t, "rich.json"))}), "data"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := minimal("a")
			d.NestingPrefix = tt.prefix
			elastic := look(t, d, physical(t, file(t, tt.recorded)))
			own := look(t, d, tt.own)
			golden(t, tt.name+".golden.json", shownFields(t, elastic))
			if diff := cmp.Diff(shownFields(t, elastic), shownFields(t, own)); diff != "" {
				t.Errorf("the engines differ (-elasticsearch +embedded):\n%s", diff)
			}
			warned(t, elastic)
			warned(t, own)
		})
	}
}

// TestTypesAreTheEngines compares the types with the field capabilities of the same index in Elasticsearch 8.19, which omit
// objects without fields.
func TestTypesAreTheEngines(t *testing.T) {
	var caps struct {
		Fields map[string]map[string]json.RawMessage `json:"fields"`
	}
	if err := json.Unmarshal([]byte(file(t, "rich_field_caps.json")), &caps); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"any": "object", "empty": "object"}
	for name, types := range caps.Fields {
		for kind := range types {
			want[name] = kind
		}
	}
	got := map[string]string{}
	for _, f := range look(t, minimal("a"), physical(t, file(t, "rich_elasticsearch.json"))).Catalogue().Fields {
		got[f.Name] = f.Type
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-elasticsearch +model):\n%s", diff)
	}
}

// TestEveryPathIsAField, whatever the mapping, and no other name is one.
func TestEveryPathIsAField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawn(t, 3)
		raw, err := tree.Render()
		if err != nil {
			t.Fatal(err)
		}
		m, problem := catalogue.Load(t.Context(), minimal("a"), fixed{raw: string(raw)})
		if tree.Size() == 0 {
			if m != nil || problem == nil || problem.Code != core.CatalogueSchemaBuild {
				t.Fatalf("nothing to search gives %v, %v", m, problem)
			}
			return
		}
		if problem != nil {
			t.Fatalf("%+v of %s", problem, raw)
		}
		i, names := 0, slices.Collect(m.Names())
		for path, f := range tree.All() {
			field, known := m.Field(path)
			if !known || field.Type != string(f.Type) || names[i] != path {
				t.Fatalf("%q is %+v, %t, in the place of %q; want type %s", path, field, known, names[i], f.Type)
			}
			var nested []string
			for at := range slices.Values(prefixesOf(path)) {
				if tree.Lookup(at).Type == mapping.Nested {
					nested = append(nested, at)
				}
			}
			if diff := cmp.Diff(nested, field.Nested); diff != "" {
				t.Fatalf("nested paths of %q (-want +got):\n%s", path, diff)
			}
			if own, _ := m.Path(path); own != path || m.Catalogue().Fields[i].Name != path || m.Catalogue().Fields[i].DisplayName == "" {
				t.Fatalf("%q has the path %q and is shown as %+v", path, own, m.Catalogue().Fields[i])
			}
			i++
		}
		if i != len(names) || i != len(m.Catalogue().Fields) {
			t.Fatalf("%d paths, %d names, %d fields", i, len(names), len(m.Catalogue().Fields))
		}
	})
}

// prefixesOf returns every path down to one: of "a.b", "a" and "a.b".
func prefixesOf(path string) []string {
	var all []string
	for i, r := range path {
		if r == '.' {
			all = append(all, path[:i])
		}
	}
	return append(all, path)
}

func drawn(t *rapid.T, depth int) *mapping.Field {
	root := &mapping.Field{Type: mapping.Object, Properties: map[string]*mapping.Field{}}
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		name := rapid.SampledFrom([]string{"a", "b_c", "D", "__proto__", "toString", "é", "x y", "_", "1"}).Draw(t, "name")
		kind := rapid.SampledFrom([]mapping.Type{mapping.Object, mapping.Nested, mapping.Keyword, "text", "geo_shape", "join", "made_up"}).Draw(t, "type")
		f := &mapping.Field{Type: kind}
		switch {
		case f.Container() && depth > 0:
			f.Properties = drawn(t, depth-1).Properties
		case kind == "text":
			f.Fields = map[string]*mapping.Field{"raw": {Type: mapping.Keyword}, "n": {Type: "token_count"}}
		}
		root.Properties[name] = f
	}
	return root
}

func TestDisplayNames(t *testing.T) {
	tests := map[string]string{
		"age_at_diagnosis":        "Age At Diagnosis",
		"donor.ageAtDiagnosis":    "Donor Age At Diagnosis",
		"a.b.c_d":                 "A B C D",
		"name.raw":                "Name Raw",
		"studyID":                 "Study ID",
		"XMLFile":                 "XMLFile",
		"fileMd5sum":              "File Md5sum",
		"tissue-source kind":      "Tissue Source Kind",
		"donors__x":               "Donors X",
		"already Right":           "Already Right",
		"état_civilÉtendu":        "État Civil Étendu",
		"_":                       "_",
		"a.-.__":                  "A (a.-.__)",
		"a.-":                     "A (a.-)",
		"experiment.sample_id.x":  "Experiment Sample Id X (experiment.sample_id.x)",
		"experiment.sample.id_x":  "Experiment Sample Id X (experiment.sample.id_x)",
		"tumour.sample.id":        "Tumour Sample Id",
		"normal.sample.id":        "Normal Sample Id",
		"_private_":               "Private",
		"x":                       "X",
		"long.path.to.some_field": "Long Path To Some Field",
		"数据":                      "数据",
	}
	properties := map[string]any{}
	for name := range tests {
		properties[name] = map[string]string{"type": "keyword"}
		if name == "name.raw" {
			delete(properties, name)
			properties["name"] = json.RawMessage(`{"type":"text","fields":{"raw":{"type":"keyword"}}}`)
		}
	}
	delete(properties, "a.-.__") // stands below another "a" than the next one
	properties["a"] = json.RawMessage(`{"properties":{"b":{"properties":{"c_d":{"type":"long"}}},"-":{"properties":{"__":{"type":"long"}}}}}`)
	delete(properties, "a.b.c_d")
	delete(properties, "a.-")
	raw, err := json.Marshal(map[string]any{"properties": properties})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range look(t, minimal("a"), string(raw)).Catalogue().Fields {
		if _, asked := tests[f.Name]; asked {
			got[f.Name] = f.DisplayName
		}
	}
	if diff := cmp.Diff(tests, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestExtended(t *testing.T) {
	d := minimal("a")
	d.Description, d.Access = "what it is", &definition.AccessRule{Field: "data.k", Scope: "{value}.READ"}
	d.NestingPrefix = "data"
	d.Extended = []definition.ExtendedField{
		{FieldName: "k", DisplayName: "A Key", Unit: "kg", Description: "the key", DisplayType: "t"},
		{FieldName: "o__k", DisplayName: "Inner"},
		{FieldName: "o.k", Unit: "Late"},
		{FieldName: "x__y", Unit: "m"},
		{FieldName: "data.k", DisplayName: "with the prefix"},
		{FieldName: "none"},
		{FieldName: "", DisplayName: "nameless"},
	}
	m := look(t, d, `{"properties":{"outside":{"type":"keyword"},"data":{"properties":{
		"k":{"type":"keyword","meta":{"description":"in the mapping"}},"x__y":{"type":"long","meta":"none"},
		"o":{"properties":{"k":{"type":"date","meta":{"description":"when it was","unit":"d"}}}}}}}}`)
	want := &core.Catalogue{ID: "a", DocumentType: "analysis", Description: "what it is", Restricted: true, Fields: []core.CatalogueField{
		{Name: "k", DisplayName: "A Key", Type: "keyword", Unit: "kg", Description: "the key"},
		{Name: "o", DisplayName: "O", Type: "object"},
		{Name: "o.k", DisplayName: "O K", Type: "date", Unit: "Late", Description: "when it was"},
		{Name: "x__y", DisplayName: "X Y", Type: "long", Unit: "m"},
	}}
	if diff := cmp.Diff(want, m.Catalogue()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	warned(t, m,
		`extended describes the field "o.k" more than once: the later one applies`,
		`extended describes the field "data.k", which the mapping lacks`,
		`extended describes the field "none", which the mapping lacks`,
		`extended describes the field "", which the mapping lacks`)
	if e, found := m.Extended("k"); !found || e.DisplayType != "t" {
		t.Errorf("got %+v, %t", e, found)
	}
	for _, name := range []string{"o", "none", "o__k", "data.k"} {
		if e, found := m.Extended(name); found {
			t.Errorf("%q has %+v", name, e)
		}
	}
	if m.Definition().Index != "a" || m.Root() != m.Mapping().Lookup("data") {
		t.Error("the model does not give what it was made of")
	}
}

// TestDataRelease: the release is that of the configuration, else that of the mapping's _meta, on both engines.
func TestDataRelease(t *testing.T) {
	for name, tt := range map[string]struct{ configured, meta, want string }{
		"neither":         {"", ``, ""},
		"configured":      {"DR-1", ``, "DR-1"},
		"in the mapping":  {"", `"_meta":{"dataRelease":"DR-2","other":1},`, "DR-2"},
		"both":            {"DR-1", `"_meta":{"dataRelease":"DR-2"},`, "DR-1"},
		"not a text":      {"", `"_meta":{"dataRelease":2},`, ""},
		"another content": {"", `"_meta":{"x":"DR-2"},`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := minimal("a")
			d.DataRelease = tt.configured
			raw := `{` + tt.meta + `"properties":{"k":{"type":"keyword"}}}`
			for engine, mapping := range map[string]string{"elasticsearch": raw, "embedded": ensured(t, index.Spec{Alias: "a", Mapping: json.RawMessage(raw)})} {
				if got := look(t, d, mapping).Catalogue().DataRelease; got != tt.want {
					t.Errorf("%s: %q, want %q", engine, got, tt.want)
				}
			}
		})
	}
}

func TestNestingPrefix(t *testing.T) {
	const raw = `{"properties":{"k":{"type":"keyword"},"a":{"properties":{"b":{"properties":{"n":{"type":"nested","properties":{"k":{"type":"long"},"o":{"properties":{"k":{"type":"long"}}}}}}},"bc":{"type":"ip"}}}}}`
	d := minimal("a")
	d.NestingPrefix = "a.b"
	m := look(t, d, raw)
	want := []shown{
		{CatalogueField: core.CatalogueField{Name: "n", DisplayName: "N", Type: "nested"}, Path: "a.b.n", Nested: []string{"n"}},
		{CatalogueField: core.CatalogueField{Name: "n.k", DisplayName: "N K", Type: "long"}, Path: "a.b.n.k", Nested: []string{"n"}},
		{CatalogueField: core.CatalogueField{Name: "n.o", DisplayName: "N O", Type: "object"}, Path: "a.b.n.o", Nested: []string{"n"}},
		{CatalogueField: core.CatalogueField{Name: "n.o.k", DisplayName: "N O K", Type: "long"}, Path: "a.b.n.o.k", Nested: []string{"n"}},
	}
	if diff := cmp.Diff(want, shownFields(t, m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{"k", "a", "a.b", "a.b.n", "b.n", "c", ""} {
		if f, known := m.Field(name); known {
			t.Errorf("%q is a field: %+v", name, f)
		}
		if path, known := m.Path(name); known || path != "" {
			t.Errorf("%q has the path %q", name, path)
		}
	}
	if f, known := m.MappingFields().Field("a.b.n.k"); !known || cmp.Diff(sqon.Field{Type: "long", Nested: []string{"a.b.n"}}, f) != "" {
		t.Errorf("the whole mapping has %+v, %t", f, known)
	}
	if path, known := m.MappingPath("a.bc"); !known || path != "a.bc" {
		t.Errorf("got %q, %t", path, known)
	}
	for prefix, message := range map[string]string{
		"x":       `the mapping of the index has no field "x", which nestingPrefix names`,
		"a..b":    `the mapping of the index has no field "a..b", which nestingPrefix names`,
		"a.":      `the mapping of the index has no field "a.", which nestingPrefix names`,
		".":       `the mapping of the index has no field ".", which nestingPrefix names`,
		"k":       `the field "k", which nestingPrefix names, is of type keyword and must be an object`,
		"a.b.n":   `the field "a.b.n", which nestingPrefix names, is nested and must be an object`,
		"a.b.n.o": `the field "a.b.n.o", which nestingPrefix names, is nested and must be an object`,
		"a.bc":    `the field "a.bc", which nestingPrefix names, is of type ip and must be an object`,
		"a.bc.x":  `the mapping of the index has no field "a.bc.x", which nestingPrefix names`,
	} {
		d.NestingPrefix = prefix
		refused(t, d, fixed{raw: raw}, core.CatalogueProblem{Code: core.CatalogueSchemaBuild, Message: message})
	}
	d.NestingPrefix = "o" // its fields come with the first document
	if m := look(t, d, `{"properties":{"k":{"type":"keyword"},"o":{"type":"object"}}}`); len(m.Catalogue().Fields) > 0 {
		t.Errorf("got %+v", m.Catalogue().Fields)
	}
}

// TestAliasFields: an alias has the type, the nested paths and the values of its target; one without a target cannot be queried.
func TestAliasFields(t *testing.T) {
	m := look(t, minimal("a"), `{"runtime":{"r":{"type":"long"}},"properties":{
		"k":{"type":"keyword"},"t":{"type":"text","fields":{"raw":{"type":"keyword"}}},"o":{"properties":{"k":{"type":"long"}}},
		"n":{"type":"nested","properties":{"k":{"type":"date"},"a":{"type":"alias","path":"n.k"},"b":{"type":"alias","path":"k"}}},
		"a":{"type":"alias","path":"k"},"b":{"type":"alias","path":"t.raw"},"c":{"type":"alias","path":"a"},"d":{"type":"alias","path":"o"},
		"e":{"type":"alias","path":"n.k"},"f":{"type":"alias","path":"none"},"g":{"type":"alias"},"h":{"type":"alias","path":5},
		"i":{"type":"alias","path":"i"},"j":{"type":"alias","path":"r"}}}`)
	for name, want := range map[string]shown{
		"a":   {CatalogueField: core.CatalogueField{Type: "keyword"}, Path: "k"},
		"b":   {CatalogueField: core.CatalogueField{Type: "keyword"}, Path: "t.raw"},
		"n.a": {CatalogueField: core.CatalogueField{Type: "date"}, Path: "n.k", Nested: []string{"n"}},
		"n.b": {CatalogueField: core.CatalogueField{Type: "alias"}, Path: "n.b", Nested: []string{"n"}},
		"c":   {CatalogueField: core.CatalogueField{Type: "alias"}, Path: "c"},
	} {
		f, known := m.Field(name)
		path, _ := m.Path(name)
		if got := (shown{CatalogueField: core.CatalogueField{Type: f.Type}, Path: path, Nested: f.Nested}); !known || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %s", name, cmp.Diff(want, got))
		}
	}
	warned(t, m,
		`the field "c" is an alias of "a", which is not a valid target`,
		`the field "d" is an alias of "o", which is not a valid target`,
		`the field "e" is an alias of "n.k", which is not a valid target`,
		`the field "f" is an alias of "none", which is not a valid target`,
		`the field "g" is an alias of "", which is not a valid target`,
		`the field "h" is an alias of "", which is not a valid target`,
		`the field "i" is an alias of "i", which is not a valid target`,
		`the field "j" is an alias of "r", which is not a valid target`,
		`the field "n.b" is an alias of "k", which is not a valid target`)
}

func TestRuntimeFields(t *testing.T) {
	m := look(t, minimal("a"), `{"runtime":{"year":{"type":"long"},"k":{"type":"double"},"o":{"type":"ip"},"untyped":{},
		"c":{"type":"composite","fields":{"y":{"type":"date"},"x":{"type":"keyword"}}}},
		"properties":{"k":{"type":"keyword"},"o":{"properties":{"k":{"type":"long"}}}}}`)
	want := map[string]string{
		"k": "double", "o": "object", "o.k": "long", "c": "composite", "c.x": "keyword", "c.y": "date", "year": "long",
	}
	got := map[string]string{}
	for name := range m.Names() {
		f, _ := m.Field(name)
		got[name] = f.Type
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"k", "o", "o.k", "c", "c.x", "c.y", "year"}, slices.Collect(m.Names())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	warned(t, m)
	warned(t, look(t, minimal("a"), `{"runtime":[],"properties":{"k":{"type":"keyword"}}}`),
		"the runtime fields of the mapping cannot be parsed and are ignored")
}

// TestForeignMappings: every mapping that Elasticsearch accepts is a catalogue. The mappings are recorded from 8.19.
func TestForeignMappings(t *testing.T) {
	tests := []struct {
		name, raw string
		want      []string
		warnings  []string
	}{
		{
			"values below values", `{"subobjects":false,"properties":{"m.time":{"type":"long"},"m.time.min":{"type":"long"}}}`,
			[]string{"m:object", "m.time:long", "m.time.min:long"},
			nil,
		},
		{
			"values below values of an object", `{"properties":{"k":{"type":"keyword"},"m":{"subobjects":false,"properties":{"time":{"type":"long"},"time.min":{"type":"long"}}}}}`,
			[]string{"k:keyword", "m:object", "m.time:long", "m.time.min:long"},
			nil,
		},
		{
			"an alias of a value that holds values", `{"subobjects":false,"properties":{"time":{"type":"long"},"time.al":{"type":"alias","path":"time"},"time.al.x":{"type":"text"}}}`,
			[]string{"time:long", "time.al:long", "time.al.x:text"},
			nil,
		},
		{
			"passthrough", `{"properties":{"attributes":{"type":"passthrough","priority":10,"dynamic":"true","properties":{"host":{"type":"keyword"},"o.x":{"type":"long"}}},"k":{"type":"keyword"}}}`,
			[]string{"attributes:passthrough", "attributes.host:keyword", "attributes.o:object", "attributes.o.x:long", "k:keyword"},
			nil,
		},
		{
			"a type of tomorrow", `{"properties":{"t":{"type":"made_up","properties":{"n":{"type":"nested","properties":{"k":{"type":"keyword"}}}},"fields":{"f":{"type":"long"}}}}}`,
			[]string{"t:made_up", "t.n:nested in t.n", "t.n.k:keyword in t.n", "t.f:long"},
			nil,
		},
		{
			"all else that a mapping may say", `{"dynamic":"true","_meta":{"a":[1]},"_routing":{"required":true},"_source":{"excludes":["x"]},"_data_stream_timestamp":{"enabled":true},
			"dynamic_date_formats":["yyyy"],"dynamic_templates":[{"x":{"match":"*","mapping":{"type":"keyword"}}}],"date_detection":false,"numeric_detection":true,
			"runtime":{"r":{"type":"keyword"}},"properties":{"e":{"type":"object","enabled":false},"o":{"dynamic":false,"properties":{"properties":{"type":"keyword"}}},"p":{"dynamic":1,"properties":{}}}}`,
			[]string{"e:object", "o:object", "o.properties:keyword", "p:object", "r:keyword"},
			nil,
		},
		{
			"names with empty parts", `{"subobjects":false,"properties":{"a.":{"type":"alias","path":"a..b"},"a..b":{"type":"long"},".a":{"type":"long"},"k":{"type":"long"}}}`,
			[]string{"k:long"},
			[]string{
				`the field ".a" is left out: a part of its name is empty`,
				`the field "a." is left out: a part of its name is empty`,
				`the field "a..b" is left out: a part of its name is empty`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := look(t, minimal("a"), tt.raw)
			var got []string
			for _, f := range shownFields(t, m) {
				text := f.Name + ":" + f.Type
				for _, path := range f.Nested {
					text += " in " + path
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			warned(t, m, tt.warnings...)
		})
	}
}

// FuzzLoadModel: any mapping results in a consistent Model, or a problem.
func FuzzLoadModel(f *testing.F) {
	f.Add([]byte(file(f, "rich.json")), "data")
	f.Add([]byte(oneField), "")
	f.Add([]byte(`{"properties":{"a":{"properties":{"x":{"type":"object"}},"fields":{"x":{"fields":{"y":{"type":"alias","path":"k"}}}}},"k":{"type":"ip"}}}`), "a.x")
	f.Add([]byte(`{"subobjects":false,"properties":{"a":{"type":"text"},"a.b":{"type":"keyword"},"a.":{"type":"alias","path":"a"}}}`), "a")
	f.Add([]byte(`{"properties":{"a":{"properties":{"x":{"type":"long"}},"fields":{"x":{"type":"alias","path":"a"}}}},"runtime":{"a.x":{"type":"ip"}}}`), "a")
	f.Add([]byte(`{"mappings":{"properties":{"a.b":{"type":"nested"},"a":{"type":"object"}}},"properties":5}`), "a.b")
	f.Fuzz(func(t *testing.T, raw []byte, name string) {
		d := minimal("a")
		d.NestingPrefix, d.Access = name, &definition.AccessRule{Field: name, Scope: "{value}"}
		d.Extended = []definition.ExtendedField{{FieldName: name}}
		m, problem := catalogue.Load(t.Context(), d, fixed{raw: string(raw)})
		if (m == nil) == (problem == nil) {
			t.Fatalf("got %v and %v", m, problem)
		}
		if problem != nil {
			return
		}
		if field := m.Access().Field; field != "" {
			if path, known := m.MappingPath(field); !known || path == "" {
				t.Errorf("access is by %q, which the mapping lacks", field)
			}
		}
		seen := map[string]bool{}
		for _, f := range m.Catalogue().Fields {
			field, known := m.Field(f.Name)
			path, found := m.Path(f.Name)
			if !known || !found || field.Type != f.Type || f.Type == "" || f.DisplayName == "" || seen[f.Name] {
				t.Errorf("%+v is %+v at %q", f, field, path)
			}
			seen[f.Name] = true
			for _, nested := range field.Nested {
				if above, known := m.Field(nested); !known || above.Type != "nested" {
					t.Errorf("%q is in %q, which is %+v", f.Name, nested, above)
				}
			}
		}
	})
}

// TestModelOfManyFields: 500 fields are what a large dictionary has; how long they take, BenchmarkLoad prints.
func TestModelOfManyFields(t *testing.T) {
	properties := map[string]any{}
	for i := range 500 {
		properties[fmt.Sprintf("entity_%02d.someField%d", i%20, i)] = map[string]string{"type": "keyword"}
	}
	raw, err := json.Marshal(map[string]any{"properties": properties})
	if err != nil {
		t.Fatal(err)
	}
	m := look(t, minimal("a"), string(raw))
	if n := len(m.Catalogue().Fields); n != 520 {
		t.Errorf("%d fields", n)
	}
}

func BenchmarkLoad(b *testing.B) {
	properties := map[string]any{}
	for i := range 500 {
		properties[fmt.Sprintf("entity_%02d.someField%d", i%20, i)] = map[string]string{"type": "keyword"}
	}
	raw, err := json.Marshal(map[string]any{"properties": properties})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, problem := catalogue.Load(b.Context(), minimal("a"), fixed{raw: string(raw)}); problem != nil {
			b.Fatal(problem)
		}
	}
}

// TestManyWarnings: the number of warnings is limited.
func TestManyWarnings(t *testing.T) {
	d := minimal("a")
	d.Access = &definition.AccessRule{Field: "nowhere", Scope: "{value}.READ"}
	for i := range 10_000 {
		d.Extended = append(d.Extended, definition.ExtendedField{FieldName: fmt.Sprintf("field_%d", i)})
	}
	warnings := look(t, d, oneField).Warnings()
	if len(warnings) != 22 || !strings.Contains(warnings[0], "nowhere") || warnings[1] != `extended describes the field "field_0", which the mapping lacks` ||
		warnings[21] != "9980 more warnings are not listed" {
		t.Errorf("%d warnings, such as %q", len(warnings), warnings[max(0, len(warnings)-3):])
	}
}

// TestUncounted: why a field has no facet and no sort. What the engine cannot count is among the warnings, with its name.
func TestUncounted(t *testing.T) {
	m := look(t, minimal("a"), `{"properties":{"k":{"type":"keyword"},"off":{"type":"keyword","doc_values":false},"text":{"type":"long","doc_values":"false"},
		"w":{"type":"wildcard","doc_values":false},"counted":{"type":"wildcard"},"n":{"type":"nested","properties":{"w":{"type":"wildcard","doc_values":false,"index":false}}},"other":{"type":"alias","path":"w"}}}`)
	off := "the index does not have its values by document (doc_values is false)"
	wildcard := "the index does not have its values by document (doc_values is false, as for every wildcard field on OpenSearch); map it as keyword"
	for name, want := range map[string]string{"k": "", "off": off, "text": off, "w": wildcard, "counted": "", "other": wildcard, "runtime": ""} {
		path, _ := m.Path(name)
		if got := m.Uncounted(path); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	const unfound = "OpenSearch finds no wildcard value in a nested object, or from copy_to, that it does not have by document; map it with doc_values: true, or as keyword"
	for filter, want := range map[string]string{
		`{"op":"and","content":[{"op":"in","content":{"fieldName":"n.w","value":["a","__missing__"]}}]}`: `the field "n.w" has no filter by values: ` + unfound,
		`{"op":"and","content":[{"op":"filter","content":{"fieldNames":["w","n.w"],"value":"*"}}]}`:      `the field "n.w" has no filter by values: ` + unfound,
		`{"op":"and","content":[{"op":"not-in","content":{"fieldName":"n.w","value":["__missing__"]}}]}`: "",
		`{"op":"and","content":[{"op":"in","content":{"fieldName":"w","value":["a"]}}]}`:                 "",
	} {
		parsed, err := sqon.Parse([]byte(filter))
		if err != nil {
			t.Fatal(err)
		}
		if err := parsed.Check(m); (err == nil) != (want == "") || err != nil && !strings.Contains(fmt.Sprintf("%+v", err), want) {
			t.Errorf("%s: %v, want %q", filter, err, want)
		}
	}
	want := []string{
		`the field "n.w" has no facet and no sort: ` + wildcard +
			"; filters by its values are refused: " + unfound,
		`the field "other" has no facet and no sort: ` + wildcard, `the field "w" has no facet and no sort: ` + wildcard,
	}
	if diff := cmp.Diff(want, m.Warnings()); diff != "" {
		t.Error(diff)
	}
}
