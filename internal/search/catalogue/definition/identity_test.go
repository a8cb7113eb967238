package definition_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/search/catalogue/definition"
)

func withID(id string) string {
	return fmt.Sprintf(`{"catalogId": %q, "documentType": "analysis", "esIndex": "analyses"}`, id)
}

func TestIDs(t *testing.T) {
	route := func(id, in string) string {
		return fmt.Sprintf("%q cannot be the id of the catalogue in %s, because it is the name of a server route: set another catalogId", id, in)
	}
	several := func(id, in string) string {
		return fmt.Sprintf("%q is the id of several catalogues, those in %s: give each its own catalogId", id, in)
	}
	tests := map[string]struct {
		files files
		// want are the messages of the faults by the ids, "" for none.
		want map[string]string
	}{
		"of the folder":        {files{"genes/base.json": sound}, map[string]string{"genes": ""}},
		"of the configuration": {files{"genes/base.json": withID("variants")}, map[string]string{"variants": ""}},
		"from another file":    {files{"genes/base.json": sound, "genes/id.json": `{"catalogId": "x"}`}, map[string]string{"x": ""}},
		"at the top":           {files{"base.json": sound}, map[string]string{"genomics": ""}},
		"of a route":           {files{"a/base.json": withID("jobs")}, map[string]string{"a": route("jobs", "a")}},
		"folder of a route":    {files{"jobs/base.json": sound, "a/base.json": sound}, map[string]string{"jobs": route("jobs", "jobs"), "a": ""}},
		"folder of a route with another id": {
			files{"jobs/base.json": withID("a")}, map[string]string{"a": ""},
		},
		"route at the top": {files{"base.json": withID("jobs")}, map[string]string{"genomics": route("jobs", "the top folder")}},
		"twice": {
			files{"a/base.json": withID("x"), "b/base.json": withID("x"), "c/base.json": sound},
			map[string]string{"a": several("x", "a and b"), "b": several("x", "a and b"), "c": ""},
		},
		"three times, once by name": {
			files{"a/base.json": withID("x"), "b/base.json": withID("x"), "x/base.json": sound},
			map[string]string{"a": several("x", "a, b and x"), "b": several("x", "a, b and x"), "x": several("x", "a, b and x")},
		},
		"many times": {
			files{
				"a/base.json": withID("x"), "b/base.json": withID("x"), "c/base.json": withID("x"), "d/base.json": withID("x"),
				"e/base.json": withID("x"), "f/base.json": withID("x"), "g/base.json": withID("x"),
			},
			map[string]string{
				"a": several("x", "a, b, c, d, e and 2 more"), "b": several("x", "a, b, c, d, e and 2 more"), "c": several("x", "a, b, c, d, e and 2 more"),
				"d": several("x", "a, b, c, d, e and 2 more"), "e": several("x", "a, b, c, d, e and 2 more"), "f": several("x", "a, b, c, d, e and 2 more"),
				"g": several("x", "a, b, c, d, e and 2 more"),
			},
		},
		"name of a sound one": {
			files{"a/base.json": withID("jobs"), "b/base.json": withID("a"), "c/base.json": withID("a-2")},
			map[string]string{"a": "", "a-2": "", "a-3": route("jobs", "a")},
		},
		"top and folder of one name": {
			files{"base.json": sound, "genomics/base.json": sound},
			map[string]string{"genomics": several("genomics", "the top folder and genomics"), "genomics-2": several("genomics", "the top folder and genomics")},
		},
		"broken gives way": {
			files{"a/base.json": withID("x"), "x/base.json": sound, "x/table.json": "{"},
			map[string]string{"x": "", "x-2": ""},
		},
		"case": {files{"a/base.json": withID("x"), "b/base.json": withID("X")}, map[string]string{"x": "", "X": ""}},
		"slash": {
			files{"a/base.json": withID("x/y ?")}, map[string]string{"x/y ?": ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := load(t, test.files, definition.Options{Reserved: []string{"graphql", "jobs"}})
			got := map[string]string{}
			for _, d := range set.Definitions {
				got[d.ID] = ""
				if d.Err != nil && d.Err.Violations[0].Pointer == "/catalogId" {
					got[d.ID] = d.Err.Message
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || len(set.Definitions) != len(test.want) {
				t.Errorf("want, got: %s", diff)
			}
		})
	}
}

func TestIDFaultComesFirst(t *testing.T) {
	set := load(t, files{"a/base.json": withID("jobs"), "a/extended.json": `{"extended": 5}`}, definition.Options{Reserved: []string{"jobs"}})
	d := set.Definitions[0]
	if d.ID != "a" || len(d.Err.Violations) != 2 || d.Err.Violations[1].Pointer != "/extended" || d.DocumentType != "analysis" {
		t.Errorf("%+v, %+v", d, d.Err)
	}
	if d.Err.Hint != "set another catalogId in a/base.json" {
		t.Error(d.Err.Hint)
	}
}

func TestIDOfTheTopFolder(t *testing.T) {
	tests := map[string]struct {
		folder string
		files  files
		id     string
	}{
		"config":            {"config", files{"base.json": sound}, "analysis"},
		"configs":           {"Configs", files{"base.json": sound}, "analysis"},
		"with an id":        {"configs", files{"base.json": withID("x")}, "x"},
		"without a type":    {"configs", files{"base.json": `{"esIndex": "a"}`}, "configs"},
		"broken":            {"configs", files{"base.json": sound, "table.json": "{"}, "configs"},
		"configuration":     {"configuration", files{"base.json": sound}, "configuration"},
		"folder below":      {"x", files{"configs/base.json": sound}, "configs"},
		"root of the disk":  {"/", files{"base.json": "{"}, "catalogue"},
		"control character": {"a\x00b", files{"base.json": sound}, "a_b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, err := definition.LoadFS(test.files.fs(), test.folder, definition.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := set.Definitions[0].ID; got != test.id {
				t.Errorf("id %q, want %q", got, test.id)
			}
		})
	}
}
