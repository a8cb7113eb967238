package graphql_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

// TestBuffersAreNotShared: the buffer of a response is reused only after Release.
func TestBuffersAreNotShared(t *testing.T) {
	e := &engine{}
	e.answer = func(_ context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
		results := empty(reqs)
		for i := range reqs {
			for j := range reqs[i].Hits.From {
				hit := index.Hit{ID: "1", Source: fmt.Appendf(nil, `{"studyId":%q}`, strings.Repeat(fmt.Sprint(reqs[i].Hits.From), 30+j))}
				results[i].Hits = append(results[i].Hits, hit)
			}
		}
		read(reqs, results)
		return results, nil
	}
	service := graphql.New(view.New(e, view.Config{}), graphql.Config{})
	m := model(t, plain(), mappings)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := 100 * i; n < 100*i+60; n += 7 {
				ask := func() core.GraphQLResponse {
					query := fmt.Sprintf(`{analysis{hits(offset:%d){edges{node{studyId}}}}}`, n)
					return service.Execute(t.Context(), m, core.Principal{}, core.GraphQLRequest{Query: query})
				}
				var nodes []string
				for j := range n {
					nodes = append(nodes, fmt.Sprintf(`{"node":{"studyId":%q}}`, strings.Repeat(fmt.Sprint(n), 30+j)))
				}
				want := `{"data":{"analysis":{"hits":{"edges":[` + strings.Join(nodes, ",") + `]}}}}`
				first, second := ask(), ask()
				for _, got := range []core.GraphQLResponse{first, second} {
					if string(got.Body) != want {
						t.Errorf("%d documents: %.200s", n, got.Body)
					}
				}
				first.Release()
				if string(second.Body) != want {
					t.Errorf("%d documents, after another answer was given back: %.200s", n, second.Body)
				}
				second.Release()
			}
		})
	}
	all.Wait()
}
