package app_test

import (
	"net/http"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/report/recordtrace"
)

// TestTraceRecord: the trace of a record follows it from its repository to the index, a rejection and an excluded state.
func TestTraceRecord(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	id := w.fill("S1", 1)[0]
	check := func(name string, want map[string]string) {
		t.Helper()
		a := w.mustRequest(http.MethodGet, recordPath("S1", id), http.StatusOK)
		upstream, stored := a.get("upstream.sha256").String(), a.get("index.documents.0.sha256").String()
		if current := a.get("index.documents.0.content").String() == string(recordtrace.ComparisonEqual); stored != "" && (stored == upstream) != current {
			t.Errorf("%s: hashes %s and %s: %s", name, upstream, stored, a.raw)
		}
		for path, value := range want {
			if got := a.get(path).String(); !strings.HasPrefix(got, value) {
				t.Errorf("%s: %s is %q, want %q: %s", name, path, got, value, a.raw)
			}
		}
	}
	check("before", map[string]string{
		"upstream.status": "found", "upstream.state": "PUBLISHED", "index.status": "absent", "queue.status": "none", "jobs.status": "none",
		"next": "the record is not in the index; index it with: tutti index " + code + " S1 ",
	})
	w.run("S1", "", core.JobSucceeded)
	check("indexed", map[string]string{
		"index.status": "present", "index.comparison": "equal", "index.documents.0.stored": "true", "index.documents.0.state": "PUBLISHED",
		"index.documents.0.content": "equal", "jobs.lastEnded.state": "succeeded",
		"jobs.lastEnded.organizationState": "succeeded", "next": "nothing to do",
	})
	w.put("S1", id, `"experiment":{"changed":true}`)
	check("changed", map[string]string{"index.comparison": "differs", "index.documents.0.content": "differs", "next": "the index holds another state than the repository"})
	w.put("S1", id, broken)
	w.trigger("S1", id)
	w.awaitDeadLetters("", 1)
	check("rejected", map[string]string{
		"deadLetters.status": "present", "deadLetters.letters.0.reason": "rejected", "queue.status": "none",
		"next": "the record was not indexed (rejected)",
	})
	w.song.SetState(id, "UNPUBLISHED")
	check("unpublished", map[string]string{
		"upstream.status": "excluded", "upstream.state": "UNPUBLISHED", "index.status": "present",
		"next": "the record is UNPUBLISHED upstream; only PUBLISHED records are indexed; its documents are removed with: tutti index ",
	})
	w.trigger("S1", id)
	w.awaitConverged(wait)
	w.eventually(wait, func() (bool, string) { // its request ends after its document was removed
		a := w.mustRequest(http.MethodGet, recordPath("S1", id), http.StatusOK)
		return a.get("queue.status").String() == recordtrace.StatusNone, string(a.raw)
	})
	check("removed", map[string]string{"index.status": "absent", "next": "the record is UNPUBLISHED upstream"})
	w.mustRequest(http.MethodGet, "/index/repository/unknown/organization/S1/id/a", http.StatusNotFound)
}

// TestTraceFiles: each document of a record with several is listed.
func TestTraceFiles(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{repository: "documents: file"})
	w.song.AddStudy("S1")
	w.putFiles("a", "a1", "a2")
	w.run("S1", "", core.JobSucceeded)
	w.putFiles("a", "a2", "a3")
	a := w.mustRequest(http.MethodGet, recordPath("S1", "a"), http.StatusOK)
	var got []string
	for _, d := range a.get("index.documents").Array() {
		got = append(got, strings.Join([]string{d.Get("id").String(), d.Get("stored").String(), d.Get("expected").String()}, " "))
	}
	if strings.Join(got, ", ") != "a2 true true, a3 false true, a1 true false" || a.get("index.comparison").String() != "differs" {
		t.Errorf("%q: %s", got, a.raw)
	}
}
