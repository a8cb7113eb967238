package jobs

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
	"tutti/internal/queue/subjects"
)

// orphanAge is how long ago a cell, or the organizations of a job, must have been written before the job they name
// counts as missing: a trigger sets its cell a moment before it creates its job.
const orphanAge = 10 * time.Minute

// renewAge is how long ago a cell must have been written before Prune writes it again: long before it would expire.
const renewAge = cells.Kept / 3

// Ages are the ages from which PruneOlder acts, by the time of the last write.
type Ages struct {
	// Orphans is that of cells and organizations whose job does not exist, Cells that of cells to write again.
	Orphans, Cells time.Duration
}

// Prune removes ended jobs, with their organizations, except those among the newest keep jobs. It also removes the
// cells "queued.*" and "running.*" of ended jobs, their cells "spaced.*" if they are older than ten minutes, and cells and organizations
// whose job does not exist, unless they are younger than ten minutes or a Request of the job, which creates it again, is in the queue. Concurrent writes
// are not removed.
//
// Other cells, such as that of an index's identity, may be written once and must not expire: those that have not been
// written for 30 days are written again with the same value.
func (j *Jobs) Prune(ctx context.Context, keep int) error {
	return j.PruneOlder(ctx, keep, Ages{Orphans: orphanAge, Cells: renewAge})
}

// PruneOlder is Prune with other ages.
func (j *Jobs) PruneOlder(ctx context.Context, keep int, ages Ages) error {
	// Before reading the bucket: a Request that has ended since has created its job by then.
	waiting, err := j.pending(ctx)
	if err != nil {
		return err
	}
	c, err := j.readContents(ctx)
	if err != nil {
		return natsconn.WrapError("reading the jobs", err)
	}
	now := time.Now()
	youngest := now.Add(-ages.Orphans)
	gone := func(id string, writtenAt time.Time) bool {
		_, exists := c.jobs[id]
		_, waits := waiting[id]
		return !exists && !waits && !writtenAt.After(youngest)
	}
	for subject, s := range c.cells {
		job, exists := c.jobs[s.value]
		ended := exists && job.State.Final() && (!s.spaced || !s.writtenAt.After(youngest))
		if ended || gone(s.value, s.writtenAt) {
			if err := j.bucket.Purge(ctx, subject, jetstream.WithPurgeSequence(s.sequence+1)); err != nil {
				return natsconn.WrapError("removing an old cell", err)
			}
		}
	}
	for id, last := range c.parts {
		if gone(id, last.writtenAt) {
			for _, keys := range partKeys(id) {
				if err := j.bucket.Purge(ctx, cells.Prefix+keys, jetstream.WithPurgeSequence(last.sequence+1)); err != nil {
					return natsconn.WrapError("removing the organizations of a job that is gone", err)
				}
			}
		}
	}
	if err := j.renew(ctx, c.lasting, now.Add(-ages.Cells)); err != nil {
		return err
	}
	return j.pruneJobs(ctx, slices.Collect(maps.Values(c.jobs)), c.summaries, keep)
}

// renew writes those of cells again that were last written before a time, unless they have changed since.
func (j *Jobs) renew(ctx context.Context, stored map[string]cellContent, before time.Time) error {
	for subject, cell := range stored {
		if !cell.writtenAt.Before(before) {
			continue
		}
		err := j.bucket.Update(ctx, strings.TrimPrefix(subject, cells.Prefix), []byte(cell.value), cell.sequence)
		if err != nil && !natsconn.IsConflict(err) {
			return natsconn.WrapError("writing a cell again", err)
		}
	}
	return nil
}

// pruneJobs removes those of jobs that have ended and are not among the newest keep, and stores a summary of the others that have none:
// those of an earlier version.
func (j *Jobs) pruneJobs(ctx context.Context, jobs []core.Job, summaries map[string]struct{}, keep int) error {
	sortNewestFirst(jobs)
	for i, job := range jobs {
		if !job.State.Final() {
			continue
		}
		if i < keep {
			if _, has := summaries[job.ID]; !has {
				j.ensureSummary(ctx, job)
			}
			continue
		}
		// The organizations first: after a crash the job still exists and is pruned again.
		for _, key := range append(partKeys(job.ID), jobKey(job.ID)) {
			if err := j.bucket.Purge(ctx, cells.Prefix+key); err != nil {
				return natsconn.WrapError("removing an old job", err)
			}
		}
	}
	return nil
}

// contents is the content of the bucket, with the sequences needed to remove no more than was read.
type contents struct {
	jobs map[string]core.Job
	// cells holds the cells that name the queued or running job of a scope, by their subject.
	cells map[string]cellContent
	// lasting holds the other cells that are not empty, by their subject.
	lasting map[string]cellContent
	// summaries holds the ids of the jobs with a summary.
	summaries map[string]struct{}
	// parts holds the last write of any organization of a job, of its list of ids, of the notes of its pages and of its summary, by the job's id.
	parts map[string]lastWrite
}

type cellContent struct {
	lastWrite
	value string // the id of the job, of the cell of one
	// spaced is set for the cell of a job after which the next one must wait.
	spaced bool
}

type lastWrite struct {
	sequence  uint64
	writtenAt time.Time
}

// readContents reads the whole bucket once. It has every key that exists all the time, whatever is written
// concurrently.
func (j *Jobs) readContents(ctx context.Context) (contents, error) {
	c := contents{
		jobs: make(map[string]core.Job), cells: make(map[string]cellContent), lasting: make(map[string]cellContent),
		parts: make(map[string]lastWrite), summaries: make(map[string]struct{}),
	}
	err := natsread.All(ctx, j.bucket.Conn, j.bucket.Stream, cells.Prefix+">", c.add)
	return c, err
}

func (c *contents) add(m natsread.Message) error {
	key := strings.TrimPrefix(m.Subject, cells.Prefix)
	removed := cells.IsDeleted(m.Header)
	write := lastWrite{m.Sequence, m.StoredAt}
	if token, ok := strings.CutPrefix(key, cells.KeyCell); ok {
		delete(c.cells, m.Subject)
		delete(c.lasting, m.Subject)
		name, err := subjects.DecodeToken(token)
		switch {
		case err != nil || removed:
		case isJobCell(name):
			c.cells[m.Subject] = cellContent{write, string(m.Data), strings.HasPrefix(name, core.SpacedCell)}
		default:
			c.lasting[m.Subject] = cellContent{lastWrite: write, value: string(m.Data)}
		}
		return nil
	}
	for _, of := range []string{keyOrganization, keyIDs, cells.KeyPages, keySummary} {
		if rest, ok := strings.CutPrefix(key, of); ok {
			token, _, _ := strings.Cut(rest, ".")
			if id, err := subjects.DecodeToken(token); err == nil && !removed {
				c.parts[id] = write
				if of == keySummary {
					c.summaries[id] = struct{}{}
				}
			}
			return nil
		}
	}
	if !strings.HasPrefix(key, keyJob) || removed {
		return nil
	}
	var job core.Job
	if err := json.Unmarshal(m.Data, &job); err != nil {
		return core.WrapError(core.CodeInternal, "decoding a job", err)
	}
	c.jobs[job.ID] = job
	return nil
}

// isJobCell reports whether a cell names the queued or the running job of a scope.
func isJobCell(name string) bool {
	return strings.HasPrefix(name, "queued.") || strings.HasPrefix(name, "running.") || strings.HasPrefix(name, core.SpacedCell)
}
