package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
)

// writeToStore puts a document into the index that no repository has.
func (b *builtIn) writeToStore(study, id string) {
	b.t.Helper()
	document := fmt.Appendf(nil, `{"repositories":[{"code":%q,"name":"","organization":"","country":"","url":"","type":"local"}],`+
		`"analysisId":%q,"studyId":%q,"analysisState":"PUBLISHED"}`, builtInCode, id, study)
	x := b.app.Index()
	write := core.Write{
		Op: core.OpIndex, ID: id, Version: core.Version(time.Now().Add(-time.Hour).UnixNano()), Document: document,
	}
	body, start, end := x.Encode(nil, write)
	results, err := x.Write(context.WithoutCancel(b.t.Context()), core.Batch{
		Index: b.alias, Body: body, Items: []core.BatchItem{{
			Op: write.Op, ID: id, Version: write.Version, DocStart: start, DocEnd: end, End: len(body),
		}},
	})
	if err != nil || len(results) != 1 || results[0].Outcome != core.OutcomeIndexed {
		b.t.Fatalf("writing by hand: %+v, %v", results, err)
	}
}

// TestBuiltInRun: a run over the built-in repository finds changes without events, reads every page of every study, and indexes only
// published analyses; its sweep removes what is no longer published.
func TestBuiltInRun(t *testing.T) {
	t.Parallel()
	b := newBuiltIn(t, plan{set: settings{pageSize: 20}})
	sizes := map[string]int{"S1": 140, "S2": 35, "S3": 1, "S4": 0}
	published := map[string][]string{}
	b.changeWithoutEvents(func(ctx context.Context, r *metadata.Repository) {
		for study, n := range sizes {
			var others []string
			published[study], others = b.addAnalyses(ctx, r, study, n)
			for i, id := range others {
				if i%2 == 1 {
					continue
				}
				if err := r.SetState(ctx, study, id, datamodel.StateSuppressed, false); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	b.startReady()
	want := len(published["S1"]) + len(published["S2"])
	if got := b.storedAnalyses(everyState); len(got) != 176 {
		t.Fatalf("%d analyses are kept, want 176", len(got))
	}
	b.awaitPaused(false)
	b.eventually(wait, func() (bool, string) { // the empty index is filled without a request
		b.awaitReady()
		jobs := b.mustRequest(http.MethodGet, "/jobs", http.StatusOK)
		return jobs.get("jobs.0.state").String() == string(core.JobSucceeded), string(jobs.raw)
	})
	job := b.runLocal("S2", "", core.JobSucceeded)
	counted(t, job, map[string]int64{"totals.indexed": int64(len(published["S2"])), "organizations.#": 1})
	job = b.runLocal("", "", core.JobSucceeded)
	counted(t, job, map[string]int64{
		"totals.expected": int64(want), "totals.fetched": int64(want), "totals.indexed": int64(want), "totals.removed": 0,
		"totals.rejected": 0, "organizations.#": 4,
	})
	b.wantConverged()
	if n := len(b.documents()); n != want {
		t.Errorf("%d documents, want %d", n, want)
	}
	if n := b.outboxCount(); n != 0 {
		t.Errorf("%d changes whose events were lost were published", n)
	}

	b.stop()
	b.changeWithoutEvents(func(ctx context.Context, r *metadata.Repository) {
		for i, id := range published["S1"][:6] {
			state := datamodel.StateUnpublished
			if i%2 == 0 {
				state = datamodel.StateSuppressed
			}
			if err := r.SetState(ctx, "S1", id, state, false); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Merge(ctx, "S1", published["S1"][6], []byte(`{"experiment":{"merged":true}}`)); err != nil {
			t.Fatal(err)
		}
	})
	b.startReady()
	if n := len(b.documents()); n != want {
		t.Fatalf("%d documents before the second run, want %d still", n, want)
	}
	b.writeToStore("S1", "nobody-has-it")
	b.writeToStore("S2", published["S1"][7]+"x")
	b.writeToStore("gone", "of-no-study")
	job = b.runLocal("", "", core.JobSucceeded)
	counted(t, job, map[string]int64{"totals.expected": int64(want - 6), "totals.removed": 6 + 3})
	b.wantConverged()
	if !strings.Contains(b.documents()[published["S1"][6]], `"merged":true`) {
		t.Error("the merged analysis is not in the index as it is now")
	}
	b.wantNoDeadLetters()
}

// TestBuiltInGuard: a run that would remove most of a study removes nothing unless it is forced.
func TestBuiltInGuard(t *testing.T) {
	t.Parallel()
	b := newBuiltIn(t, plan{})
	var published []string
	b.changeWithoutEvents(func(ctx context.Context, r *metadata.Repository) { published, _ = b.addAnalyses(ctx, r, "S1", 70) })
	b.startReady()
	b.runLocal("", "", core.JobSucceeded)
	b.stop()
	b.changeWithoutEvents(func(ctx context.Context, r *metadata.Repository) {
		for _, id := range published[:40] {
			if err := r.SetState(ctx, "S1", id, datamodel.StateUnpublished, false); err != nil {
				t.Fatal(err)
			}
		}
	})
	b.startReady()
	job := b.runLocal("S1", "", core.JobPartial)
	if c := job.Get("error.code").String(); c != core.JobErrorPruneGuard {
		t.Errorf("error.code is %q, want %q: %s", c, core.JobErrorPruneGuard, job.Raw)
	}
	if n := len(b.documents()); n != 60 {
		t.Errorf("%d documents after a guarded run, want all 60", n)
	}
	counted(t, b.runLocal("S1", "?force=true", core.JobSucceeded), map[string]int64{"totals.removed": 40})
	b.wantConverged()
}

// TestBuiltInReconcile: the periodic run of the built-in repository corrects the index.
func TestBuiltInReconcile(t *testing.T) {
	t.Parallel()
	b := newBuiltIn(t, plan{repository: "reconcile: {every: 10s}"})
	b.changeWithoutEvents(func(ctx context.Context, r *metadata.Repository) { b.addAnalyses(ctx, r, "S1", 30) })
	b.startReady()
	b.awaitConverged()
	if n := len(b.documents()); n != 25 {
		t.Errorf("%d documents, want 25", n)
	}
	b.eventually(wait, func() (bool, string) {
		a := b.mustSend(http.MethodGet, "/jobs", "", http.StatusOK)
		return a.get("jobs.0.cause").String() == "reconcile" && a.get("jobs.0.state").String() == string(core.JobSucceeded), string(a.raw)
	})
}
