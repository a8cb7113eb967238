package outcome

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestRejectedField: the reasons are those of Elasticsearch 8.19 and of the embedded index.
func TestRejectedField(t *testing.T) {
	long := strings.Repeat("é", 150)
	for reason, want := range map[string]string{
		"[1:214] failed to parse field [donor.age] of type [long] in document with id 'x': For input string":   "donor.age",
		"[1:20] object mapping for [donor] tried to parse field [donor] as object, but found a concrete value": "donor",
		"[1:9] mapping set to strict, dynamic introduction of [sex] within [_doc.donor] is not allowed":        "sex",
		`[samples.donor.gender] failed to parse field of type [keyword]: found an object`:                      "samples.donor.gender",
		"Limit of total fields [1000] has been exceeded while adding new fields [1]":                           "",
		"[1:2] failed to parse":                "",
		"":                                     "",
		"[":                                    "",
		"failed to parse field [" + long + "]": strings.Repeat("é", 100) + "…",
	} {
		if got := rejectedField(reason); got != want {
			t.Errorf("%q: got %q, want %q", reason, got, want)
		}
	}
}

// TestRejectionMonitor: trials follow a pause, pauses grow to their limit, and start over after a window without too many
// rejections.
func TestRejectionMonitor(t *testing.T) {
	var x rejectionMonitor
	now := time.Unix(0, 0)
	rejected := core.Result{Outcome: core.OutcomeRejected, Type: "illegal_argument_exception"}
	indexed := core.Result{Outcome: core.OutcomeIndexed}
	give := func(res core.Result, n int, want time.Duration) {
		t.Helper()
		for i := range n {
			if x.add(res, now) != (want > 0 && i == n-1) {
				t.Fatalf("outcome %d of %d decides otherwise", i+1, n)
			}
		}
		pause, why := x.remaining(now)
		if pause != want || want > 0 && !strings.Contains(why, "illegal_argument_exception; fix ") {
			t.Fatalf("pause of %v, want %v: %s", pause, want, why)
		}
		now = now.Add(pause)
	}
	give(indexed, rejectWindow/20, 0)
	give(rejected, rejectWindow*19/20, time.Minute)
	for _, minutes := range []time.Duration{2, 4, 8, 10, 10} {
		give(rejected, rejectTrial, minutes*time.Minute)
	}
	give(rejected, rejectTrial-2, 0)
	give(indexed, 2, 0) // the trial is well
	give(indexed, rejectWindow/20-1, 0)
	give(rejected, rejectWindow*19/20+1, 10*time.Minute)
	give(indexed, rejectTrial, 0)
	give(indexed, rejectWindow/20+1, 0)
	give(rejected, rejectWindow*19/20-1, 0) // the window is well
	give(rejected, rejectWindow, time.Minute)
}

type noDeadLetters struct{ DeadLetters }

func (noDeadLetters) Has(string, string, string) bool { return false }

// TestPauseWhileResuming: a pause that starts while another one is cleared is not lost. The first document that is rejected
// before its end makes no dead letter and starts the pause again.
func TestPauseWhileResuming(t *testing.T) {
	var pause reason
	o := New(noDeadLetters{}, &pause, Config{Logger: slog.New(slog.DiscardHandler)})
	rejected := core.Result{Outcome: core.OutcomeRejected, Type: "illegal_argument_exception"}
	for i := range rejectWindow {
		if o.pausesFor("A", "1", rejected) != (i == rejectWindow-1) {
			t.Fatalf("document %d decides otherwise", i)
		}
	}
	pause = ""
	if !o.pausesFor("A", "1", rejected) {
		t.Error("a rejection within the pause is final")
	}
	if !strings.Contains(string(pause), "illegal_argument_exception") {
		t.Errorf("paused for %q", pause)
	}
}

// reason is a Pause that keeps its reason.
type reason string

func (r *reason) Set(why string, _ error) { *r = reason(why) }

func (r *reason) Start(why string, _ bool) { *r = reason(why) }
