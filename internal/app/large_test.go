package app_test

import (
	"net/http"
	"strings"
	"testing"

	"tutti/internal/core"
)

// TestLargeRecords: a record over index.maxRecordBytes is a dead letter that names the limit, from a page and fetched alone;
// the other records of the page are written, its earlier document stays, and it is written once it is small enough.
func TestLargeRecords(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{maxRecordBytes: 64 << 10})
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		w.put("S1", id, "")
	}
	w.run("S1", "", core.JobSucceeded)
	w.awaitConverged(wait)
	before := w.documents()

	large := `"experiment":{"text":"` + strings.Repeat("x", 300<<10) + `"}`
	w.put("S1", "c", large)
	w.put("S1", "d", `"experiment":{"changed":true}`)
	job := w.run("S1", "", core.JobPartial)
	if rejected, indexed := job.Get("totals.rejected").Int(), job.Get("totals.indexed").Int(); rejected != 1 || indexed != 5 {
		t.Errorf("%d rejected and %d indexed: %s", rejected, indexed, job.Raw)
	}
	letter := w.awaitDeadLetters("?reason=too_large", 1)[0]
	whole := w.mustRequest(http.MethodGet, "/dead-letters/"+letter.Get("id").String(), http.StatusOK)
	if letter.Get("recordId").String() != "c" || whole.get("size").Int() < 300<<10 || !whole.get("truncated").Bool() ||
		len(whole.get("sha256").String()) != 64 || !strings.Contains(whole.get("hint").String(), "index.maxRecordBytes, 65536 bytes") {
		t.Errorf("dead letter %.1000s", whole.raw)
	}
	after := w.documents()
	if len(after) != 6 || after["c"] != before["c"] || !strings.Contains(after["d"], "changed") {
		t.Errorf("documents of c and d: %s, %s", after["c"], after["d"])
	}

	w.put("S1", "g", large)
	w.trigger("S1", "g")
	w.awaitDeadLetters("?reason=too_large", 2)
	w.put("S1", "c", "")
	w.put("S1", "g", "")
	w.mustRequest(http.MethodPost, "/dead-letters/retry?reason=too_large", http.StatusAccepted)
	w.awaitDeadLetters("", 0)
	w.awaitConverged(wait)
}

// TestLargeSubmission: an analysis that would be too large for the index is refused when it is submitted or changed.
func TestLargeSubmission(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{set: settings{maxRecordBytes: 64 << 10}})
	large := `"text":"` + strings.Repeat("x", 70<<10) + `"`
	id := b.submit("S1")
	b.publish("S1", id)
	b.awaitConverged()
	for method, path := range map[string]string{
		http.MethodPost: "/submit/S1", http.MethodPut: analysisPath("S1", id), http.MethodPatch: analysisPath("S1", id),
	} {
		a := b.mustSend(method, path, b.payload("S1", large), http.StatusRequestEntityTooLarge)
		if hint := a.get("hint").String(); !strings.Contains(hint, "the limit is 65536, index.maxRecordBytes") {
			t.Errorf("%s: hint %q", method, hint)
		}
	}
	b.awaitConverged()
}
