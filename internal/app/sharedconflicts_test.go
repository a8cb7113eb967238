package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/queue"
	"tutti/internal/tools/testkit"
)

// sharedModel returns the dead letters of conflicts that the records of both Songs call for: for each id that both have, with different
// contents, the one of the older record.
func (p *sharingSongs) sharedModel() []string {
	p.t.Helper()
	records := []map[string]gjson.Result{{}, {}}
	for n, song := range []*testkit.SongServer{p.song, p.other} {
		for _, a := range song.Analyses("S1") {
			if a.State == "PUBLISHED" {
				records[n][a.ID] = gjson.ParseBytes(a.Body)
			}
		}
	}
	var want []string
	for id, one := range records[0] {
		two, both := records[1][id]
		if !both || one.Get("sex").String() == two.Get("sex").String() {
			continue
		}
		older := code
		if two.Get("updatedAt").String() < one.Get("updatedAt").String() {
			older = otherCode
		}
		want = append(want, older+" "+id)
	}
	slices.Sort(want)
	return want
}

// TestSharedConflictsAtOnce: while two repositories change and remove the same records at once, through two processes, a record has a
// dead letter of a conflict if and only if it is the older one of two that differ.
func TestSharedConflictsAtOnce(t *testing.T) {
	t.Parallel()
	p := startSharingOf(t, settings{queueURL: externalQueue(t), faulty: true})
	second := p.secondProcess().newApp()
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("stopping the second app: %v", err)
		}
	})
	q, err := queue.Connect(t.Context(), queue.Config{URL: p.set.queueURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close(context.WithoutCancel(t.Context())) })
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const records, rounds = 12, 8
	for round := range rounds {
		var writers sync.WaitGroup
		for n, song := range []*testkit.SongServer{p.song, p.other} {
			writers.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(2*round+n)))
				for range 4 * records {
					id := fmt.Sprint("r", random.IntN(records))
					// The dates of the two are never the same.
					updated := fmt.Sprintf("2024-%02d-%02d", 1+random.IntN(12), 1+2*random.IntN(14)+n)
					switch random.IntN(6) {
					case 0:
						song.Delete(id)
					case 1:
						song.SetState(id, "UNPUBLISHED")
					default:
						p.has(id, updated, []string{"f", "m"}[random.IntN(2)], n)
					}
					p.mustRequest(http.MethodPost, p.record([]string{code, otherCode}[n], id), http.StatusAccepted)
				}
			})
		}
		writers.Wait()
		p.eventually(wait, func() (bool, string) {
			for _, repository := range []string{code, otherCode} {
				ids, err := q.PendingRecords(t.Context(), repository, "S1")
				if err != nil || len(ids) > 0 {
					return false, fmt.Sprintf("round %d: %d requests of %s, %v", round, len(ids), repository, err)
				}
			}
			return true, ""
		})
		p.eventually(wait, func() (bool, string) { // the list lags behind
			diff := cmp.Diff(p.sharedModel(), p.conflicts())
			return diff == "", fmt.Sprintf("round %d (-want +got):\n%s", round, diff)
		})
	}
}
