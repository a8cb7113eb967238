package definition_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
)

func TestDefault(t *testing.T) {
	made := func(alias, documentType string) definition.Definition {
		return definition.Definition{ID: alias, Index: alias, DocumentType: documentType, GraphQLIntrospection: true, MaxAliases: 15}
	}
	failed := made("jobs", "analysis")
	failed.Err = &core.Error{
		Code: core.CodeInvalid,
		Message: `"jobs" cannot be the id of a catalogue, because it is the name of a server route: ` +
			"configure a folder of catalogues with another catalogId for this index",
		Hint: "set catalogues.dir to a folder with a base.json that has catalogId, documentType and esIndex",
	}
	tests := map[string]struct {
		indices []definition.DefaultIndex
		want    definition.Set
	}{
		"none": {nil, definition.Set{}},
		"two": {
			[]definition.DefaultIndex{{"donors", "record"}, {"analyses", "analysis"}},
			definition.Set{Definitions: []definition.Definition{made("analyses", "analysis"), made("donors", "record")}},
		},
		"shared": {
			[]definition.DefaultIndex{{"analyses", "analysis"}, {"analyses", "analysis"}},
			definition.Set{Definitions: []definition.Definition{made("analyses", "analysis")}},
		},
		"shared by two types": {
			[]definition.DefaultIndex{{"all", "record"}, {"all", "analysis"}},
			definition.Set{
				Definitions: []definition.Definition{made("all", "record")},
				Warnings:    []string{"the index all holds record as well as analysis documents: its catalogue calls them record"},
			},
		},
		"route": {
			[]definition.DefaultIndex{{"jobs", "analysis"}, {"a", "analysis"}},
			definition.Set{Definitions: []definition.Definition{made("a", "analysis"), failed}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := definition.Default(test.indices, definition.Options{Reserved: []string{"jobs"}})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("want, got: %s", diff)
			}
		})
	}
}
