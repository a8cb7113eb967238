package state

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"time"

	"tutti/internal/core"
)

// LastDrift is what the last runs of a whole repository have found, as its cell holds it.
type LastDrift struct {
	// JobID is the last run of the difference, and Drift its comparison.
	JobID   string     `json:"jobId"`
	EndedAt time.Time  `json:"endedAt"`
	Drift   core.Drift `json:"drift"`
	// GuardedBy is the job whose guard has kept documents, since when no run of the whole repository has succeeded.
	GuardedBy string `json:"guardedBy,omitempty"`
	// Fields is how the fields of the last run's records differ from those of the run before, until a rebuild; "" unless some are gone.
	Fields string `json:"fields,omitempty"`
	// Superseded is true once a later run of the whole repository has succeeded that wrote every record.
	Superseded bool `json:"superseded,omitempty"`
}

// DriftCell returns the name of the cell with the LastDrift of a whole repository, as JSON.
func DriftCell(repository string) string {
	return "drift." + base64.RawURLEncoding.EncodeToString([]byte(repository))
}

// DriftNotes stores the LastDrift of a repository. What cannot be stored is logged: the jobs have it, and the next run stores it.
type DriftNotes struct {
	Repository string
	Logger     *slog.Logger
	Cells      core.Cells
}

// NoteDifference stores the drift that the difference of the whole repository has found, by its job that has ended.
func (n DriftNotes) NoteDifference(ctx context.Context, job core.Job) {
	n.change(ctx, job, func(last LastDrift) LastDrift {
		return LastDrift{JobID: job.ID, EndedAt: *job.EndedAt, Drift: job.Totals.Drift, GuardedBy: guardedBy(last, job), Fields: last.Fields}
	})
}

// NoteRun stores what the end of a run of the whole repository that wrote every record says about the last comparison.
func (n DriftNotes) NoteRun(ctx context.Context, job core.Job) {
	n.change(ctx, job, func(last LastDrift) LastDrift {
		last.Superseded = last.Superseded || job.State == core.JobSucceeded && last.JobID != ""
		last.GuardedBy = guardedBy(last, job)
		if job.Rebuild && job.State == core.JobSucceeded {
			last.Fields = ""
		}
		return last
	})
}

// NoteFields stores how the fields of a job's records differ from those before.
func (n DriftNotes) NoteFields(ctx context.Context, job core.Job, fields string) {
	n.change(ctx, job, func(last LastDrift) LastDrift {
		last.Fields = fields
		return last
	})
}

// guardedBy returns LastDrift.GuardedBy after the end of a job.
func guardedBy(last LastDrift, job core.Job) string {
	switch {
	case job.State == core.JobSucceeded:
		return ""
	case job.State == core.JobPartial && job.Error.Guard():
		return job.ID
	default:
		return last.GuardedBy
	}
}

func (n DriftNotes) change(ctx context.Context, job core.Job, change func(LastDrift) LastDrift) {
	if err := n.store(ctx, change); err != nil {
		n.Logger.Warn("storing the drift of a repository", "job_id", job.ID, "err", err)
	}
}

func (n DriftNotes) store(ctx context.Context, change func(LastDrift) LastDrift) error {
	name := DriftCell(n.Repository)
	value, revision, err := n.Cells.Cell(ctx, name)
	if err != nil {
		return err
	}
	var last LastDrift
	if value != "" {
		_ = json.Unmarshal([]byte(value), &last) // one that cannot be decoded is replaced
	}
	changed := change(last)
	if changed == last {
		return nil
	}
	data, err := json.Marshal(changed)
	if err != nil {
		return err
	}
	return n.Cells.SetCell(ctx, name, string(data), revision)
}
