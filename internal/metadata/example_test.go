package metadata_test

import (
	"context"
	"fmt"
	"os"

	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/store"
)

// A study, an analysis that is submitted and published, and the event of its publication.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "metadata")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := store.Open(ctx, store.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close(ctx) }()
	repository, err := metadata.New(s, accepting{}, metadata.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := repository.CreateStudy(ctx, datamodel.Study{ID: "PACA-CA"}); err != nil {
		fmt.Println(err)
		return
	}
	id, err := repository.Submit(ctx, "PACA-CA", []byte(payload("a.vcf")), false)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := repository.SetState(ctx, "PACA-CA", id, datamodel.StatePublished, false); err != nil {
		fmt.Println(err)
		return
	}
	analysis, err := repository.Analysis(ctx, "PACA-CA", id)
	fmt.Println(analysis.State, err)
	given, err := repository.Relay(ctx, 10, func(_ context.Context, changes []datamodel.Change) []error {
		fmt.Println(changes[0].AnalysisID == id)
		return nil
	})
	fmt.Println(given, err)
	// Output:
	// PUBLISHED <nil>
	// true
	// 1 <nil>
}
