package lyric_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/testkit"
	"tutti/internal/upstream/lyric"
)

const clinical = `{"name":"clinical","version":"1.2","schemas":[
 {"name":"donor","fields":[{"name":"donor_id","valueType":"string"},{"name":"age","valueType":"integer"},{"name":"sites","valueType":"string","isArray":true}]},
 {"name":"biopsy","fields":[{"name":"donor_id","valueType":"string"},{"name":"volume","valueType":"number"},{"name":"frozen","valueType":"boolean"},{"name":"age","valueType":"number"}],
  "restrictions":{"foreignKey":[{"schema":"donor","mappings":[{"local":"donor_id","foreign":"donor_id"}]}]}},
 {"name":"sample","fields":[{"name":"depth","valueType":"integer"}],"restrictions":{"foreignKey":[{"schema":"biopsy","mappings":[]}]}}]}`

func lectern(t *testing.T, dictionary string) *testkit.LecternServer {
	t.Helper()
	s, err := testkit.NewLectern()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.Add(dictionary)
	return s
}

func TestDeclared(t *testing.T) {
	t.Parallel()
	const k, l, d, b = mapping.Keyword, mapping.Long, mapping.Double, mapping.Boolean
	tests := []struct {
		name, entity string
		want         map[string]mapping.Type
	}{
		{"the record and what it contains", "donor", map[string]mapping.Type{
			"data.donor_id": k, "data.age": l, "data.sites": k,
			"data.biopsy.donor_id": k, "data.biopsy.volume": d, "data.biopsy.frozen": b, "data.biopsy.age": d, "data.biopsy.sample.depth": l,
			"data.biopsies.donor_id": k, "data.biopsies.volume": d, "data.biopsies.frozen": b, "data.biopsies.age": d, "data.biopsies.samples.depth": l,
		}},
		{"what contains it", "sample", map[string]mapping.Type{
			"data.depth": l, "data.biopsy.donor_id": k, "data.biopsy.volume": d, "data.biopsy.frozen": b, "data.biopsy.age": d,
			"data.biopsy.donor.donor_id": k, "data.biopsy.donor.age": l, "data.biopsy.donor.sites": k,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, from := serve(t, testkit.LyricConfig{Token: "t"}), lectern(t, clinical)
			cfg := lyric.Config{Entity: tt.entity, DictionaryURL: from.URL()}
			cfg.Token = "t"
			types, none, err := client(t, server, cfg).Declared(t.Context())
			if err != nil || none != "" {
				t.Fatal(none, err)
			}
			got := map[string]mapping.Type{}
			for path, d := range types.All() {
				got[path] = d.Type
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestDeclaredOfAll: without a central entity a field that two entities declare has the wider type.
func TestDeclaredOfAll(t *testing.T) {
	t.Parallel()
	server, from := serve(t, testkit.LyricConfig{}), lectern(t, clinical)
	types, _, err := client(t, server, lyric.Config{DictionaryURL: from.URL()}).Declared(t.Context())
	age, _ := types.Lookup("data.age")
	if err != nil || age.Type != mapping.Double || age.String() != "integer (clinical 1.2 donor), number (clinical 1.2 biopsy); indexed as double" {
		t.Errorf("%s, %v", age, err)
	}
}

func TestNothingDeclared(t *testing.T) {
	t.Parallel()
	const refused = "the Lectern of dictionaryUrl answered the request for version 1.2 of the dictionary clinical with status "
	tests := []struct {
		name, dictionary string
		fault            testkit.Fault
		none             string
		code             core.Code
	}{
		{"another version", `{"name":"clinical","version":"1.3","schemas":[]}`, testkit.Fault{}, refused + "404", ""},
		{"refused", clinical, testkit.Fault{Status: 401}, refused + "401", ""},
		{"bad request", clinical, testkit.Fault{Status: 400}, refused + "400", ""},
		{"no such method", clinical, testkit.Fault{Status: 405}, refused + "405", ""},
		{"slow", clinical, testkit.Fault{Status: 408}, "", core.CodeUnavailable},
		{"down", clinical, testkit.Fault{Status: 500}, "", core.CodeUnavailable},
		{"busy", clinical, testkit.Fault{Status: 429}, "", core.CodeOverloaded},
		{"another form", clinical, testkit.Fault{Status: 200, Body: `{}`}, "", core.CodeUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, from := serve(t, testkit.LyricConfig{}), lectern(t, tt.dictionary)
			if tt.fault.Status != 0 {
				tt.fault.Path = regexp.MustCompile("/dictionaries")
				from.Fail(tt.fault)
			}
			types, none, err := client(t, server, lyric.Config{Entity: "donor", DictionaryURL: from.URL()}).Declared(t.Context())
			if types != nil || none != tt.none || core.CodeOf(err) != tt.code {
				t.Errorf("%v, %q, %v", types, none, err)
			}
		})
	}
	types, none, err := client(t, serve(t, testkit.LyricConfig{}), lyric.Config{}).Declared(t.Context())
	if types != nil || none != "" || err != nil {
		t.Errorf("without dictionaryUrl: %v, %q, %v", types, none, err)
	}
}
