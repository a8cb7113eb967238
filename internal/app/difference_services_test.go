//go:build services

package app_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestDifferenceAfterRestart: an engine that restarts forgets the version of a removal, so that a late write restores the document.
// A run of the difference removes it again.
func TestDifferenceAfterRestart(t *testing.T) {
	t.Parallel()
	own := newOwnNode(t)
	const flavour = "elasticsearch-8"
	w := newWorld(t, settings{elasticsearch: own.start(flavour)})
	engine := w.engine.(*elasticEngine)
	w.engine = directEngine{engine}
	ids := w.fill("S1", 30)
	w.start()
	before := time.Now().UnixNano()
	w.run("", "", core.JobSucceeded)
	document := string(engine.documents(w)[ids[7]])
	w.song.Delete(ids[7])
	w.trigger("S1", ids[7])
	w.awaitConverged(wait)

	late := func() int {
		path := fmt.Sprintf("/%s/_doc/%s?refresh=true&version_type=external_gte&version=%d", w.alias, ids[7], before)
		status, _ := engine.call(http.MethodPut, path, document)
		return status
	}
	if status := late(); status != http.StatusConflict {
		t.Fatalf("a late write before the restart has the status %d", status)
	}
	own.stop()
	w.awaitPaused(true)
	own.start(flavour)
	w.awaitPaused(false)
	if status := late(); status != http.StatusCreated {
		t.Fatalf("a late write after the restart has the status %d", status)
	}
	job := w.run("", "?difference=true", core.JobSucceeded)
	w.wantDrift(job.Get("id").String(), core.Drift{Unchanged: 29, Surplus: 1})
	w.awaitConverged(wait)
}
