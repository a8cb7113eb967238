//go:build services

package elastic_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/bulk"
	"tutti/internal/index/elastic"
	"tutti/internal/index/mapping"
)

// unassigned makes an alias whose index has a primary shard that no node may hold.
func unassigned(t *testing.T) string {
	t.Helper()
	alias := fresh(t)
	admin(t, http.MethodPut, "/"+alias+"-1?wait_for_active_shards=0", `{"aliases":{"`+alias+`":{}},"settings":{`+
		`"number_of_replicas":0,"index.routing.allocation.require._name":"nowhere"}}`)
	return alias
}

// watching reports the requests to an alias.
type watching struct {
	*elastic.Index
	alias string
	sent  chan struct{}
}

func (x watching) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	if b.Index == x.alias {
		x.sent <- struct{}{}
	}
	return x.Index.Write(ctx, b)
}

// TestUnassignedPrimaryPauses: a document whose primary shard is missing must be fetched again, and Check says why.
func TestUnassignedPrimaryPauses(t *testing.T) {
	x := cluster(t)
	alias := unassigned(t)
	got := write(t, x, alias, put("a", 1, `{}`))
	if got[0].Outcome != core.OutcomeRetry || got[0].Code != core.CodeUnavailable {
		t.Errorf("got %+v", got)
	}
	wantError(t, x.Check(t.Context(), alias), core.CodeUnavailable, "a shard of the index "+alias+" does not answer")
}

// TestUnassignedPrimaryDelaysNoOther: while documents of an index without a primary shard are sent again and again, those
// of another index are written at the first try.
func TestUnassignedPrimaryDelaysNoOther(t *testing.T) {
	x := cluster(t)
	missing, healthy := unassigned(t), fresh(t)
	ensure(t, x, index.Spec{Alias: healthy, Known: mapping.Song()})
	watched := watching{Index: x, alias: missing, sent: make(chan struct{}, 1000)}
	w, err := bulk.New(watched, bulk.Config{BatchCount: 10})
	if err != nil {
		t.Fatal(err)
	}
	write := func(ctx context.Context, alias, id string) core.Result {
		ticket := w.Ticket()
		wr := put(id, 1, `{"studyId":"S"}`)
		wr.FetchedAt = time.Now()
		if err := w.Add(ctx, ticket, alias, wr); err != nil {
			return core.Result{Reason: err.Error()}
		}
		ticket.Seal()
		results, err := ticket.Wait(ctx)
		if err != nil {
			return core.Result{Reason: err.Error()}
		}
		return results[0]
	}
	var writers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 100 {
		writers.Go(func() {
			for ctx.Err() == nil {
				write(ctx, missing, fmt.Sprint(i))
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	for range 2 { // as many slots as an index begins with
		<-watched.sent
	}
	start, given := time.Now(), 0
	const documents = 40
	for i := range documents {
		if got := write(t.Context(), healthy, fmt.Sprint(i)); got.Outcome != core.OutcomeIndexed {
			given++
		}
	}
	t.Logf("mean %s, given back %d of %d", time.Since(start)/documents, given, documents)
	if given > 0 {
		t.Errorf("%d of %d documents of the healthy index were not written at the first try", given, documents)
	}
	cancel()
	writers.Wait()
	ctx, cancel = context.WithCancel(context.Background())
	cancel()
	_ = w.Close(ctx)
}
