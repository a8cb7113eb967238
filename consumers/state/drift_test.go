package state_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/tools/fakes"
)

// TestDriftNotes: the cell has the last comparison, which a later whole run supersedes, the job whose guard has kept documents until a run
// succeeds, and the fields that have changed until a rebuild does; what changes nothing is not stored.
func TestDriftNotes(t *testing.T) {
	t.Parallel()
	cell := state.DriftCell("song")
	c := &fakes.Cells{Values: map[string]string{cell: "damaged"}}
	notes := state.DriftNotes{Repository: "song", Logger: slog.New(slog.DiscardHandler), Cells: c}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	job := func(id string, as core.JobState, code string) core.Job {
		j := core.Job{ID: id, State: as, EndedAt: &at, Totals: core.Totals{Drift: core.Drift{Missing: 3}}}
		if code != "" {
			j.Error = &core.JobError{Code: code}
		}
		return j
	}
	compared := state.LastDrift{JobID: "compared", EndedAt: at, Drift: core.Drift{Missing: 3}}
	with := func(last state.LastDrift, change func(*state.LastDrift)) state.LastDrift {
		change(&last)
		return last
	}
	for _, step := range []struct {
		name string
		note func(context.Context)
		want state.LastDrift
		sets uint64
	}{
		{
			"a guard before any comparison", func(ctx context.Context) {
				notes.NoteRun(ctx, job("guarded", core.JobPartial, core.JobErrorPruneGuard))
			},
			state.LastDrift{GuardedBy: "guarded"},
			1,
		},
		{
			"changed fields", func(ctx context.Context) { notes.NoteFields(ctx, core.Job{}, "gone") },
			state.LastDrift{GuardedBy: "guarded", Fields: "gone"},
			2,
		},
		{
			"a comparison that fails", func(ctx context.Context) { notes.NoteDifference(ctx, job("compared", core.JobFailed, "unavailable")) },
			with(compared, func(l *state.LastDrift) { l.GuardedBy, l.Fields = "guarded", "gone" }), 3,
		},
		{
			"a run that fails", func(ctx context.Context) { notes.NoteRun(ctx, job("failed", core.JobFailed, "unavailable")) },
			with(compared, func(l *state.LastDrift) { l.GuardedBy, l.Fields = "guarded", "gone" }), 3,
		},
		{
			"a run that succeeds", func(ctx context.Context) { notes.NoteRun(ctx, job("whole", core.JobSucceeded, "")) },
			with(compared, func(l *state.LastDrift) { l.Superseded, l.Fields = true, "gone" }), 4,
		},
		{
			"a run that fails after it", func(ctx context.Context) { notes.NoteRun(ctx, job("failed", core.JobFailed, "unavailable")) },
			with(compared, func(l *state.LastDrift) { l.Superseded, l.Fields = true, "gone" }), 4,
		},
		{
			"a rebuild", func(ctx context.Context) {
				j := job("rebuilt", core.JobSucceeded, "")
				j.Rebuild = true
				notes.NoteRun(ctx, j)
			},
			with(compared, func(l *state.LastDrift) { l.Superseded = true }), 5,
		},
	} {
		step.note(t.Context())
		var last state.LastDrift
		if err := json.Unmarshal([]byte(c.Values[cell]), &last); err != nil {
			t.Fatal(err)
		}
		_, sets, _ := c.Cell(t.Context(), cell)
		if diff := cmp.Diff(step.want, last); diff != "" || sets != step.sets || len(c.Values) != 1 {
			t.Errorf("%s: stored %d times (-want +got):\n%s", step.name, sets, diff)
		}
	}
}
