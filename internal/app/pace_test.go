package app_test

import (
	"fmt"
	"sync"
	"testing"

	"tutti/internal/core"
)

// TestPriority: a run beside searches is slowed down, unless indexing has the priority. Without searches it is not.
func TestPriority(t *testing.T) {
	t.Parallel()
	for _, priority := range []string{"searches", "indexing"} {
		t.Run(priority, func(t *testing.T) {
			t.Parallel()
			w, _ := newCatalogued(t, settings{environ: []string{"TUTTI_INDEX_PRIORITY=" + priority}}, folder{"a/base.json": based("a", aliasWord, "")})
			w.fill("S1", 800)
			w.start()
			w.run("", "", core.JobSucceeded)
			limit := func() float64 { return w.metric("tutti_run_limit_rows_per_second") }
			if probed := w.metric("tutti_run_probe_seconds"); probed != 0 {
				t.Errorf("without searches there was a probe of %v s", probed)
			}
			w.awaitAvailable("a")

			stop := make(chan struct{})
			var readers sync.WaitGroup
			readers.Go(func() { w.search("a", 800, stop) })
			w.eventually(wait, func() (bool, string) {
				n := w.metric("tutti_search_duration_seconds", "catalogue", "a")
				return n > 0, fmt.Sprint(n, " searches")
			})
			job := w.startRun("", "")
			if priority == "searches" {
				w.eventually(wait, func() (bool, string) { return limit() > 0, "the run is not slowed down" })
			}
			w.awaitJob(job)
			close(stop)
			readers.Wait()
			if resting := w.metric("tutti_run_probe_seconds", "runs", "resting"); resting > 0 != (priority == "searches") {
				t.Errorf("the probes while the run rested took %v s", resting)
			}
			if waited := w.metric("tutti_run_limit_waited_seconds_total"); waited > 0 != (priority == "searches") {
				t.Errorf("its rows waited for %v s", waited)
			}
			if priority == "indexing" && limit() != 0 {
				t.Errorf("the run was slowed down to %v rows a second", limit())
			}
		})
	}
}
