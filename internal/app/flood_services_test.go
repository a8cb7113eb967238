//go:build services

package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tutti/internal/core"
)

// TestFloodStage: while the engine blocks the index because a disk is nearly full, /ready has the reason and a hint, and
// nothing is lost; afterwards the repository continues.
func TestFloodStage(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	e := w.engine.(*elasticEngine)
	block := func(value string) {
		t.Helper()
		if status, body := e.call(http.MethodPut, "/"+w.alias+"/_settings", `{"index.blocks.read_only_allow_delete":`+value+`}`); status != http.StatusOK {
			t.Fatalf("%d: %s", status, body)
		}
	}
	w.fill("S1", 20)
	w.run("S1", "", core.JobSucceeded)
	ids := w.fill("S2", 20)
	block("true")
	id := w.startRun("S2", "")
	w.eventually(wait, func() (bool, string) {
		block("true") // a cluster without watermarks lifts it every now and then
		w.trigger("S2", ids[0])
		ready := w.mustRequest(http.MethodGet, "/ready", http.StatusOK)
		reason := ready.get("paused.0.reason").String()
		return strings.Contains(reason, "flood-stage watermark") && strings.Contains(reason, "free disk space") &&
			ready.get("components.index").String() == "degraded", fmt.Sprintf("GET /ready: %s", ready.raw)
	})
	block("null")
	w.awaitJob(id)
	w.wantConverged()
	w.eventually(wait, func() (bool, string) {
		ready := w.mustRequest(http.MethodGet, "/ready", http.StatusOK)
		return ready.get("components.index").String() == "up" && ready.get("paused.#").Int() == 0, string(ready.raw)
	})
	if n := len(w.deadLettersByRecord()); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}
