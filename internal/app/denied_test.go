package app_test

import (
	"net/http"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/queue/subjects"
	"tutti/internal/tools/queuetest"
)

// TestRefusedRight: what an external queue refuses for a missing right while tutti runs is named in /ready with the right to grant, and
// nothing is lost: what waited for it is done once the right is there.
func TestRefusedRight(t *testing.T) {
	t.Parallel()
	url, grant := queuetest.Limited(t, "tutti.dead.>")
	w := startWorld(t, settings{queueURL: url})
	w.put("S1", "right", `"donor":{"age":7}`)
	w.run("", "", core.JobSucceeded)
	w.put("S1", "wrong", `"donor":{"age":"old"}`)
	w.trigger("S1", "wrong")
	w.eventually(wait, func() (bool, string) {
		ready := w.mustRequest(http.MethodGet, "/ready", http.StatusOK)
		reason := ready.get("reasons.0").String()
		return strings.HasPrefix(reason, `queue: the server does not let this user publish to "tutti.dead.`) && strings.Contains(reason, "; grant the user ") &&
			ready.get("components.queue").String() == "degraded", string(ready.raw)
	})
	if strings.Contains(string(w.mustRequest(http.MethodGet, "/ready", http.StatusOK).raw), "p4ss") {
		t.Error("/ready has the password")
	}
	grant()
	if letter := w.awaitDeadLetters("", 1)[0]; letter.Get("recordId").String() != "wrong" {
		t.Errorf("the dead letter is %s", letter.Raw)
	}
}

// TestStopWithoutTimes: a stop succeeds when the queue does not take the times of the last notifications.
func TestStopWithoutTimes(t *testing.T) {
	t.Parallel()
	url, _ := queuetest.Limited(t, "$KV.tutti_jobs.slot."+subjects.EncodeToken("notified."+subjects.EncodeToken("song.e2e")))
	w := startWorld(t, settings{queueURL: url})
	w.put("S1", "one", "")
	w.trigger("S1", "one")
	w.awaitConverged(wait)
	w.stop()
	if !strings.Contains(w.logs.tail(), "storing when repositories were last notified") {
		t.Errorf("the log does not say that the times were not stored:\n%s", w.logs.tail())
	}
}
