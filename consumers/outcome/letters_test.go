package outcome

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
)

// TestSettleRecord: each document of a record is settled, until the index does not take one; the dead letter of a document that the record no
// longer has is removed.
func TestSettleRecord(t *testing.T) {
	document := func(id string, r core.Result) Document { return Document{ID: id, Result: r} }
	indexed, rejected := core.Result{Outcome: core.OutcomeIndexed}, core.Result{Outcome: core.OutcomeRejected, Type: "t"}
	for name, tt := range map[string]struct {
		document  string
		documents []Document
		code      core.Code
		paused    reason
		left      map[string]core.Version // the dead letters of S, by document
	}{
		"written":              {documents: []Document{document("1", indexed), document("2", indexed)}, left: map[string]core.Version{"3": 5}},
		"one is rejected":      {documents: []Document{document("1", indexed), document("2", rejected)}, left: map[string]core.Version{"2": 7, "3": 5}},
		"its other one":        {document: "3", documents: []Document{document("1", indexed)}, left: map[string]core.Version{"2": 5}},
		"not its other one":    {document: "2", documents: []Document{document("1", indexed), document("2", rejected)}, left: map[string]core.Version{"2": 7, "3": 5}},
		"another organization": {documents: []Document{document("1", core.Result{Outcome: core.OutcomeMismatch})}, left: map[string]core.Version{"1": 5, "2": 5, "3": 5}},
		"not taken": {
			document:  "3",
			documents: []Document{document("1", indexed), document("2", core.Result{Outcome: core.OutcomeRetry, Code: core.CodeUnavailable}), document("3", indexed)},
			code:      core.CodeUnavailable, paused: "the index does not answer", left: map[string]core.Version{"2": 5, "3": 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored := letters{}
			for _, id := range []string{"1", "2", "3"} {
				stored[[3]string{"a", "S", id}] = core.DeadLetter{Reason: core.ReasonRejected, Version: 5}
			}
			var paused reason
			o := New(stored, &paused, Config{Repository: core.Repository{Code: "a", IndexName: "x"}, Logger: slog.New(slog.DiscardHandler)})
			req := core.Request{Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: "a", Organization: "S", RecordID: "1", Document: tt.document}
			if err := o.SettleRecord(t.Context(), req, "S", 7, tt.documents); core.CodeOf(err) != tt.code || paused != tt.paused {
				t.Errorf("%v, paused for %q", err, paused)
			}
			left := map[string]core.Version{}
			for k, l := range stored {
				left[k[2]] = l.Version
			}
			if diff := cmp.Diff(tt.left, left); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSettleRecordPaused: a rejection is no result of a record while the repository pauses because nearly all documents are rejected.
func TestSettleRecordPaused(t *testing.T) {
	var paused reason
	stored := letters{}
	o := New(stored, &paused, Config{Repository: core.Repository{Code: "a"}, Logger: slog.New(slog.DiscardHandler)})
	rejected := Document{ID: "1", Result: core.Result{Outcome: core.OutcomeRejected, Type: "t"}}
	for range rejectWindow - 1 {
		o.pausesFor("S", "1", rejected.Result)
	}
	err := o.SettleRecord(t.Context(), core.Request{RecordID: "1"}, "S", 7, []Document{rejected})
	if core.CodeOf(err) != core.CodeOverloaded || len(stored) != 0 || paused == "" {
		t.Errorf("%v, %d dead letters, paused for %q", err, len(stored), paused)
	}
}
