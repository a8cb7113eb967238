package consumers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/tools/testkit"
)

// indexList stores a list of ids and requests a job over it, as ingest does, and returns the job's id.
func (w *world) indexList(list ...idlist.List) string {
	w.t.Helper()
	return w.indexListOf("", list...)
}

// indexListOf is indexList for a list of one organization.
func (w *world) indexListOf(organization string, list ...idlist.List) string {
	w.t.Helper()
	id := fmt.Sprintf("job-%d", w.requests+1)
	for _, part := range list {
		page := 0
		for chunk := range slices.Chunk(part.IDs, idlist.IDsPerPage) {
			ids := make([]idlist.ID, len(chunk))
			for i := range chunk {
				ids[i].ID = chunk[i]
			}
			if err := write(w.store, idsKey(id, part.Organization, page), 0, ids); err != nil {
				w.t.Fatal(err)
			}
			page++
		}
		last := page - 1
		run := core.OrganizationRun{Organization: part.Organization, State: core.JobQueued, DoneThrough: -1, LastPage: &last}
		run.Expect(int64(len(part.IDs)))
		if err := write(w.store, runKey(id, part.Organization), 0, run); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.publish(core.Request{Scope: core.ScopeIDs, Organization: organization}).JobID
}

// outcomes returns the outcomes of a job's ids of an organization.
func (w *world) outcomes(job, organization string) map[string]idlist.Outcome {
	w.t.Helper()
	all := map[string]idlist.Outcome{}
	for id, listed := range w.listedIDs(job, organization) {
		all[id] = listed.Outcome
	}
	return all
}

// listedIDs returns what is stored of the ids of an organization in a list.
func (w *world) listedIDs(job, organization string) map[string]idlist.ID {
	w.t.Helper()
	all := map[string]idlist.ID{}
	for page := 0; ; page++ {
		ids, _, err := read[[]idlist.ID](w.store, idsKey(job, organization, page))
		if err != nil {
			return all
		}
		for _, id := range ids {
			all[id.ID] = id
		}
	}
}

func numbered(org string, from, to int) []string {
	var ids []string
	for i := range to - from {
		ids = append(ids, fmt.Sprintf("%s-%04d", org, from+i))
	}
	return ids
}

// TestIDs: each id of a list has its outcome, and no other record is requested.
func TestIDs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 400)
		w.upstream.fill("B", 20)
		w.upstream.edit("A", "A-0001", func(r *record) { r.state = "UNPUBLISHED" })
		w.engine.item = func(id string, op core.WriteOp, _ []byte) (core.Result, bool) {
			return core.Result{Outcome: core.OutcomeRejected, Type: "mapper_parsing_exception", Reason: "field [age]"}, id == "A-0002" && op == core.OpIndex
		}
		down := true
		w.upstream.onRecord = func(_ context.Context, _, id string) error {
			if id == "A-0003" && down {
				return unavailable("it does not answer for this record")
			}
			return nil
		}
		job := w.indexList(
			idlist.List{Organization: "A", IDs: append(numbered("A", 0, 250), "gone", "B-0001")},
			idlist.List{Organization: "B", IDs: []string{"B-0002"}},
			idlist.List{Organization: "none", IDs: []string{"n"}},
		)
		w.afterPublish = func(r core.Request) {
			if r.Scope == core.ScopePage && r.Organization == "A" && r.Page.Number == 0 {
				newer := core.Version(time.Now().Add(time.Microsecond).UnixNano())
				w.engine.put("A-0004", newer, record{id: "A-0004", org: "A", state: published}.document())
			}
		}
		w.boot(-1)
		ended := w.await(job)
		w.ended(ended, core.JobPartial, core.JobErrorIDsNotIndexed)
		want := map[string]idlist.Outcome{"gone": idlist.Removed, "B-0001": idlist.Mismatch}
		for _, id := range numbered("A", 0, 250) {
			want[id] = idlist.Indexed
		}
		want["A-0001"], want["A-0002"], want["A-0003"], want["A-0004"] = idlist.Removed, idlist.DeadLettered, idlist.Retrying, idlist.Stale
		if diff := cmp.Diff(want, w.outcomes(job, "A")); diff != "" {
			t.Error(diff)
		}
		listed := w.listedIDs(job, "A")
		for id, hint := range map[string]string{
			"A-0003": "it is retried until the record is indexed, removed or a dead letter",
			"B-0001": "the record belongs to another organization of the repository; use that one",
		} {
			if listed[id].Hint != hint {
				t.Errorf("%s: the hint is %q, want %q", id, listed[id].Hint, hint)
			}
		}
		if got := w.outcomes(job, "B"); got["B-0002"] != idlist.Indexed {
			t.Errorf("B: %v", got)
		}
		if got := w.outcomes(job, "none"); got["n"] != idlist.Removed {
			t.Errorf("an organization that does not exist: %v", got)
		}
		sum := ended.Totals
		sum.Retried = 0
		if want := (core.Totals{Expected: 254, Fetched: 253, Indexed: 247, Stale: 1, Removed: 3, Rejected: 1}); sum != want {
			t.Errorf("totals %+v, want %+v", sum, want)
		}
		if w.upstream.requestsFor("A-0300") > 0 || len(w.upstream.pageCalls()) > 0 {
			t.Error("a record was requested that is not in the list")
		}
		down = false
		w.idle()
		if _, found, _ := w.engine.Get("A-0003"); !found {
			t.Error("the record with a request of its own is not indexed")
		}
		again := w.indexList(idlist.List{Organization: "B", IDs: []string{"B-0001"}}) // as its hint advises
		w.ended(w.job(again), core.JobSucceeded, "")
		if got := w.outcomes(again, "B"); got["B-0001"] != idlist.Indexed {
			t.Errorf("under its own organization: %v", got)
		}
	})
}

// TestIDsOfOrganization: a list of one organization shows no difference between the ids of other organizations' records and ids that do not
// exist.
func TestIDsOfOrganization(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 2)
		w.upstream.fill("B", 3)
		w.engine.put("B-0001", 1, record{id: "B-0001", org: "B", state: published}.document())
		w.engine.put("B-0002", 1, record{id: "B-0002", org: "C", state: published}.document())
		job := w.indexListOf("A", idlist.List{Organization: "A", IDs: []string{"A-0000", "gone", "B-0000", "B-0001", "B-0002"}})
		w.boot(-1)
		ended := w.await(job)
		ids, _, err := read[[]idlist.ID](w.store, idsKey(job, "A", 0))
		want := []idlist.ID{
			{ID: "A-0000", Outcome: idlist.Indexed},
			{ID: "gone", Outcome: idlist.Removed},
			{ID: "B-0000", Outcome: idlist.Removed},
			{ID: "B-0001", Outcome: idlist.Removed},
			{ID: "B-0002", Outcome: idlist.Removed}, // its document is brought up to date
		}
		if diff := cmp.Diff(want, ids); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if want := (core.Totals{Expected: 5, Fetched: 5, Indexed: 1, Removed: 4}); ended.Totals != want || ended.State != core.JobSucceeded {
			t.Errorf("%s, totals %+v, want %+v", ended.State, ended.Totals, want)
		}
		if _, found, _ := w.engine.Get("B-0001"); !found {
			t.Error("the document of another organization was removed")
		}
		if moved, _, _ := w.engine.Get("B-0002"); !strings.Contains(string(moved.Source), `"studyId":"B"`) {
			t.Errorf("the document of a moved record is %s", moved.Source)
		}
	})
}

// TestIDsCrash crashes processes between any two of their steps. Each id gets one outcome and is counted once.
func TestIDsCrash(t *testing.T) {
	for seed := range uint64(testkit.Cases(40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				r := rand.New(rand.NewPCG(seed, 7))
				w.broker.ackWait = 3 * time.Second
				w.upstream.fill("A", 350)
				w.upstream.fill("B", 30)
				w.engine.item = func(id string, op core.WriteOp, _ []byte) (core.Result, bool) {
					return core.Result{Outcome: core.OutcomeRejected, Type: "mapper_parsing_exception", Reason: "field [age]"},
						id[len(id)-1] == '7' && op == core.OpIndex
				}
				w.countsNeverFall()
				a, b := append(numbered("A", 0, 350), "A-gone"), append(numbered("B", 0, 30), "A-0001")
				job := w.indexList(idlist.List{Organization: "A", IDs: a}, idlist.List{Organization: "B", IDs: b})
				crashes := 0
				for range 8 {
					if p := w.boot(r.Int64N(900)); w.outlives(p, job) {
						break
					}
					crashes++
				}
				w.boot(-1)
				ended := w.job(job)
				w.ended(ended, core.JobPartial, core.JobErrorIDsNotIndexed)
				counts := map[idlist.Outcome]int64{}
				for _, org := range []string{"A", "B"} {
					for _, o := range w.outcomes(job, org) {
						counts[o]++
					}
				}
				want := map[idlist.Outcome]int64{idlist.Indexed: 342, idlist.DeadLettered: 38, idlist.Removed: 1, idlist.Mismatch: 1}
				if diff := cmp.Diff(want, counts); diff != "" {
					t.Errorf("after %d crashes: %s", crashes, diff)
				}
				sum := ended.Totals
				sum.Retried = 0
				if want := (core.Totals{Expected: 382, Fetched: 382, Indexed: 342, Removed: 1, Rejected: 38}); sum != want {
					t.Errorf("totals %+v after %d crashes, want %+v", sum, crashes, want)
				}
			})
		})
	}
}

// TestIDsOutage: while the repository does not answer, the job is paused and its list does not go on; then each id is indexed by it.
func TestIDsOutage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.giveUpAfter = time.Hour
		w.upstream.fill("A", 500)
		var down atomic.Bool
		down.Store(true)
		refuse := func() error {
			if down.Load() {
				return unavailable("the repository does not answer")
			}
			return nil
		}
		w.upstream.onRecord = func(context.Context, string, string) error { return refuse() }
		w.upstream.onList = refuse
		job := w.indexList(idlist.List{Organization: "A", IDs: numbered("A", 0, 500)})
		w.boot(-1)
		eventually(t, "the pause", func() bool {
			j, err := w.store.job(job)
			return err == nil && j.State == core.JobPaused
		})
		if pages := len(w.broker.published(core.ScopePage)); pages != 1 {
			t.Errorf("%d pages were published during the outage", pages)
		}
		down.Store(false)
		ended := w.job(job)
		w.ended(ended, core.JobSucceeded, "")
		if ended.Totals.Indexed != 500 {
			t.Errorf("totals %+v", ended.Totals)
		}
		w.verify()
	})
}

// TestIDsCancel: the ids of a cancelled job that were processed keep their outcomes, and no other is requested.
func TestIDsCancel(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 2000)
		w.upstream.latency = 100 * time.Millisecond
		job := w.indexList(idlist.List{Organization: "A", IDs: numbered("A", 0, 2000)})
		p := w.boot(-1)
		eventually(t, "some ids", func() bool { return w.engine.count(core.OutcomeIndexed) > 150 })
		if _, err := p.c.Cancel(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		ended := w.job(job)
		w.ended(ended, core.JobCancelled, core.JobErrorCancelled)
		done := 0
		for id, o := range w.outcomes(job, "A") {
			_, stored, _ := w.engine.Get(id)
			if (o == idlist.Indexed) != stored {
				t.Errorf("%s is %q, in the index: %t", id, o, stored)
			}
			if stored {
				done++
			}
		}
		if done < 150 || done > 1500 {
			t.Errorf("%d ids were indexed", done)
		}
	})
}
