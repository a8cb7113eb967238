package embedded_test

import (
	"context"
	"fmt"
	"os"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
)

func ExampleIndex_Search() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "index")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	x, err := embedded.Open(embedded.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = x.Close() }()
	if err := x.Ensure(ctx, index.Spec{Alias: "analyses", Known: mapping.Song()}); err != nil {
		fmt.Println(err)
		return
	}
	doc := []byte(`{"analysisId":"a1","studyId":"ABC"}`)
	if _, err := x.Write(ctx, core.Batch{Index: "analyses", Body: doc, Items: []core.BatchItem{
		{ID: "a1", Version: 1, DocEnd: len(doc), End: len(doc)},
	}}); err != nil {
		fmt.Println(err)
		return
	}
	study := query.Field{Path: "studyId", Type: "keyword"}
	results, err := x.Search(ctx, "analyses", []index.SearchRequest{{
		Filter: &query.Node{Op: query.Terms, Field: study, Terms: []string{"ABC"}},
		Hits:   &index.HitsRequest{Size: 10},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %s\n", results[0].Hits[0].ID, results[0].Hits[0].Source)
	// Output: a1 {"analysisId":"a1","studyId":"ABC"}
}
