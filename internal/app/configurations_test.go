package app_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// TestTwoConfigurations: two processes on one NATS server, each with a repository that the other does not have and with other settings, work
// on. Starts of one, also after SIGKILL, take no Request, consumer or job from the other, and no document is lost. Requests of a
// repository that no process has any more are dead letters, and are processed by the retry that their hint names.
func TestTwoConfigurations(t *testing.T) {
	t.Parallel()
	const otherCode = "song.other"
	url := externalQueue(t)
	one := newWorld(t, settings{queueURL: url, pageSize: 10, concurrency: 2})
	two := newWorld(t, settings{queueURL: url, pageSize: 50, concurrency: 8, maxPending: 500, batchBytes: 64 << 10, maxDeliver: 5})
	plain := two.yaml()
	two.set.configuration = func(*world) string { return strings.Replace(plain, "code: "+code+"\n", "code: "+otherCode+"\n", 1) }
	one.fill("S1", 100)
	ids := one.fill("S2", 60)
	others := two.fill("S1", 60)
	one.start()
	one.awaitPaused(false)

	job := one.startRun("", "")
	process := two.startChild()
	for round := range testkit.Cases(4) {
		for _, id := range ids[:20] {
			one.put("S2", id, fmt.Sprintf(`"changed":%d`, round))
			one.trigger("S2", id)
		}
		for _, id := range others[:20] {
			two.put("S1", id, fmt.Sprintf(`"changed":%d`, round))
			two.mustRequest(http.MethodPost, "/index/repository/"+otherCode+"/organization/S1/id/"+id, http.StatusAccepted)
		}
		<-time.After(rand.N(100 * time.Millisecond)) // for nothing: the kill shall meet the process anywhere
		process.kill()
		process = two.startChild()
		two.mustRequest(http.MethodPost, "/index/repository/"+code+"/organization/S2/id/"+ids[0], http.StatusNotFound)
	}
	if j := one.awaitJob(job); j.Get("state").String() != string(core.JobSucceeded) {
		t.Errorf("the job ended %s", j.Raw)
	}
	one.awaitConverged(wait)
	run := two.mustRequest(http.MethodPost, "/index/repository/"+otherCode, http.StatusAccepted).get("jobId").String()
	if j := two.awaitJob(run); j.Get("state").String() != string(core.JobSucceeded) || j.Get("totals.indexed").Int() != 60 {
		t.Errorf("the other repository's job ended %s", j.Raw)
	}
	if letters := one.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}

	// A Request that waits is left to its process, too.
	one.song.Fail(testkit.Fault{Times: 1 << 30, Status: http.StatusServiceUnavailable})
	one.put("S2", ids[0], `"changed":999`)
	one.trigger("S2", ids[0])
	process.kill()
	process = two.startChild()
	if letters := one.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters of a Request that waits: %+v", letters)
	}
	one.song.ClearFaults()
	one.awaitConverged(wait)

	// The first process ends with Requests in the queue, and only then they are those of no process.
	one.song.Fail(testkit.Fault{Times: 1 << 30, Status: http.StatusServiceUnavailable})
	one.put("S2", ids[1], `"changed":1000`)
	one.trigger("S2", ids[1])
	one.stop()
	one.song.ClearFaults()
	process.kill()
	two.startChild()
	letters := two.mustRequest(http.MethodGet, "/dead-letters?repository="+code, http.StatusOK)
	letter := letters.get("deadLetters.0")
	if letters.get("deadLetters.#").Int() != 1 || letter.Get("reason").String() != string(core.ReasonUnknownRepository) ||
		!strings.Contains(letter.Get("hint").String(), "configure it and retry") {
		t.Fatalf("dead letters of a repository that no process has: %s", letters.raw)
	}
	two.retry(letter, http.StatusConflict)
	one.start()
	one.retry(letter, http.StatusAccepted)
	one.awaitConverged(wait)
}

// TestRetryAllTwoConfigurations: whichever process a retry of all dead letters is requested of, and takes it, those of the repositories of
// each are retried there.
func TestRetryAllTwoConfigurations(t *testing.T) {
	t.Parallel()
	const otherCode = "song.other"
	url := externalQueue(t)
	one, two := newWorld(t, settings{queueURL: url}), newWorld(t, settings{queueURL: url})
	plain := two.yaml()
	two.set.configuration = func(*world) string { return strings.Replace(plain, "code: "+code+"\n", "code: "+otherCode+"\n", 1) }
	for _, w := range []*world{one, two} {
		w.start()
		w.awaitPaused(false)
	}
	for round := range 5 {
		id := fmt.Sprintf("A%d", round)
		for _, w := range []*world{one, two} {
			w.put("S1", id, broken)
		}
		one.trigger("S1", id)
		two.mustRequest(http.MethodPost, "/index/repository/"+otherCode+"/organization/S1/id/"+id, http.StatusAccepted)
		one.awaitDeadLetters("", 2)
		for _, w := range []*world{one, two} {
			w.put("S1", id, fixed)
		}
		w := []*world{one, two}[round%2]
		if j := w.awaitJob(w.retryAll("")); j.Get("state").String() != string(core.JobSucceeded) || j.Get("totals.retried").Int() != 2 {
			t.Errorf("the job ended %s", j.Raw)
		}
		one.awaitDeadLetters("", 0)
	}
	one.awaitConverged(wait)
	two.eventually(wait, func() (bool, string) {
		return len(two.engine.documents(two)) == 5, "the other repository's records are not all indexed"
	})
}
