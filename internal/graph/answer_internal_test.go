package graph

import (
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/index"
)

// TestNullGoesUp: where null is not allowed, what holds it is null (GraphQL specification, section 6.4.4). Few fields of the
// schemas of today must not be null, and those never are.
func TestNullGoesUp(t *testing.T) {
	field := func(key string, required bool) *ast.Field {
		return &ast.Field{
			Alias: key, Name: key, ObjectDefinition: &ast.Definition{Name: "T"},
			Definition: &ast.FieldDefinition{Name: key, Type: &ast.Type{NamedType: "String", NonNull: required}},
		}
	}
	must, may := field("must", true), field("may", false)
	const told = `{"message":"the field T.must must not be null, and has no value","path":`
	wantOf := func(f *ast.Field) want { return want{head: headOf(f), key: f.Alias, field: f} }
	for _, c := range []struct {
		name          string
		write         write
		want, message string
	}{
		{"a member that may", func(w *answer) bool { return w.object([]member{memberOf(may, nothing)}) }, `{"may":null}`, ""},
		{"a member", func(w *answer) bool { return w.object([]member{memberOf(may, constant("x")), memberOf(must, nothing)}) }, `null`, told + `["must"]`},
		{"a member that told why", func(w *answer) bool {
			return w.object([]member{memberOf(must, func(w *answer) bool { return w.failed(badInput("why")) })})
		}, `null`, `{"message":"why","path":["must"]`},
		{"through members", func(w *answer) bool {
			return w.object([]member{memberOf(may, func(w *answer) bool { return w.object([]member{memberOf(must, nothing)}) })})
		}, `{"may":null}`, told + `["may","must"]`},
		{"an item", func(w *answer) bool {
			return w.list(2, true, func(i int) bool { return i == 0 && w.flag(true) || w.null() })
		}, `null`, ""},
		{"an item that may", func(w *answer) bool { return w.list(1, false, func(int) bool { return w.null() }) }, `[null]`, ""},
		{"a document", func(w *answer) bool {
			return w.document(&shape{wants: []want{wantOf(may), wantOf(must)}}, []byte(`{}`), 0, nil)
		}, `null`, told + `["must"]`},
		{"a document whose members stand in the order of the query", func(w *answer) bool {
			s := &shape{wants: []want{wantOf(may), wantOf(must)}, keys: []string{"may", "must"}}
			for i := range s.wants {
				s.wants[i].kind, s.wants[i].scalar, s.wants[i].slot = wantScalar, scalarString, i
			}
			return w.document(s.done(), []byte(`{"may":"x","must":{"no":"text"}}`), 0, nil)
		}, `null`, `{"message":"a document has a value in the field must that is not a text","path":["must"]`},
		{"a nested field", func(w *answer) bool {
			return w.nest(&nest{wants: []nestWant{{head: headOf(must), key: "must", field: must}}}, nil, 0, 0)
		}, `null`, told + `["must"]`},
		{"an edge", func(w *answer) bool {
			return w.edge(&edge{wants: []edgeWant{{head: headOf(must), key: "must", kind: edgeSearchAfter, field: must}}}, nil, 0, &index.Hit{})
		}, `null`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &answer{}
			filled := c.write(w)
			if string(w.dst) != c.want || filled != (c.want != "null") || len(w.path) != 0 {
				t.Errorf("%t %s, want %s", filled, w.dst, c.want)
			}
			got := string(appendFaults(nil, w.faults))
			if c.message == "" && len(w.faults) > 0 || c.message != "" && (len(got) < len(c.message)+10 || got[10:10+len(c.message)] != c.message) {
				t.Errorf("got %s, want %s", got, c.message)
			}
		})
	}
}
