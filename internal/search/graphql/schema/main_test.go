package schema_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
	"go.uber.org/goleak"

	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/graphql/schema"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixed returns the same mapping for every index.
type fixed string

func (f fixed) Mapping(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(f), nil
}

// model returns the Model of a definition and a mapping.
func model(t testing.TB, d definition.Definition, raw string) *catalogue.Model {
	t.Helper()
	d.ID, d.Index = "a", "a"
	if d.DocumentType == "" {
		d.DocumentType = "analysis"
	}
	m, problem := catalogue.Load(t.Context(), d, fixed(raw))
	if problem != nil {
		t.Fatalf("no model: %+v", problem)
	}
	return m
}

// built returns the schema of a definition and a mapping.
func built(t testing.TB, d definition.Definition, raw string, options ...schema.Options) *schema.Schema {
	t.Helper()
	var o schema.Options
	if len(options) > 0 {
		o = options[0]
	}
	s, err := schema.Build(model(t, d, raw), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func file(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(file(t, name), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// parsed returns the operation of a valid query.
func parsed(t testing.TB, s *schema.Schema, query string) *ast.QueryDocument {
	t.Helper()
	doc, err := parser.ParseQuery(&ast.Source{Input: query})
	if err != nil {
		t.Fatal(err)
	}
	if errs := validator.ValidateWithRules(s.AST, doc, rules.NewDefaultRules()); len(errs) > 0 {
		t.Fatalf("%s\n%v", query, errs)
	}
	return doc
}

// meta returns the introspection fields of a query.
func meta(t testing.TB, s *schema.Schema, query string, vars map[string]any) string {
	t.Helper()
	doc := parsed(t, s, query)
	c := collector{doc, vars}
	dst := []byte{'{'}
	for i, f := range c.collect("Root", doc.Operations[0].SelectionSet) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), f.Alias...), `":`...)
		dst = s.AppendMeta(dst, f, vars, c.collect)
	}
	dst = append(dst, '}')
	if !json.Valid(dst) {
		t.Fatalf("not JSON: %s", dst)
	}
	return string(dst)
}

// collector collects the fields of selections as an executor does.
type collector struct {
	doc  *ast.QueryDocument
	vars map[string]any
}

func (c collector) collect(typeName string, set ast.SelectionSet) []*ast.Field {
	return c.add(nil, typeName, set)
}

func (c collector) add(out []*ast.Field, typeName string, set ast.SelectionSet) []*ast.Field {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if !c.included(s.Directives) {
				continue
			}
			i := slices.IndexFunc(out, func(f *ast.Field) bool { return f.Alias == s.Alias })
			if i < 0 {
				out = append(out, new(*s))
				continue
			}
			out[i].SelectionSet = slices.Concat(out[i].SelectionSet, s.SelectionSet)
		case *ast.InlineFragment:
			if c.included(s.Directives) && (s.TypeCondition == "" || s.TypeCondition == typeName) {
				out = c.add(out, typeName, s.SelectionSet)
			}
		case *ast.FragmentSpread:
			if f := c.doc.Fragments.ForName(s.Name); c.included(s.Directives) && f.TypeCondition == typeName {
				out = c.add(out, typeName, f.SelectionSet)
			}
		}
	}
	return out
}

func (c collector) included(directives ast.DirectiveList) bool {
	for _, d := range directives {
		value, _ := d.Arguments.ForName("if").Value.Value(c.vars)
		if (d.Name == "skip") == (value == true) {
			return false
		}
	}
	return true
}
