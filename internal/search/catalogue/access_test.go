package catalogue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/filter/sqon"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

const accessMapping = `{"runtime":{"year":{"type":"long"},"shadowed":{"type":"date"},"counted":{"type":"long"},"sub.raw":{"type":"ip"},
	"plain":{"type":"keyword"}},"properties":{
	"shadowed":{"type":"keyword"},"counted":{"type":"text","fields":{"raw":{"type":"keyword"}}},"sub":{"type":"text","fields":{"raw":{"type":"keyword"}}},
	"plain":{"type":"keyword","normalizer":"lowercase"},"lowerAlias":{"type":"alias","path":"lower"},"ip":{"type":"ip"},
	"constant":{"type":"constant_keyword","value":"S1"},"address":{"type":"text","fields":{"a":{"type":"ip"},"c":{"type":"constant_keyword"}}},
	"textAlias":{"type":"alias","path":"text"},"any":{"type":"wildcard"},
	"studyId":{"type":"keyword"},"alias":{"type":"alias","path":"studyId"},"open":{"type":"boolean"},
	"text":{"type":"text","fields":{"lower":{"type":"keyword","normalizer":"lowercase"},"raw":{"type":"keyword"}}},"words":{"type":"text"},
	"lower":{"type":"keyword","normalizer":"lowercase"},"object":{"properties":{"k":{"type":"ip"}}},"ratio":{"type":"double"},
	"nested":{"type":"nested","properties":{"k":{"type":"long"}}},"info":{"type":"flattened"},
	"data":{"properties":{"k":{"type":"keyword"},"studyId":{"type":"text"}}}}}`

func filter(t *testing.T, text string) *sqon.Filter {
	t.Helper()
	f, err := sqon.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &f
}

// TestAccess: a rule uses the mapping's own names, with any nesting prefix; parts that do not fit grant nothing.
func TestAccess(t *testing.T) {
	const scope = "{value}.READ"
	open := `{"op":"in","content":{"fieldName":"open","value":true}}`
	tests := []struct {
		name, field, public string
		want                *catalogue.Access
		warning             string
	}{
		{"a keyword", "studyId", "", &catalogue.Access{Field: "studyId", Scope: scope}, ""},
		{"an alias", "alias", "", &catalogue.Access{Field: "studyId", Scope: scope}, ""},
		{"a sub-field that keeps values", "text", "", &catalogue.Access{Field: "text.raw", Scope: scope}, ""},
		{"a nested field", "nested.k", "", &catalogue.Access{Field: "nested.k", Scope: scope}, ""},
		{"a runtime field", "year", "", &catalogue.Access{Field: "year", Scope: scope}, ""},
		{"a runtime field in the place of a text", "counted", "", &catalogue.Access{Field: "counted", Scope: scope}, ""},
		{"a runtime field in the place of a normalized keyword", "plain", "", &catalogue.Access{Field: "plain", Scope: scope}, ""},
		{"an alias of a field with a sub-field", "textAlias", "", &catalogue.Access{Field: "text.raw", Scope: scope}, ""},
		{"a wildcard", "any", "", &catalogue.Access{Field: "any", Scope: scope}, ""},
		{"with a public filter", "studyId", open, &catalogue.Access{Field: "studyId", Scope: scope, Public: filter(t, open)}, ""},
		{"all public", "studyId", `{}`, &catalogue.Access{Field: "studyId", Scope: scope, Public: &sqon.Filter{}}, ""},
		{"an unknown field", "none", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the mapping has no field "none"`},
		{"a clean name", "k", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the mapping has no field "k"`},
		{"no field", "", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the mapping has no field ""`},
		{"words", "words", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the field "words" is of type text, which does not store exact values`},
		{"lower case", "lower", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the field "lower" is of type keyword, which does not store exact values`},
		{"an alias of lower case", "lowerAlias", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the field "lowerAlias" is of type keyword, which does not store exact values`},
		{"a runtime field in the place of a keyword", "shadowed", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the field "shadowed" is of type date, which does not store exact values`},
		{"a runtime field in the place of a sub-field", "sub", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the field "sub" is of type text, which does not store exact values`},
		{"an address, whose terms may be networks", "ip", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the field "ip" is of type ip, which does not store exact values`},
		{"a constant, whose terms may be patterns", "constant", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the field "constant" is of type constant_keyword, which does not store exact values`},
		{"sub-fields of such types", "address", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the field "address" is of type text, which does not store exact values`},
		{"an object", "object", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the field "object" is of type object, which does not store exact values`},
		{"flattened", "info", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the field "info" is of type flattened, which does not store exact values`},
		{"a fraction", "ratio", open, &catalogue.Access{Scope: scope}, `the access rule denies all: the field "ratio" is of type double, which does not store exact values`},
		{
			"a public filter of a clean name", "studyId", `{"op":"in","content":{"fieldName":"k","value":"x"}}`,
			&catalogue.Access{Field: "studyId", Scope: scope},
			`the access rule's public filter does not fit the mapping, so nothing is public: the filter is not valid at /content/fieldName: unknown field "k"`,
		},
		{
			"a public filter of the mapping's name", "studyId", `{"op":"in","content":{"fieldName":"data.k","value":"x"}}`,
			&catalogue.Access{Field: "studyId", Scope: scope, Public: filter(t, `{"op":"in","content":{"fieldName":"data.k","value":"x"}}`)}, "",
		},
		{
			"a public filter with a pattern of addresses", "studyId", `{"op":"not","content":[{"op":"filter","content":{"fieldNames":["studyId","ip"],"value":"10.*"}}]}`,
			&catalogue.Access{Field: "studyId", Scope: scope},
			`the access rule's public filter does not fit the mapping, so nothing is public: the filter has at /content/0/content/fieldNames/1 a pattern on the field "ip" of type ip, ` +
				`which needs the values of all documents: name the addresses with in`,
		},
		{
			"a public filter with addresses", "studyId", `{"op":"in","content":{"fieldName":"ip","value":["10.0.0.1"]}}`,
			&catalogue.Access{Field: "studyId", Scope: scope, Public: filter(t, `{"op":"in","content":{"fieldName":"ip","value":["10.0.0.1"]}}`)}, "",
		},
		{
			"a public filter that negates what is not there", "studyId", `{"op":"not-in","content":{"fieldName":"secret","value":true}}`,
			&catalogue.Access{Field: "studyId", Scope: scope},
			`the access rule's public filter does not fit the mapping, so nothing is public: the filter is not valid at /content/fieldName: unknown field "secret"`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := minimal("a")
			d.NestingPrefix = "data"
			d.Access = &definition.AccessRule{Field: tt.field, Scope: scope}
			if tt.public != "" {
				d.Access.Public = filter(t, tt.public)
			}
			m := look(t, d, accessMapping)
			if diff := cmp.Diff(tt.want, m.Access()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.warning == "" {
				warned(t, m)
			} else {
				warned(t, m, tt.warning)
			}
			if !m.Catalogue().Restricted {
				t.Error("the catalogue does not say that it is restricted")
			}
		})
	}
	m := look(t, minimal("a"), accessMapping)
	if m.Access() != nil || m.Catalogue().Restricted {
		t.Errorf("without a rule it is %+v", m.Access())
	}
}
