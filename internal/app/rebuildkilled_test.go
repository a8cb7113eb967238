package app_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// TestReplacementsKilled: a tutti that is killed at random instants of rebuilds, rollbacks and deletions of the index before, again and again
// on the same data, loses no change and no index that it needs: it ends with the documents of its records, and the next rebuild, rollback and
// deletion succeed.
func TestReplacementsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{pageSize: 20, batchBytes: 32 << 10, concurrency: 2})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	ids := w.fill("S1", 120)
	process := w.startChild()
	w.run("", "", core.JobSucceeded)
	w.run("", "?rebuild=true", core.JobSucceeded)
	actions := []struct{ method, path string }{
		{http.MethodPost, runPath("") + "?rebuild=true&force=true"},
		{http.MethodPost, runPath("") + "/rollback"},
		{http.MethodDelete, runPath("") + "/previous"},
	}
	doubtful := map[string]bool{}
	for round := range testkit.Cases(6) {
		for range 1 + rand.IntN(3) {
			action := actions[rand.IntN(len(actions))]
			a, err := w.request(action.method, action.path)
			if err != nil || a.status >= http.StatusInternalServerError && a.status != http.StatusServiceUnavailable {
				t.Errorf("round %d: %s %s: %d %s %v", round, action.method, action.path, a.status, a.raw, err)
			}
			for range rand.IntN(4) {
				id := ids[rand.IntN(len(ids))]
				w.put("S1", id, fmt.Sprintf(`"changed":%d`, rand.IntN(1000)))
				doubtful[id] = !w.tryPost(recordPath("S1", id))
			}
		}
		<-time.After(rand.N(300 * time.Millisecond)) // for nothing: the kill shall meet the process anywhere
		process.kill()
		process = w.startChild()
	}
	process.kill()
	w.start()
	for id, refused := range doubtful {
		if refused {
			w.trigger("S1", id)
		}
	}
	w.awaitConverged(wait)
	w.run("", "?rebuild=true&force=true", core.JobSucceeded)
	w.awaitConverged(wait)
	if err := w.app.Index().Check(t.Context(), core.NextAlias(w.alias)); !errors.Is(err, core.ErrIndexMissing) {
		t.Errorf("the index of the last rebuild: %v", err)
	}
	w.awaitJob(w.mustRequest(http.MethodPost, runPath("")+"/rollback", http.StatusAccepted).get("jobId").String())
	w.awaitConverged(wait)
	w.mustRequest(http.MethodDelete, runPath("")+"/previous", http.StatusNoContent)
	w.awaitConverged(wait)
}
