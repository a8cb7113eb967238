package schema_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql/schema"
)

func TestAppendMeta(t *testing.T) {
	d := definition.Definition{DocumentType: "file", Extended: []definition.ExtendedField{
		{FieldName: "k", Description: "The <key> \"of\" it.", IsArray: new(true)},
	}}
	s := built(t, d, `{"properties":{"k":{"type":"keyword"},"files":{"type":"nested","properties":{"size":{"type":"long"}}}}}`)
	vars := map[string]any{"name": "fileAggregations", "yes": true, "no": false}
	for _, tt := range []struct{ name, query, want string }{
		{
			"what a federation asks", `query Q($name:String!){__type(name:$name){name fields{name type{name}}}}`,
			`{"__type":{"name":"fileAggregations","fields":[{"name":"files__size","type":{"name":"NumericAggregations"}},{"name":"k","type":{"name":"Aggregations"}}]}}`,
		},
		{"an unknown type", `{__type(name:"nothing"){name}}`, `{"__type":null}`},
		{"no such type as a wrapper", `{__type(name:"String!"){name}}`, `{"__type":null}`},
		{
			"roots", `{__schema{__typename description queryType{name} mutationType{name} subscriptionType{name}}}`,
			`{"__schema":{"__typename":"__Schema","description":null,"queryType":{"name":"Root"},"mutationType":{"name":"Mutation"},"subscriptionType":null}}`,
		},
		{
			"the fields of introspection are not listed", `{__type(name:"Root"){fields{name}}}`,
			`{"__type":{"fields":[{"name":"file"},{"name":"sets"},{"name":"hasValidConfig"}]}}`,
		},
		{
			"a scalar", `{__type(name:"JSON"){` + members + `}}`, `{"__type":{"kind":"SCALAR","name":"JSON",` +
				`"description":"Any value: an object, an array, a string, a number, true, false or null.","specifiedByURL":"https://www.rfc-editor.org/rfc/rfc8259",` +
				`"fields":null,"interfaces":null,"possibleTypes":null,"enumValues":null,"inputFields":null,"ofType":null,"isOneOf":null}}`,
		},
		{"a scalar without specification", `{__type(name:"String"){kind specifiedByURL}}`, `{"__type":{"kind":"SCALAR","specifiedByURL":null}}`},
		{
			"an interface", `{__type(name:"Node"){` + members + `}}`, `{"__type":{"kind":"INTERFACE","name":"Node","description":null,"specifiedByURL":null,` +
				`"fields":[{"name":"id"}],"interfaces":[],"possibleTypes":[{"name":"fileNode"},{"name":"setsNode"}],"enumValues":null,"inputFields":null,` +
				`"ofType":null,"isOneOf":null}}`,
		},
		{
			"an object", `{__type(name:"fileNode"){` + members + `}}`, `{"__type":{"kind":"OBJECT","name":"fileNode","description":null,"specifiedByURL":null,` +
				`"fields":[{"name":"id"},{"name":"score"},{"name":"files"},{"name":"k"}],"interfaces":[{"name":"Node"}],"possibleTypes":null,` +
				`"enumValues":null,"inputFields":null,"ofType":null,"isOneOf":null}}`,
		},
		{
			"an enum", `{__type(name:"Order"){` + members + `}}`, `{"__type":{"kind":"ENUM","name":"Order","description":null,"specifiedByURL":null,"fields":null,` +
				`"interfaces":null,"possibleTypes":null,"enumValues":[{"name":"asc"},{"name":"desc"}],"inputFields":null,"ofType":null,"isOneOf":null}}`,
		},
		{
			"an input", `{__type(name:"Sort"){` + members + `}}`, `{"__type":{"kind":"INPUT_OBJECT","name":"Sort","description":null,"specifiedByURL":null,` +
				`"fields":null,"interfaces":null,"possibleTypes":null,"enumValues":null,"inputFields":[{"name":"fieldName"},{"name":"order"},{"name":"mode"},` +
				`{"name":"missing"}],"ofType":null,"isOneOf":false}}`,
		},
		{
			"enum values", `{__type(name:"Missing"){description enumValues{__typename name description isDeprecated deprecationReason}}}`,
			`{"__type":{"description":"The position of documents without a value.","enumValues":[{"__typename":"__EnumValue","name":"first","description":null,` +
				`"isDeprecated":false,"deprecationReason":null},{"__typename":"__EnumValue","name":"last","description":null,"isDeprecated":false,"deprecationReason":null}]}}`,
		},
		{
			"wrappers and descriptions", `{__type(name:"fileNode"){fields{name description type{__typename ` + kinds + `}}}}`,
			`{"__type":{"fields":[{"name":"id","description":null,"type":{"__typename":"__Type","kind":"NON_NULL","name":null,"description":null,"fields":null,` +
				`"ofType":{"kind":"SCALAR","name":"ID","ofType":null}}},{"name":"score","description":null,"type":{"__typename":"__Type","kind":"SCALAR","name":"Int",` +
				`"description":"The ` + "`Int`" + ` scalar type represents non-fractional signed whole numeric values. Int can represent values between -(2^31) and 2^31 - 1.",` +
				`"fields":null,"ofType":null}},{"name":"files","description":null,"type":{"__typename":"__Type","kind":"OBJECT","name":"fileFiles","description":null,` +
				`"fields":[{"name":"hits"}],"ofType":null}},{"name":"k","description":"The \u003ckey\u003e \"of\" it.","type":{"__typename":"__Type","kind":"LIST","name":null,` +
				`"description":null,"fields":null,"ofType":{"kind":"SCALAR","name":"String","ofType":null}}}]}}`,
		},
		{
			"arguments and their defaults", `{__type(name:"file"){fields{name args{name type{name} defaultValue}}}}`,
			`{"__type":{"fields":[{"name":"hits","args":[{"name":"filters","type":{"name":"JSON"},"defaultValue":null},{"name":"first","type":{"name":"Int"},` +
				`"defaultValue":"10"},{"name":"offset","type":{"name":"Int"},"defaultValue":"0"},{"name":"sort","type":{"name":null},"defaultValue":null},` +
				`{"name":"searchAfter","type":{"name":"JSON"},"defaultValue":null},{"name":"trackTotalHits","type":{"name":"Boolean"},"defaultValue":"true"},` +
				`{"name":"score","type":{"name":"String"},"defaultValue":null},{"name":"before","type":{"name":"String"},"defaultValue":null},` +
				`{"name":"after","type":{"name":"String"},"defaultValue":null},{"name":"last","type":{"name":"Int"},"defaultValue":null}]},` +
				`{"name":"aggregations","args":[{"name":"filters","type":{"name":"JSON"},"defaultValue":null},{"name":"include_missing","type":{"name":"Boolean"},` +
				`"defaultValue":"true"},{"name":"aggregations_filter_themselves","type":{"name":"Boolean"},"defaultValue":"false"}]},` +
				`{"name":"configs","args":[]},{"name":"mapping","args":[]}]}}`,
		},
		{
			"input values", `{__type(name:"Sort"){inputFields{__typename name description type{kind ofType{name}} defaultValue isDeprecated deprecationReason}}}`,
			`{"__type":{"inputFields":[{"__typename":"__InputValue","name":"fieldName","description":"The name of a field. _score has no effect: documents are not scored.","type":{"kind":"NON_NULL","ofType":{"name":"String"}},` +
				`"defaultValue":null,"isDeprecated":false,"deprecationReason":null},` + inputOf("order") + `,` + inputOf("mode") + `,` + inputOf("missing") + `]}}`,
		},
		{
			"what is deprecated is left out", `query Q($no:Boolean!){a:__type(name:"AggregationMapping"){fields{name}} b:__type(name:"AggregationMapping"){fields(includeDeprecated:$no){name}}}`,
			`{"a":{"fields":[{"name":"displayName"},{"name":"displayType"},{"name":"fieldName"},{"name":"isActive"},{"name":"show"}]},` +
				`"b":{"fields":[{"name":"displayName"},{"name":"displayType"},{"name":"fieldName"},{"name":"isActive"},{"name":"show"}]}}`,
		},
		{
			"what is deprecated is given", `query Q($yes:Boolean!){__type(name:"AggregationMapping"){fields(includeDeprecated:$yes){name isDeprecated deprecationReason}}}`,
			`{"__type":{"fields":[` + fresh("displayName") + `,` + fresh("displayType") + `,` + fresh("fieldName") + `,` + fresh("isActive") + `,` + fresh("show") +
				`,{"name":"type","isDeprecated":true,"deprecationReason":"Use displayType."}]}}`,
		},
		{
			"directives", `{__schema{directives{__typename name isRepeatable locations args{name defaultValue type{kind}}}}}`,
			`{"__schema":{"directives":[` +
				`{"__typename":"__Directive","name":"deprecated","isRepeatable":false,"locations":["FIELD_DEFINITION","ARGUMENT_DEFINITION","INPUT_FIELD_DEFINITION","ENUM_VALUE"],` +
				`"args":[{"name":"reason","defaultValue":"\"No longer supported\"","type":{"kind":"SCALAR"}}]},` +
				`{"__typename":"__Directive","name":"include","isRepeatable":false,"locations":["FIELD","FRAGMENT_SPREAD","INLINE_FRAGMENT"],"args":[{"name":"if","defaultValue":null,"type":{"kind":"NON_NULL"}}]},` +
				`{"__typename":"__Directive","name":"skip","isRepeatable":false,"locations":["FIELD","FRAGMENT_SPREAD","INLINE_FRAGMENT"],"args":[{"name":"if","defaultValue":null,"type":{"kind":"NON_NULL"}}]},` +
				`{"__typename":"__Directive","name":"specifiedBy","isRepeatable":false,"locations":["SCALAR"],"args":[{"name":"url","defaultValue":null,"type":{"kind":"NON_NULL"}}]}]}}`,
		},
		{
			"fragments, aliases and conditions", `query Q($yes:Boolean!,$no:Boolean!){one:__type(name:"ID"){...T ...on __Type{again:name kind} skipped:name @skip(if:$yes)
				kept:name @include(if:$yes) gone:kind @include(if:$no)} two:__type(name:"Date"){...T}} fragment T on __Type{name}`,
			`{"one":{"name":"ID","again":"ID","kind":"SCALAR","kept":"ID"},"two":{"name":"Date"}}`,
		},
		{"selections are merged", `{__type(name:"Order"){enumValues{name} ...on __Type{enumValues{isDeprecated}}}}`, `{"__type":{"enumValues":[{"name":"asc","isDeprecated":false},{"name":"desc","isDeprecated":false}]}}`},
		{"introspection of itself", `{__type(name:"__TypeKind"){kind name enumValues{name}}}`, `{"__type":{"kind":"ENUM","name":"__TypeKind","enumValues":[{"name":"SCALAR"},{"name":"OBJECT"},{"name":"INTERFACE"},{"name":"UNION"},{"name":"ENUM"},{"name":"INPUT_OBJECT"},{"name":"LIST"},{"name":"NON_NULL"}]}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := meta(t, s, tt.query, vars)
			if diff := cmp.Diff(indented(t, tt.want), indented(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, got)
			}
		})
	}
	t.Run("another field", func(t *testing.T) {
		if got := s.AppendMeta([]byte("a"), &ast.Field{Name: "file"}, nil, nil); string(got) != "anull" {
			t.Errorf("%s", got)
		}
	})
}

const (
	members = `kind name description specifiedByURL fields{name} interfaces{name} possibleTypes{name} enumValues{name} inputFields{name} ofType{name} isOneOf`
	kinds   = `kind name description fields{name} ofType{kind name ofType{name}}`
)

func inputOf(name string) string {
	return `{"__typename":"__InputValue","name":"` + name + `","description":null,"type":{"kind":"ENUM","ofType":null},"defaultValue":null,"isDeprecated":false,"deprecationReason":null}`
}

func fresh(name string) string {
	return `{"name":"` + name + `","isDeprecated":false,"deprecationReason":null}`
}

// indented makes JSON comparable line by line; the order of members counts.
func indented(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(json.RawMessage(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return b.String()
}

// TestAllTypesAreListed: the list is that of the tree, by name.
func TestAllTypesAreListed(t *testing.T) {
	s := built(t, definition.Definition{}, file(t, "song.json"), schema.Options{Network: true})
	var answer struct {
		Schema struct {
			Types []struct{ Name string }
		} `json:"__schema"`
	}
	if err := json.Unmarshal([]byte(meta(t, s, `{__schema{types{name}}}`, nil)), &answer); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, listed := range answer.Schema.Types {
		got = append(got, listed.Name)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(s.AST.Types)), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDirectivesOfDrafts: directives that are not implemented are rejected.
func TestDirectivesOfDrafts(t *testing.T) {
	s := built(t, definition.Definition{}, deep)
	for _, query := range []string{`{...F @defer} fragment F on Root{sets{hits{total}}}`, `{...@defer(label:"a"){sets{hits{total}}}}`} {
		doc, err := parser.ParseQuery(&ast.Source{Input: query})
		if err != nil {
			t.Fatal(err)
		}
		errs := validator.ValidateWithRules(s.AST, doc, rules.NewDefaultRules())
		if len(errs) != 1 || errs[0].Message != `Unknown directive "@defer".` {
			t.Errorf("%s: %v", query, errs)
		}
	}
}

// FuzzBuild: every mapping has a schema in which each field and type is unique; only a documentType can cause an error;
// introspection is valid JSON.
func FuzzBuild(f *testing.F) {
	for _, mapping := range []string{deep, odd, empties, everyType(), `{"properties":{"Node":{"type":"nested","properties":{"Edge":{"properties":{"":{"type":"long"}}}}}}}`} {
		f.Add(mapping, "file", "k", "a \"text\"\n", false)
	}
	f.Add(`{"properties":{"data":{"properties":{"x":{"type":"keyword","fields":{"y":{"type":"text"}}}}}}}`, "Sort", "data.x", "\xff", true)
	f.Fuzz(func(t *testing.T, raw, documentType, described, description string, network bool) {
		d := definition.Definition{ID: "a", Index: "a", DocumentType: documentType, Extended: []definition.ExtendedField{
			{FieldName: described, Description: description, IsArray: &network},
		}}
		m := looked(t, d, raw)
		if m == nil {
			return
		}
		s, err := schema.Build(m, schema.Options{Network: network, Remote: map[string]string{documentType: "Aggregations", described: "NumericAggregations"}})
		if err != nil {
			if !refusesName(err) {
				t.Fatal(err)
			}
			return
		}
		consistent(t, s)
		meta(t, s, `{__schema{types{...T} directives{name args{defaultValue}}}} fragment T on __Type{name description fields{name description args{defaultValue type{name}} type{name ofType{name}}} possibleTypes{name}}`, nil)
	})
}
