package app_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/queuetest"
)

// TestConsumersAreListedSeldom: the queue's server lists its consumers once at a start, which removes those of unknown repositories, and for
// each search for requests that are not delivered, of which at most one runs in 2 s: not for each organization, request or poll.
func TestConsumersAreListedSeldom(t *testing.T) {
	t.Parallel()
	const organizations, polls = 60, 40
	url := queuetest.Serve(t, t.TempDir(), "").ClientURL() // without rights, which do not let a user read the audit
	calls := queuetest.Calls(t, url)
	began := time.Now()
	w := startWorld(t, settings{queueURL: url})
	for i := range organizations {
		organization := fmt.Sprintf("S%d", i)
		w.trigger(organization, w.fill(organization, 1)[0])
	}
	w.run("", "", core.JobSucceeded)
	w.wantConverged()
	for i := range polls {
		for _, path := range []string{"/ready", "/jobs", "/repositories", "/metrics", "/dead-letters", fmt.Sprintf("/studies/S%d", i)} {
			if _, err := w.request(http.MethodGet, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	names, lists := calls("$JS.API.CONSUMER.NAMES."), calls("$JS.API.CONSUMER.LIST.")
	others := calls("") - names - lists
	searches := 1 + int(time.Since(began)/(2*time.Second))
	t.Logf("%d lists of names, %d of consumers, %d other calls", names, lists, others)
	if names != 1 || lists < 1 || lists > searches || others < 10 {
		t.Errorf("%d lists of names, want 1; %d of consumers, want 1 to %d; %d other calls", names, lists, searches, others)
	}
}
