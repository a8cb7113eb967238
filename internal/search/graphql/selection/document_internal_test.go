package selection

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
)

// TestNullPropagatesInDocuments: null in a required field makes its parent null (GraphQL specification, section 6.4.4). The current schemas have
// few required fields, and those are never null.
func TestNullPropagatesInDocuments(t *testing.T) {
	declared := func(key string, required bool) *ast.Field {
		return &ast.Field{
			Alias: key, Name: key, ObjectDefinition: &ast.Definition{Name: "T"},
			Definition: &ast.FieldDefinition{Name: key, Type: &ast.Type{NamedType: "String", NonNull: required}},
		}
	}
	must, may := declared("must", true), declared("may", false)
	const told = `{"message":"the field T.must must not be null, but has no value","path":`
	wantOf := func(f *ast.Field) field {
		return field{encodedKey: output.Key(f), key: f.Alias, field: f}
	}
	for _, c := range []struct {
		name          string
		write         func(w *Writer) bool
		want, message string
	}{
		{"a document", func(w *Writer) bool {
			return w.Document(&Set{fields: []field{wantOf(may), wantOf(must)}}, []byte(`{}`), 0, nil)
		}, `null`, told + `["must"]`},
		{"a document whose members stand in the order of the query", func(w *Writer) bool {
			s := &Set{fields: []field{wantOf(may), wantOf(must)}, keys: []string{"may", "must"}}
			for i := range s.fields {
				s.fields[i].kind, s.fields[i].scalar, s.fields[i].keyIndex = fieldScalar, scalarString, i
			}
			return w.Document(s.finish(), []byte(`{"may":"x","must":{"no":"text"}}`), 0, nil)
		}, `null`, `{"message":"a document has a value in the field must that is not a string","path":["must"]`},
		{"a nested field", func(w *Writer) bool {
			return w.connection(&nestedConnection{fields: []connectionField{{encodedKey: output.Key(must), key: "must", field: must}}}, nil, 0, 0)
		}, `null`, told + `["must"]`},
		{"an edge", func(w *Writer) bool {
			return w.Edge(&Edge{fields: []edgeField{{encodedKey: output.Key(must), key: "must", kind: edgeSearchAfter, field: must}}}, nil, 0, &index.Hit{})
		}, `null`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &Writer{Writer: &output.Writer{}}
			filled := c.write(w)
			if string(w.Buf) != c.want || filled != (c.want != "null") {
				t.Errorf("%t %s, want %s", filled, w.Buf, c.want)
			}
			got := string(output.AppendErrors(nil, w.Errors))
			w.AddError(output.InputError("after it"))
			if last := string(output.AppendErrors(nil, w.Errors[len(w.Errors)-1:])); strings.Contains(last, "path") {
				t.Errorf("the path afterwards is that of %s", last)
			}
			w.Errors = w.Errors[:len(w.Errors)-1]
			if c.message == "" && len(w.Errors) > 0 || c.message != "" && (len(got) < len(c.message)+10 || got[10:10+len(c.message)] != c.message) {
				t.Errorf("got %s, want %s", got, c.message)
			}
		})
	}
}
