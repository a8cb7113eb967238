package jobs

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
	"tutti/internal/queue/subjects"
)

// jobIndex has of each job by its id what jobs are selected and counted by, so that only those that have changed are read. Its zero value
// is empty.
type jobIndex struct {
	mu sync.Mutex
	// last is a revision whose changes, and all earlier ones, jobs has.
	last uint64
	jobs map[string]indexedJob
}

type indexedJob struct {
	Repository string        `json:"repository"`
	State      core.JobState `json:"state"`
}

// readIDs returns the ids of all jobs, sorted, and the last revision of the bucket.
func (j *Jobs) readIDs(ctx context.Context) (ids []string, last uint64, err error) {
	info, err := j.bucket.Stream.Info(ctx, jetstream.WithSubjectFilter(cells.Prefix+keyJob+"*"))
	if err != nil {
		return nil, 0, natsconn.WrapError("listing jobs", err)
	}
	ids = make([]string, 0, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		if id, err := subjects.DecodeToken(strings.TrimPrefix(subject, cells.Prefix+keyJob)); err == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, info.State.LastSeq, nil
}

// indexed calls each with every job that exists, the newest first, after it has read those that have changed since the last call.
func (j *Jobs) indexed(ctx context.Context, each func(id string, job indexedJob)) error {
	x := &j.index
	x.mu.Lock()
	defer x.mu.Unlock()
	ids, last, err := j.readIDs(ctx)
	if err != nil {
		return err
	}
	if x.jobs == nil || last < x.last {
		x.jobs, x.last = make(map[string]indexedJob, len(ids)), 0
	}
	err = natsread.After(ctx, j.bucket.Conn, j.bucket.Stream, cells.Prefix+keyJob+"*", x.last, false, func(m natsread.Message) error {
		id, err := subjects.DecodeToken(strings.TrimPrefix(m.Subject, cells.Prefix+keyJob))
		if err != nil || cells.IsDeleted(m.Header) {
			delete(x.jobs, id)
			return nil
		}
		var job indexedJob
		if err := json.Unmarshal(m.Data, &job); err != nil {
			return core.WrapError(core.CodeInternal, "decoding a job", err)
		}
		x.jobs[id] = job
		return nil
	})
	if err != nil {
		return natsconn.WrapError("listing jobs", err)
	}
	x.last = last
	exist := make(map[string]indexedJob, len(ids))
	for _, id := range slices.Backward(ids) {
		if job, found := x.jobs[id]; found {
			exist[id] = job
			each(id, job)
		}
	}
	x.jobs = exist
	return nil
}
