package graphql_test

import (
	"fmt"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
)

// TestDocumentWriterIsBounded: documents are written only up to the size limit of a response, however many are requested.
func TestDocumentWriterIsBounded(t *testing.T) {
	w := newWorld(t)
	var aliases strings.Builder
	for i := range 15 {
		fmt.Fprintf(&aliases, " a%d:studyId", i)
	}
	text := strings.Repeat("x", 100<<10)
	var hits []index.Hit
	for i := range 200 {
		hits = append(hits, index.Hit{ID: fmt.Sprint(i), Source: fmt.Appendf(nil, `{"studyId":%q}`, text)})
	}
	kept := 0
	w.engine.answer = gives(200, hits...)
	w.engine.reads = true
	w.engine.taken = func(n int) { kept += n }
	got := w.ask(core.GraphQLRequest{Query: `{analysis{hits(first:200){edges{node{` + aliases.String() + `}}}}}`})
	if !strings.Contains(string(got.Body), "the response is too large") || len(got.Body) > 1000 {
		t.Errorf("answered %d bytes: %.200s", len(got.Body), got.Body)
	}
	if most := 64<<20 + 16*len(text); kept > most || kept < 32<<20 {
		t.Errorf("%d bytes were written of what was read, at most %d may be", kept, most)
	}
}
