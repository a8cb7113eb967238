package app_test

import (
	"fmt"
	"net/http"
	"testing"

	"tutti/internal/core"
)

// TestNeverIndexed: a repository whose index is empty and that no job has indexed there is a reason in /ready, until it is
// indexed, and again after a start with another indexName.
func TestNeverIndexed(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.fill("S1", 3)
	never := fmt.Sprintf("repository %s: never indexed; run tutti index %s", code, code)
	reasons := func(want string) {
		t.Helper()
		w.eventually(wait, func() (bool, string) {
			ready := w.ask(http.MethodGet, "/ready", http.StatusOK)
			return ready.get("ready").Bool() && ready.get("reasons.0").String() == want && ready.get("reasons.#").Int() <= 1, string(ready.raw)
		})
	}
	reasons(never)
	w.run("", "", core.JobSucceeded)
	reasons("")
	w.stop()
	w.alias += "-new"
	w.start()
	reasons(never)
	w.run("", "", core.JobSucceeded)
	reasons("")
}

// TestLocalIsIndexedByItself: the built-in repository fills an empty index, such as that of another indexName, by itself.
func TestLocalIsIndexedByItself(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{})
	id := b.submit("S1")
	b.publish("S1", id)
	b.awaitOutcomes(core.OutcomeIndexed, 1)
	b.stop()
	b.alias += "-new"
	b.up()
	b.eventually(wait, func() (bool, string) {
		b.ask(http.MethodGet, "/ready", http.StatusOK) // which checks, more often than the process does by itself
		fault := difference(b.kept("PUBLISHED"), b.documents())
		return fault == "", fault
	})
	if n := b.ask(http.MethodGet, "/jobs", http.StatusOK).get("jobs.#").Int(); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
}
