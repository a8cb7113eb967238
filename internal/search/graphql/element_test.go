package graphql_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index"
)

// TestCountedElements: elements are the same and have the same errors, whether their total is written before or after them.
func TestCountedElements(t *testing.T) {
	query := func(hits, node string) string {
		return `{analysis{hits{edges{node{count files{__typename hits{` + strings.ReplaceAll(hits, "edges", "edges{node{"+node+"}}") + `}}}}}}}`
	}
	type response struct {
		Data   any
		Errors []struct {
			Message string
			Path    []any
		}
	}
	for _, files := range []string{
		`[]`, `{}`, `null`, `[null]`, `[{"name":"a"}]`, `{"name":"a","size":1}`, `[{"name":"a"},{"size":2,"name":"b"}]`, `[{"name":"a"},null,{"name":"c"}]`,
		`[[{"name":"a"}],{"name":"b"}]`, `[{"name":["a","b"]},{"name":"c"}]`, `"text"`, `[1]`, `[{"name":"a"},2]`, ` [ {"name":"a"} , {"name":"b"} ] `,
		`[{"parts":[{"n":1},{"n":2}]},{"parts":{"n":3}},{"parts":[]},{"parts":null},{}]`, `[{"parts":[[{"n":1}]]}]`, `[{"parts":[{"n":"x"}]},{"parts":[{"n":2}]}]`,
		`[{"name":"a","size":{"x":1}},{"name":"b"}]`,
	} {
		for _, node := range []string{`name`, `size name again:name`, `name parts{hits{total edges{node{n}}}}`, `parts{hits(offset:1){edges{node{n}}}}`} {
			t.Run(files+" "+node, func(t *testing.T) {
				w := newWorld(t)
				w.engine.answer = gives(1, index.Hit{ID: "1", Source: []byte(`{"files":` + files + `,"count":4}`)})
				var got [2]response
				for i, hits := range []string{`total edges __typename`, `__typename edges total`} {
					if err := json.Unmarshal(w.ask(core.GraphQLRequest{Query: query(hits, node)}).Body, &got[i]); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(got[1], got[0]); diff != "" {
					t.Errorf("(-total last +total first):\n%s", diff)
				}
			})
		}
	}
}
