package app_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// TestKilled: a tutti that is killed in the middle of a run and of single changes continues after its next start; without a new
// trigger the index becomes equal to the upstream.
func TestKilled(t *testing.T) {
	t.Parallel()
	for round := range 6 {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings{pageSize: 40, batchBytes: 32 << 10, concurrency: 2})
			ids := w.fill("S1", 800)
			process := w.startChild()
			if round%2 == 1 { // a run before, so that the killed one rewrites, sweeps and removes
				w.run("", "", core.JobSucceeded)
				for _, id := range ids[:30] {
					w.song.SetState(id, "UNPUBLISHED")
				}
			}
			read := w.song.Requests(testkit.RoutePage)
			job := w.startRun("", "")
			until := 1 + rand.IntN(20)
			var doubtful []string
			for i := 30; w.song.Requests(testkit.RoutePage)-read < until && i < 400; i++ {
				w.put("S1", ids[i], fmt.Sprintf(`"experiment":{"changed":%d}`, i))
				if !w.tryPost(recordPath("S1", ids[i])) {
					doubtful = append(doubtful, ids[i])
				}
			}
			w.eventually(wait, func() (bool, string) {
				n := w.song.Requests(testkit.RoutePage) - read
				return n >= until, fmt.Sprintf("%d pages read", n)
			})
			<-time.After(rand.N(30 * time.Millisecond)) // for nothing: the kill shall meet the process anywhere
			process.kill()
			t.Logf("killed after %d pages of 21", w.song.Requests(testkit.RoutePage)-read)

			w.start()
			if j := w.awaitJob(job); j.Get("state").String() != string(core.JobSucceeded) {
				t.Errorf("the job ended %s", j.Raw)
			}
			w.awaitConverged(wait, doubtful...)
			if letters := w.deadLettersByRecord(); len(letters) != 0 {
				t.Errorf("dead letters: %+v", letters)
			}
		})
	}
}
