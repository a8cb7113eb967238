package app_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// TestJobsOfOneScope: a queued job is returned to later triggers of its scope and flags, jobs of one scope run one
// after the other, and those of other scopes beside them.
func TestJobsOfOneScope(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.fill("S1", 150)
	w.fill("S2", 50)
	release := make(chan struct{})
	w.song.Fail(testkit.Fault{Path: pagesOf("S1"), Times: 1, Release: release})
	running := w.startRun("S1", "")
	w.eventually(wait, func() (bool, string) { n := w.song.Requests(testkit.RoutePage); return n == 1, fmt.Sprint(n, " pages") })
	queued := w.startRun("S1", "")
	if queued == running {
		t.Fatal("a running job was returned instead of queuing one")
	}
	for range 5 {
		if again := w.startRun("S1", ""); again != queued {
			t.Errorf("job %s, want the queued %s", again, queued)
		}
	}
	forced := w.startRun("S1", "?force=true")
	if forced == queued {
		t.Error("a job with other flags was returned")
	}
	w.run("S2", "", core.JobSucceeded)
	if state := w.job(queued).Get("state").String(); state != string(core.JobQueued) {
		t.Errorf("the second job is %s while the first runs", state)
	}
	close(release)
	var spans []gjson.Result
	for _, id := range []string{running, queued, forced} {
		job := w.awaitJob(id)
		if job.Get("state").String() != string(core.JobSucceeded) {
			t.Errorf("job %s", job.Raw)
		}
		spans = append(spans, job)
	}
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if a.Get("startedAt").Time().Before(b.Get("endedAt").Time()) && b.Get("startedAt").Time().Before(a.Get("endedAt").Time()) {
				t.Errorf("two jobs of one scope ran side by side:\n%s\n%s", a.Raw, b.Raw)
			}
		}
	}
	w.wantConverged()
	if n := len(w.mustRequest(http.MethodGet, "/jobs?state=succeeded", http.StatusOK).get("jobs").Array()); n != 4 {
		t.Errorf("%d jobs succeeded, want 4", n)
	}
}

// TestCancel: a cancelled job reads no more pages, sweeps nothing and makes room for the next.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 400)
	w.run("S1", "", core.JobSucceeded)
	w.song.SetState(ids[0], "UNPUBLISHED")
	read := w.song.Requests(testkit.RoutePage)
	release := make(chan struct{})
	w.song.Fail(testkit.Fault{Path: pagesOf("S1"), Skip: 1, Times: 1, Release: release})
	id := w.startRun("S1", "")
	w.eventually(wait, func() (bool, string) {
		n := w.song.Requests(testkit.RoutePage) - read
		return n == 2, fmt.Sprint(n, " pages")
	})
	job := w.mustRequest(http.MethodDelete, "/jobs/"+id, http.StatusOK)
	if job.get("state").String() != string(core.JobCancelled) || job.get("error.code").String() != core.JobErrorCancelled {
		t.Errorf("cancelled job: %s", job.raw)
	}
	w.mustRequest(http.MethodDelete, "/jobs/"+id, http.StatusConflict)
	next := w.startRun("S1", "")
	close(release)
	if j := w.awaitJob(next); j.Get("state").String() != string(core.JobSucceeded) {
		t.Errorf("the next job: %s", j.Raw)
	}
	// The cancelled job read two pages; a third may have been published, but is not read. The next job reads all five.
	if n := w.song.Requests(testkit.RoutePage) - read; n > 2+5 {
		t.Errorf("%d pages were read, want at most 7", n)
	}
	if j := w.job(id); j.Get("state").String() != string(core.JobCancelled) || j.Get("totals.removed").Int() != 0 {
		t.Errorf("the cancelled job went on: %s", j.Raw)
	}
	w.wantConverged()
}
