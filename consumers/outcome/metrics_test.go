package outcome

import (
	"testing"

	"tutti/internal/core"
)

// TestCountRecord: the outcome of a record with several documents is that one of them was rejected, else that one was written, else its own.
func TestCountRecord(t *testing.T) {
	const indexed, rejected, removed, stale = core.OutcomeIndexed, core.OutcomeRejected, core.OutcomeRemoved, core.OutcomeStale
	for _, tt := range []struct {
		of   []core.Outcome
		want core.Outcome
	}{
		{[]core.Outcome{stale}, stale},
		{[]core.Outcome{removed, stale}, removed},
		{[]core.Outcome{removed, indexed, stale}, indexed},
		{[]core.Outcome{removed, rejected, indexed}, rejected},
		{[]core.Outcome{removed, indexed, rejected}, rejected},
		{[]core.Outcome{rejected, indexed}, rejected},
		{[]core.Outcome{indexed, removed}, indexed},
	} {
		var rs []Document
		for _, o := range tt.of {
			rs = append(rs, Document{Result: core.Result{Outcome: o}})
		}
		if got := New(nil, nil, Config{}).CountRecord(rs); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.of, got, tt.want)
		}
	}
}
