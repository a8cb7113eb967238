package recordtrace_test

import (
	"encoding/json"
	"testing"

	"tutti/internal/report/recordtrace"
)

// TestJSON: each part has its status beside its own members, and what is not known is omitted.
func TestJSON(t *testing.T) {
	part := recordtrace.Part{Status: recordtrace.StatusNone, TookMillis: 0.5}
	raw, err := json.Marshal(recordtrace.Trace{
		Repository: "r", Organization: "o", ID: "i", Next: "n",
		Upstream:    recordtrace.Upstream{Part: recordtrace.Part{Status: recordtrace.StatusError, Error: "e"}},
		Index:       recordtrace.Index{Part: part, Alias: "a", Comparison: recordtrace.ComparisonDiffers, Documents: []recordtrace.Document{{ID: "d", Stored: true}}},
		Queue:       recordtrace.Queue{Part: part, Batches: 2},
		Jobs:        recordtrace.Jobs{Part: part, InProgress: []recordtrace.Job{}},
		DeadLetters: recordtrace.DeadLetters{Part: part, Letters: []recordtrace.DeadLetter{}},
	})
	want := `{"repository":"r","organization":"o","id":"i","upstream":{"status":"error","error":"e","tookMillis":0},` +
		`"index":{"status":"none","tookMillis":0.5,"alias":"a","comparison":"differs","documents":[{"id":"d","stored":true,"comparison":"","content":""}]},` +
		`"queue":{"status":"none","tookMillis":0.5,"batches":2},"jobs":{"status":"none","tookMillis":0.5,"inProgress":[]},` +
		`"deadLetters":{"status":"none","tookMillis":0.5,"letters":[]},"next":"n"}`
	if err != nil || string(raw) != want {
		t.Errorf("the trace is\n%s, want\n%s (%v)", raw, want, err)
	}
}
