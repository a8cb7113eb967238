package graphql_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/search/graphql"
	"tutti/internal/search/view"
)

// BenchmarkPage executes the operation of a portal's page, hits beside aggregations: with the same variables, whose plan is cached,
// and with other variables each time.
func BenchmarkPage(b *testing.B) {
	for _, c := range []struct {
		name   string
		filter func(i int) string
	}{
		{"cached", func(int) string { return "S" }},
		{"planned", func(i int) string { return fmt.Sprint("S", i) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := &engine{reads: true}
			e.answer = func(_ context.Context, reqs []index.SearchRequest) ([]index.SearchResult, error) {
				return facetKey(context.WithValue(context.Background(), askKey{}, 4), reqs), nil
			}
			service := graphql.New(view.New(e, view.Config{}), graphql.Config{})
			m := model(b, plain(), mappings)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				variables := fmt.Appendf(nil, `{"f":{"op":"in","content":{"fieldName":"studyId","value":[%q]}}}`, c.filter(i))
				got := service.Execute(b.Context(), m, anonymous, core.GraphQLRequest{Query: pageQuery, Variables: json.RawMessage(variables)})
				if got.Rejected {
					b.Fatalf("%s", got.Body)
				}
				got.Release()
			}
		})
	}
}
