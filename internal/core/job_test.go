package core_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"tutti/internal/core"
)

// TestOrganizationRunCountsOnce: whatever the order in which pages end, are reported twice or are voided by a restart or
// a reread, the totals are those of the pages that have ended, each counted once, and of voided pages that none has
// replaced yet, so that they never fall; also after a trip through JSON.
// TestRetryJob: a retry of dead letters can be joined until it ends, and is no run that has written documents.
func TestRetryJob(t *testing.T) {
	for _, scope := range []core.Scope{core.ScopeRepository, core.ScopeRetry} {
		for _, state := range core.JobStates() {
			j := core.NewJob(core.Request{Scope: scope, JobID: "j"}, "")
			if j.State != core.JobQueued || j.ID != "j" {
				t.Errorf("a new job: %+v", j)
			}
			j.State, j.Totals.Indexed = state, 1
			if joinable := state == core.JobQueued || scope == core.ScopeRetry && !state.Final(); j.Joinable() != joinable {
				t.Errorf("%s %s: joinable %v", scope, state, j.Joinable())
			}
			if written := scope == core.ScopeRepository && (state == core.JobSucceeded || state == core.JobPartial); j.HasWritten() != written {
				t.Errorf("%s %s: has written %v", scope, state, j.HasWritten())
			}
			if j.Begun = true; j.Joinable() != (scope == core.ScopeRetry && !state.Final()) {
				t.Errorf("%s %s, with an index that is being created: joinable %v", scope, state, j.Joinable())
			}
		}
	}
}

func TestOrganizationRunCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := core.OrganizationRun{DoneThrough: -1}
		ended := map[int]int64{}
		var before int64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := rapid.IntRange(0, 12).Draw(t, "page")
			switch {
			case rapid.IntRange(0, 4).Draw(t, "step") > 0:
				rows := rapid.Int64Range(1, 9).Draw(t, "rows")
				if _, done := ended[n]; !done {
					ended[n] = rows
				}
				stale := rapid.Int64Range(0, rows).Draw(t, "stale")
				run.EndPage(n, core.Totals{Fetched: rows, Indexed: rows - stale, Stale: stale, Excluded: rows}, nil)
				run.NoteLate(n, run.Epoch)
			case rapid.IntRange(0, 9).Draw(t, "reread") == 0:
				run.Reread()
				clear(ended)
			case !run.PageDone(n):
				run.RestartFrom(n)
				for page := range ended {
					if page > n {
						delete(ended, page)
					}
				}
			}
			data, err := json.Marshal(run)
			if err != nil {
				t.Fatal(err)
			}
			run = core.OrganizationRun{}
			if err := json.Unmarshal(data, &run); err != nil {
				t.Fatal(err)
			}
			var want int64
			for _, rows := range ended {
				want += rows
			}
			got := run.Totals
			if got.Fetched-run.Voided.Fetched != want || got.Indexed+got.Stale != got.Fetched || got.Excluded != got.Fetched || got.Fetched < before {
				t.Fatalf("totals %+v, want %d and what is voided, and not below %d: %s", got, want, before, data)
			}
			before = got.Fetched
			if len(run.Late) != len(ended) {
				t.Fatalf("late records of the pages %v are noted, %d pages count", run.Late, len(ended))
			}
			for page := range 13 {
				if _, done := ended[page]; run.PageDone(page) != done {
					t.Fatalf("page %d done %v, want %v: %s", page, !done, done, data)
				}
			}
		}
	})
}

// TestVoidedDrift: what a voided page has found is counted once, though its documents are neither missing nor uncompared any more.
func TestVoidedDrift(t *testing.T) {
	for _, found := range []core.Drift{{Missing: 3, Different: 1}, {Uncompared: 3, Different: 1}, {Different: 4}} {
		run := core.OrganizationRun{DoneThrough: -1}
		found.Unchanged = 2
		run.EndPage(0, core.Totals{Fetched: 6, Indexed: 4, Drift: found}, nil)
		run.Reread()
		run.EndPage(0, core.Totals{Fetched: 7, Indexed: 5, Drift: core.Drift{Unchanged: 2, Different: 5}}, nil)
		want := core.Totals{Fetched: 7, Indexed: 5, Drift: found}
		want.Drift.Different++
		if run.Totals != want {
			t.Errorf("%+v: totals %+v, want %+v", found, run.Totals, want)
		}
	}
}
