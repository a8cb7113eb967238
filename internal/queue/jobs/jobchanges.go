package jobs

import (
	"context"
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
)

// LastRevision returns a revision that no later change of a job has, and all earlier ones have or are below.
func (j *Jobs) LastRevision(ctx context.Context) (uint64, error) {
	info, err := j.bucket.Stream.Info(ctx)
	if err != nil {
		return 0, natsconn.WrapError("reading the last revision of the jobs", err)
	}
	return info.State.LastSeq, nil
}

// EachChangedAfter calls each with the current state of every job that changed after a revision, in the order of their last
// changes, until it returns an error. A job that was removed, or that cannot be decoded, is omitted.
func (j *Jobs) EachChangedAfter(ctx context.Context, after uint64, each func(revision uint64, job core.Job) error) error {
	err := natsread.After(ctx, j.bucket.Conn, j.bucket.Stream, cells.Prefix+keyJob+"*", after, false, func(m natsread.Message) error {
		if cells.IsDeleted(m.Header) {
			return nil
		}
		var job core.Job
		if err := json.Unmarshal(m.Data, &job); err != nil {
			j.bucket.Conn.Log.Warn("a job cannot be decoded", "subject", m.Subject, "err", err)
			return nil
		}
		return each(m.Sequence, job)
	})
	return natsconn.WrapError("reading the changes of jobs", err)
}
