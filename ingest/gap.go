package ingest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"tutti/internal/core"
)

// Gap is the part of a repository's notifications that was removed before it was read, since the last job that found what they
// would have changed.
type Gap struct {
	Topic   string    `json:"topic"`
	Reason  string    `json:"reason"`
	Offsets int64     `json:"offsets"`
	At      time.Time `json:"at"`
	// JobID is the job that compares the repository with its index.
	JobID string `json:"jobId"`
}

// GapCell returns the name of the cell with the Gap of a repository, as JSON; the cell is empty without one.
func GapCell(repository string) string {
	return "gap." + base64.RawURLEncoding.EncodeToString([]byte(repository))
}

// Missed requests that each repository of the topic is compared with its index, which finds what the missed messages would have
// changed, and stores the gap in the repository's cell. It returns nil only after both are stored; it may then be called again.
func (f *Feed) Missed(ctx context.Context, gap core.TopicGap) error {
	for _, code := range f.repositoryCodes() {
		job, err := f.service.Run(ctx, core.ScopeRepository, code, "", core.RunFlags{Difference: true}, core.CauseKafka, "")
		if err != nil {
			return err
		}
		if err := f.noteGap(ctx, code, Gap{Topic: f.topic, Reason: gap.Reason, Offsets: gap.Offsets, At: f.service.now(), JobID: job.ID}); err != nil {
			return err
		}
		f.service.cfg.Logger.InfoContext(ctx, "a repository is compared with its index, because notifications were lost",
			"repository", code, "topic", f.topic, "job_id", job.ID)
	}
	return nil
}

// repositoryCodes returns the codes of the repositories that messages of the topic may concern, in order.
func (f *Feed) repositoryCodes() []string {
	if f.targets.requests {
		return slices.Sorted(maps.Keys(f.service.repositories))
	}
	var codes []string
	for _, r := range f.targets.repositories {
		codes = append(codes, r.Code)
	}
	return codes
}

// noteGap stores a gap in its repository's cell, together with what is there.
func (f *Feed) noteGap(ctx context.Context, code string, gap Gap) error {
	for range maxCellConflicts {
		value, revision, err := f.service.cells.Cell(ctx, GapCell(code))
		if err != nil {
			return err
		}
		sum := gap
		var before Gap
		if value != "" && json.Unmarshal([]byte(value), &before) == nil {
			sum.Offsets += before.Offsets
		}
		text, err := json.Marshal(sum)
		if err != nil {
			return core.WrapError(core.CodeInternal, "encoding a gap", err)
		}
		if err := f.service.cells.SetCell(ctx, GapCell(code), string(text), revision); core.CodeOf(err) != core.CodeConflict {
			return err
		}
	}
	return core.NewError(core.CodeOverloaded, "too many concurrent gaps of one repository")
}
