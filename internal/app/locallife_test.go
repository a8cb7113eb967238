package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// outboxCount returns how many changes were published to the queue.
func (b *builtIn) outboxCount() int {
	b.t.Helper()
	return int(b.metric("tutti_requests_received_total", "source", "outbox", "kind", "index"))
}

// TestBuiltIn: without any repository in the configuration there is the built-in one. What is published there is in the
// index without a further call, changes with the analysis, and leaves the index when it is no longer published.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{defaults: true})
	ready := b.mustSend(http.MethodGet, "/ready", "", http.StatusOK)
	if ready.get("components.outbox").String() != "up" || ready.get("components.store").String() != "up" {
		t.Errorf("ready: %s", ready.raw)
	}
	quiet, id := b.submit("S1"), b.submit("S1")
	if got := b.storedAnalyses("UNPUBLISHED"); len(got) != 2 || got[id] == "" || got[quiet] == "" {
		t.Errorf("unpublished: %v", got)
	}
	events, indexed, removed := 0, 0, 0
	for _, step := range []struct {
		name, method, path, body string
		outcome                  core.Outcome
		query, want              string // of the document, or of the analysis where there is none
	}{
		{"published", http.MethodPut, statePath("S1", "publish", id), "", core.OutcomeIndexed, "analysisState", "PUBLISHED"},
		{
			"merged", http.MethodPatch, analysisPath("S1", id), `{"experiment":{"platform":"ONT"}}`,
			core.OutcomeIndexed, "experiment.platform", "ONT",
		},
		{
			"replaced", http.MethodPut, analysisPath("S1", id), b.payload("S1", `"replaced":true`),
			core.OutcomeIndexed, "experiment.replaced", "true",
		},
		{"unpublished", http.MethodPut, statePath("S1", "unpublish", id), "", core.OutcomeRemoved, "analysisState", "UNPUBLISHED"},
		{
			"published again", http.MethodPut, statePath("S1", "publish", id), "",
			core.OutcomeIndexed, "analysisStateHistory.1.updatedState", "UNPUBLISHED",
		},
		{"suppressed", http.MethodPut, statePath("S1", "suppress", id), "", core.OutcomeRemoved, "analysisState", "SUPPRESSED"},
	} {
		b.mustSend(step.method, step.path, step.body, http.StatusOK)
		if events++; step.outcome == core.OutcomeRemoved {
			removed++
		} else {
			indexed++
		}
		b.awaitOutcomes(core.OutcomeIndexed, indexed)
		b.awaitOutcomes(core.OutcomeRemoved, removed)
		b.wantConverged()
		document, there := b.documents()[id]
		if there != (step.outcome == core.OutcomeIndexed) {
			t.Fatalf("%s: in the index: %t", step.name, there)
		}
		if !there {
			document = string(b.mustSend(http.MethodGet, analysisPath("S1", id), "", http.StatusOK).raw)
		}
		if got := gjson.Get(document, step.query).String(); got != step.want {
			t.Errorf("%s: %s is %q, want %q: %s", step.name, step.query, got, step.want, document)
		}
		if n := b.outboxCount(); n != events {
			t.Errorf("%s: %d changes were published, want %d", step.name, n, events)
		}
	}
	a := b.mustSend(http.MethodPut, statePath("S1", "publish", id), "", http.StatusConflict)
	if a.get("errorId").String() != "suppressed.state.transition" || !strings.Contains(a.get("message").String(), "final") {
		t.Errorf("publishing what is suppressed: %s", a.raw)
	}
	// Asked for by hand it stays away as well; so does what was never published.
	for i, id := range []string{id, quiet} {
		b.mustSend(http.MethodPost, "/index/repository/local/organization/S1/id/"+id, "", http.StatusAccepted)
		b.awaitOutcomes(core.OutcomeRemoved, removed+1+i)
	}
	if documents := b.documents(); len(documents) != 0 {
		t.Errorf("documents: %v", documents)
	}
	for name, want := range map[string]int{
		"indexed": indexed, "removed": removed + 2, "rejected": 0, "retried": 0, "mismatch": 0,
	} {
		if n := int(b.metric("tutti_documents_total", "index", "analyses", "outcome", name)); n != want {
			t.Errorf("documents_total %s is %d, want %d", name, n, want)
		}
	}
	if n := int(b.metric("tutti_outbox_events_total", "result", "published")); n != events {
		t.Errorf("%d events were published, want %d", n, events)
	}
	b.wantNoDeadLetters()
}

// TestBuiltInIndexDown: analyses can be published while the index is down and the queue is full; all are indexed later.
func TestBuiltInIndexDown(t *testing.T) {
	t.Parallel()
	const room, published = 20, 50
	b := newBuiltIn(t, plan{set: settings{faulty: true, maxPending: room}})
	b.engine.setDown(true)
	b.start()
	b.prepareStudies("S1", "S2")
	var ids []string
	for i := range published {
		study := fmt.Sprintf("S%d", 1+i%2)
		ids = append(ids, b.submit(study))
		b.publish(study, ids[i])
	}
	b.eventually(wait, func() (bool, string) {
		a := b.ready()
		return a.get("components.outbox").String() == "degraded" && a.get("components.index").String() == "down", string(a.raw)
	})
	if n := b.outboxCount(); n != room {
		t.Errorf("%d changes were published to a queue for %d", n, room)
	}
	b.mustSend(http.MethodPut, statePath("S1", "unpublish", ids[0]), "", http.StatusOK)
	b.mustSend(http.MethodPut, statePath("S2", "suppress", ids[published-1]), "", http.StatusOK)
	b.engine.setDown(false)
	b.awaitPaused(false)
	b.awaitConverged()
	if n := len(b.documents()); n != published-2 {
		t.Errorf("%d documents, want %d", n, published-2)
	}
	b.eventually(wait, func() (bool, string) {
		a := b.ready()
		return a.get("components.outbox").String() == "up" && a.get("status").String() == "healthy", string(a.raw)
	})
	b.wantNoDeadLetters()
}

// TestBuiltInRestart: what was committed right before a stop is in the index after the next start.
func TestBuiltInRestart(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{})
	for range 3 {
		for range 20 {
			b.publish("S1", b.submit("S1"))
		}
		b.stop()
		b.start()
	}
	b.awaitConverged()
	if n := len(b.documents()); n != 60 {
		t.Errorf("%d documents, want 60", n)
	}
}
