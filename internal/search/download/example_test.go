package download_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing/fstest"

	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/download"
	"tutti/internal/search/view"
)

func ExampleService_Download() {
	ctx := context.Background()
	set, err := definition.LoadFS(fstest.MapFS{"base.json": {Data: []byte(base + `}`)}}, "configs", definition.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, problem := catalogue.Load(ctx, set.Definitions[0], mapping(mappings))
	if problem != nil {
		fmt.Println(problem)
		return
	}
	e := &engine{docs: [][]byte{[]byte(`{"analysisId":"A1","donor":{"age":40}}`), []byte(`{"analysisId":"A2"}`)}}
	s, err := download.New(models{"c": m}, view.New(e, view.Config{}), download.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := core.DownloadRequest{Params: []byte(`{"columns":["analysisId","donor.age"],"valueWhenEmpty":"unknown"}`)}
	err = s.Download(ctx, "c", core.Principal{}, r, func(head core.DownloadHead) (io.Writer, error) {
		fmt.Println(head.FileName)
		return os.Stdout, nil
	})
	fmt.Println(err)
	// Output:
	// analysis.tsv
	// Analysis Id	Donor Age
	// A1	40
	// A2	unknown
	// <nil>
}
