package evaluate_test

import (
	"context"
	"fmt"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/mapping"
)

func ExampleSearch() {
	tree, err := mapping.Parse([]byte(`{"properties":{"files":{"type":"nested","properties":{"kind":{"type":"keyword"}}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	builder := segment.NewBuilder(tree)
	for i, doc := range []string{`{"files":[{"kind":"vcf"},{"kind":"vcf"}]}`, `{"files":{"kind":"bam"}}`, `{"files":[{"kind":"vcf"}]}`, `{}`} {
		if err := builder.Add(uint64(i), fmt.Sprint("document ", i), []byte(doc)); err != nil {
			fmt.Println(err)
			return
		}
	}
	kind := query.Field{Path: "files.kind", Type: "keyword", Nested: []string{"files"}}
	answers, err := evaluate.Search(context.Background(), []evaluate.Part{{Segment: builder.Segment()}}, []index.SearchRequest{{
		Facets: []index.Facet{{Field: kind, Buckets: &index.Buckets{Max: 10, TopHits: 1}, Missing: true}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, b := range answers[0].Facets[0].Buckets {
		fmt.Println(b.Key, b.Count, b.TopHits[0].ID)
	}
	fmt.Println("missing", answers[0].Facets[0].Missing)
	// Output:
	// vcf 2 document 0
	// bam 1 document 1
	// missing 1
}
