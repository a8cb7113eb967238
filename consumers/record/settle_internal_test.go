package record

import (
	"testing"

	"tutti/consumers/outcome"
	"tutti/internal/core"
)

// TestCount: the outcome of a record with several documents is that one of them was rejected, else that one was written, else its own.
func TestCount(t *testing.T) {
	w := &Worker{outcomes: outcome.New(nil, nil, outcome.Config{})}
	const indexed, rejected, removed, stale = core.OutcomeIndexed, core.OutcomeRejected, core.OutcomeRemoved, core.OutcomeStale
	for _, tt := range []struct {
		of   []core.Outcome
		want core.Outcome
	}{
		{nil, core.OutcomeRetry},
		{[]core.Outcome{removed, stale}, removed},
		{[]core.Outcome{removed, indexed, stale}, indexed},
		{[]core.Outcome{removed, rejected, indexed}, rejected},
		{[]core.Outcome{removed, indexed, rejected}, rejected},
		{[]core.Outcome{rejected, indexed}, rejected},
		{[]core.Outcome{indexed, removed}, indexed},
	} {
		var rs results
		for _, o := range tt.of {
			rs = append(rs, result{Result: core.Result{Outcome: o}})
		}
		if got := w.count(rs); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.of, got, tt.want)
		}
	}
}
