package bulk_test

import (
	"context"
	"fmt"
	"time"

	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

func ExampleWriter() {
	ctx := context.Background()
	w, err := bulk.New(&fake{}, bulk.Config{BatchBytes: 1 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = w.Close(ctx) }()

	page := w.Ticket()
	for _, wr := range []core.Write{
		{ID: "A1", Version: 7, Document: []byte(`{"analysisId":"A1"}`), FetchedAt: time.Now()},
		{ID: "A2", Version: 7, Op: core.OpDelete},
	} {
		if err := w.Add(ctx, page, "analyses", wr); err != nil {
			fmt.Println(err)
			return
		}
	}
	page.Seal()
	results, err := page.Wait(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Println(r.Outcome)
	}
	// Output:
	// indexed
	// removed
}
