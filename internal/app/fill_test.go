package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tutti/internal/core"
)

// TestNeverIndexed: a repository whose index no run has filled is a reason in /ready until it is indexed, and again after a start with
// another indexName.
func TestNeverIndexed(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 3)
	never := fmt.Sprintf("repository %s: never indexed; run tutti index %s", code, code)
	reasons := func(want string) {
		t.Helper()
		w.eventually(wait, func() (bool, string) {
			ready, err := w.request(http.MethodGet, "/ready") // 503 until the catalogues have answered
			if err != nil {
				return false, err.Error()
			}
			return ready.get("ready").Bool() && ready.get("reasons.0").String() == want && ready.get("reasons.#").Int() <= 1, string(ready.raw)
		})
	}
	atOnce := func() {
		t.Helper()
		if ready, err := w.request(http.MethodGet, "/ready"); err != nil || strings.Contains(string(ready.raw), "never indexed") {
			t.Errorf("after the job that has indexed everything: %s, %v", ready.raw, err)
		}
	}
	reasons(never)
	w.run("", "", core.JobSucceeded)
	atOnce()
	w.stop()
	w.start()
	atOnce()
	w.stop()
	w.alias += "-new"
	w.start()
	w.mustRequest(http.MethodPost, recordPath("S1", ids[0]), http.StatusAccepted)
	w.eventually(wait, func() (bool, string) { return len(w.documents()) == 1, "no document" })
	w.run("S1", "", core.JobSucceeded)
	w.stop()
	w.start()
	reasons(never) // some documents are not all of them
	w.run("", "", core.JobSucceeded)
	reasons("")
	w.stop()
	w.start()
	reasons("")
}

// TestLocalIsIndexedAgain: a run that filled nothing is repeated.
func TestLocalIsIndexedAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	if err := os.WriteFile(file, []byte(`{"properties":{"experiment":{"properties":{"age":{"type":"long"}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := startBuiltIn(t, plan{})
	id := b.mustSend(http.MethodPost, "/submit/S1", b.payload("S1", `"age":"unknown"`), http.StatusOK).get("analysisId").String()
	b.publish("S1", id)
	b.awaitOutcomes(core.OutcomeIndexed, 1)
	b.stop()
	b.alias += "-new"
	b.set.configuration = plan{repository: fmt.Sprintf("mappingFile: %q", file)}.yaml
	b.startReady()
	b.eventually(wait, func() (bool, string) {
		b.awaitReady()
		jobs := b.mustRequest(http.MethodGet, "/jobs", http.StatusOK)
		return jobs.get("jobs.#").Int() > 1, string(jobs.raw)
	})
}

// TestLocalIsIndexedByItself: an empty index, such as that of another indexName, is filled from the built-in repository without a
// request. When it was last notified is known after the restart.
func TestLocalIsIndexedByItself(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{})
	id := b.submit("S1")
	b.publish("S1", id)
	b.awaitOutcomes(core.OutcomeIndexed, 1)
	notified := func() string {
		return b.mustRequest(http.MethodGet, "/repositories", http.StatusOK).get("repositories.0.lastNotification").String()
	}
	before := notified()
	b.stop()
	b.alias += "-new"
	b.startReady()
	if after := notified(); after == "" || after != before {
		t.Errorf("the last notification was at %q, and at %q after the restart", before, after)
	}
	b.eventually(wait, func() (bool, string) {
		b.awaitReady() // which checks, more often than the housekeeping
		fault := difference(b.storedAnalyses("PUBLISHED"), b.documents())
		return fault == "", fault
	})
	if n := b.mustRequest(http.MethodGet, "/jobs", http.StatusOK).get("jobs.#").Int(); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
}
