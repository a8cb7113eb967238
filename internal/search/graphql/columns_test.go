package graphql_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/search/catalogue/definition"
)

// column is the part of a column of configs that a client's table uses.
type column struct {
	FieldName, JSONPath, Query string
	IsArray                    bool
}

// TestColumnsOfGoldenMappings: the queries of a client's table are valid for every golden mapping, and find the values.
func TestColumnsOfGoldenMappings(t *testing.T) {
	var files []string
	for _, pattern := range []string{"schema/testdata/*.json", "../catalogue/testdata/rich.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tree, _, err := mapping.ParseForeign(raw)
		if err != nil {
			t.Fatal(err)
		}
		prefixes := []string{""}
		if data := tree.Lookup("data"); data != nil && data.Container() {
			prefixes = append(prefixes, "data")
		}
		for _, prefix := range prefixes {
			d := plain()
			d.Extended, d.NestingPrefix = nil, prefix
			name := strings.TrimSuffix(filepath.Base(file), ".json") + " " + prefix
			t.Run(name+" by default", func(t *testing.T) { columnsLead(t, d, tree, string(raw)) })
			t.Run(name+" of every field", func(t *testing.T) {
				var named []string
				root := tree
				if prefix != "" {
					root = tree.Lookup(prefix)
				}
				for _, f := range model(t, d, string(raw)).Catalogue().Fields {
					if inSource(root, f.Name) {
						named = append(named, fmt.Sprintf(`{"fieldName":%q,"show":true}`, f.Name))
					}
				}
				d := d
				d.Table = json.RawMessage(`{"columns":[` + strings.Join(named, ",") + `]}`)
				columnsLead(t, d, tree, string(raw))
			})
		}
	}
}

// inSource reports whether documents hold values of their own at a path of the mapping.
func inSource(tree *mapping.Field, path string) bool {
	f := tree
	for segment := range strings.SplitSeq(path, ".") {
		if f == nil || f != tree && !f.Container() {
			return false
		}
		f = f.Properties[segment]
	}
	return f != nil && f.Type != "alias" && len(f.Properties) == 0
}

// documentOf returns a document of a mapping, with one value in each field.
func documentOf(f *mapping.Field) any {
	switch {
	case f.Container() && len(f.Properties) > 0:
		members := map[string]any{}
		for name, below := range f.Properties {
			if below.Type != "alias" {
				members[name] = documentOf(below)
			}
		}
		if f.Type == mapping.Nested {
			return []any{members}
		}
		return members
	case f.Type == "boolean":
		return true
	default:
		return 1
	}
}

// columnsLead fails unless the queries of the columns succeed, individually and combined, and find values.
func columnsLead(t *testing.T, d definition.Definition, tree *mapping.Field, raw string) {
	w := &world{T: t, engine: &engine{}}
	w.over(d, raw)
	document, err := json.Marshal(documentOf(tree))
	if err != nil {
		t.Fatal(err)
	}
	w.engine.answer = gives(1, index.Hit{ID: "1", Source: document})
	configs := w.ask(ask(`{analysis{configs{table{rowIdFieldName columns{fieldName jsonPath query isArray}}}}}`)).Body
	table := gjson.GetBytes(configs, "data.analysis.configs.table")
	var columns []column
	if err := json.Unmarshal([]byte(table.Get("columns").Raw), &columns); err != nil {
		t.Fatalf("%v: %s", err, configs)
	}
	if len(columns) == 0 && slices.ContainsFunc(w.model.Catalogue().Fields, func(f core.CatalogueField) bool { return inSource(w.model.Root(), f.Name) }) {
		t.Fatal("there are no columns")
	}
	all := table.Get("rowIdFieldName").String()
	for _, c := range columns {
		w.leads(c.Query, c)
		all += "\n" + c.Query
	}
	w.leads(all, columns...)
}

// leads fails unless a query of a client's table succeeds, and the paths of the columns find their values.
func (w *world) leads(query string, columns ...column) {
	w.Helper()
	got := w.ask(ask(`{analysis{hits(first:1){total edges{node{` + query + `}}}}}`))
	if got.Rejected || gjson.GetBytes(got.Body, "errors").Exists() {
		w.Errorf("%s: %s", query, got.Body)
		return
	}
	for _, c := range columns {
		path, rooted := strings.CutPrefix(c.JSONPath, "$.")
		value := gjson.GetBytes(got.Body, "data.analysis.hits.edges.0.node."+strings.ReplaceAll(path, "[*]", ".#"))
		if listed := strings.Contains(path, "[*]"); listed != c.IsArray && w.model.Definition().Table == nil {
			w.Errorf("%s: isArray is %t", c.FieldName, c.IsArray)
		}
		for range strings.Count(path, "[*]") {
			value = value.Get("0")
		}
		if !rooted || !value.Exists() || value.Type == gjson.Null {
			w.Errorf("%s: %s leads to nothing in %s", c.FieldName, c.JSONPath, got.Body)
		}
	}
}
