package app_test

import (
	"net/http"
	"strings"
	"testing"

	"tutti/internal/core"
)

// wantDrift checks the drift of a job, which ran over n records, and that /ready names it.
func (w *world) wantDrift(job string, want core.Drift) {
	w.t.Helper()
	drift := w.mustRequest(http.MethodGet, "/jobs/"+job, http.StatusOK).get("totals.drift")
	got := core.Drift{
		Unchanged: drift.Get("unchanged").Int(), Missing: drift.Get("missing").Int(), Different: drift.Get("different").Int(),
		Surplus: drift.Get("surplus").Int(),
	}
	if got != want {
		w.t.Errorf("the drift is %+v, want %+v", got, want)
	}
	w.eventually(wait, func() (bool, string) {
		reasons := w.ready().raw
		return strings.Contains(string(reasons), "job "+job) == (want.Found() > 0), string(reasons)
	})
}

// TestDifference: a run of the difference repairs what notifications have missed, and writes nothing else.
func TestDifference(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 60)
	w.fill("S2", 20)
	w.run("", "", core.JobSucceeded)
	w.awaitConverged(wait)
	indexed := w.outcomes(core.OutcomeIndexed)
	job := w.run("", "?difference=true", core.JobSucceeded)
	w.wantDrift(job.Get("id").String(), core.Drift{Unchanged: 80})
	if n := w.outcomes(core.OutcomeIndexed); n != indexed || !job.Get("difference").Bool() {
		t.Errorf("%v documents were written; %s", n-indexed, job.Raw)
	}

	w.put("S1", ids[3], `"changed":true`)
	w.put("S1", "new", `"changed":true`)
	w.song.SetState(ids[5], "UNPUBLISHED")
	w.song.Delete(ids[6])
	job = w.run("", "?difference=true", core.JobSucceeded)
	w.wantDrift(job.Get("id").String(), core.Drift{Unchanged: 77, Missing: 1, Different: 1, Surplus: 2})
	w.awaitConverged(wait)
	if n := w.outcomes(core.OutcomeIndexed); n != indexed+2 {
		t.Errorf("%v documents were written", n-indexed)
	}
	for kind, want := range map[string]float64{"missing": 1, "different": 1, "surplus": 2} {
		if n := w.metric("tutti_drift_records_total", "repository", code, "kind", kind); n != want {
			t.Errorf("tutti_drift_records_total of %s is %v, want %v", kind, n, want)
		}
	}
	job = w.run("S1", "?difference=true", core.JobSucceeded)
	if drift := job.Get("totals.drift"); drift.Get("unchanged").Int() != 59 {
		t.Errorf("the drift is %s", drift.Raw)
	}
	w.wantDrift(w.run("", "?difference=true", core.JobSucceeded).Get("id").String(), core.Drift{Unchanged: 79})
	w.put("S1", "new", `"changed":false`)
	found := w.run("", "?difference=true", core.JobSucceeded).Get("id").String()
	w.wantDrift(found, core.Drift{Unchanged: 78, Different: 1})
	w.run("", "", core.JobSucceeded) // writes everything: what the comparison found is in the past
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		return !strings.Contains(string(a.raw), found), string(a.raw)
	})
	for path, query := range map[string]string{runPath(""): "?difference=true&rebuild=true", recordPath("S1", ids[0]): "?difference=true"} {
		w.mustRequest(http.MethodPost, path+query, http.StatusBadRequest)
	}
}
