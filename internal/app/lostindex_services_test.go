//go:build services

package app_test

import (
	"fmt"
	"net/http"
	"testing"

	"tutti/internal/core"
)

// TestIndexDeletedUnderARun: an index that is deleted in the middle of a run is made again and its repository run again, by
// itself, and its catalogue is available again.
func TestIndexDeletedUnderARun(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{pageSize: 20})
	e := w.engine.(*elasticEngine)
	w.fill("S1", 600)
	w.fill("S2", 40)
	id := w.startRun("", "")
	w.awaitOutcomes(core.OutcomeIndexed, 100)
	e.removeIndex(w.alias)
	reruns := func() int64 {
		return w.mustRequest(http.MethodGet, "/jobs?limit=10", http.StatusOK).get(`jobs.#(cause=="reconcile")#|#`).Int()
	}
	w.eventually(wait, func() (bool, string) { return reruns() > 0, "no run by itself" })
	w.awaitJob(id)
	again := w.mustRequest(http.MethodGet, "/jobs?limit=10", http.StatusOK).get(`jobs.#(cause=="reconcile").id`).String()
	w.awaitJob(again)
	w.wantConverged()
	w.eventually(wait, func() (bool, string) {
		ready := w.mustRequest(http.MethodGet, "/ready", http.StatusOK)
		return ready.get("status").String() == "healthy" && ready.get("components.index").String() == "up" &&
			ready.get("paused.#").Int() == 0, fmt.Sprintf("GET /ready: %s", ready.raw)
	})
	if n := reruns(); n != 1 {
		t.Errorf("%d runs by itself, want 1", n)
	}
	if n := len(w.deadLettersByRecord()); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}
