package response

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/search/graphql/output"
)

// TestNullPropagates: null in a required field makes its parent null (GraphQL specification, section 6.4.4). The current schemas have
// few required fields, and those are never null.
func TestNullPropagates(t *testing.T) {
	field := func(key string, required bool) *ast.Field {
		return &ast.Field{
			Alias: key, Name: key, ObjectDefinition: &ast.Definition{Name: "T"},
			Definition: &ast.FieldDefinition{Name: key, Type: &ast.Type{NamedType: "String", NonNull: required}},
		}
	}
	must, may := field("must", true), field("may", false)
	const told = `{"message":"the field T.must must not be null, but has no value","path":`
	for _, c := range []struct {
		name          string
		write         Value
		want, message string
	}{
		{"a member that may", func(w *Writer) bool { return w.object([]Member{NewMember(may, Null)}) }, `{"may":null}`, ""},
		{"a member", func(w *Writer) bool {
			return w.object([]Member{NewMember(may, Text("x")), NewMember(must, Null)})
		}, `null`, told + `["must"]`},
		{"a member that told why", func(w *Writer) bool {
			return w.object([]Member{NewMember(must, func(w *Writer) bool { return w.NullWithError(output.InputError("why")) })})
		}, `null`, `{"message":"why","path":["must"]`},
		{"through members", func(w *Writer) bool {
			return w.object([]Member{NewMember(may, func(w *Writer) bool { return w.object([]Member{NewMember(must, Null)}) })})
		}, `{"may":null}`, told + `["may","must"]`},
		{"an item", func(w *Writer) bool {
			return w.List(2, true, func(i int) bool { return i == 0 && w.Bool(true) || w.Null() })
		}, `null`, ""},
		{"an item that may", func(w *Writer) bool { return w.List(1, false, func(int) bool { return w.Null() }) }, `[null]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWriter()
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
