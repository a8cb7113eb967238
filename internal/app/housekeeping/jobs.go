package housekeeping

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"tutti/consumers"
	"tutti/ingest"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/search/sets"
)

const (
	// jobsKept is how many jobs are kept, the newest. Jobs are also removed after 90 days.
	jobsKept = 1000
	// PrunedEvery is how often old jobs are removed.
	PrunedEvery = 10 * time.Minute
)

// Deps are what housekeeping uses.
type Deps struct {
	Repositories []config.Repository
	Queue        *queue.Queue
	Ingest       *ingest.Service
	Logger       *slog.Logger
}

// Parts are what only Jobs uses.
type Parts struct {
	Consumers *consumers.Consumers
	Sets      *sets.Service
	Metrics   *Metrics
}

// Jobs keeps the stored jobs and the saved sets in order. It is not safe for concurrent use.
type Jobs struct {
	Deps
	parts Parts
}

// NewJobs returns Jobs.
func NewJobs(deps Deps, parts Parts) *Jobs { return &Jobs{Deps: deps, parts: parts} }

// pruneCell is the cell with the time at which a process last removed old jobs and expired sets.
const pruneCell = "housekeeping"

// Prune removes old jobs, and saved sets that have expired, unless another process has done so within PrunedEvery.
func (j *Jobs) Prune(ctx context.Context) {
	if due, err := j.pruneDue(ctx, time.Now()); err != nil || !due {
		if err != nil && ctx.Err() == nil {
			j.Logger.Warn("checking when old jobs were last removed", "err", err)
		}
		return
	}
	j.parts.Metrics.prunes.Inc()
	if err := j.Queue.Jobs().Prune(ctx, jobsKept); err != nil && ctx.Err() == nil {
		j.Logger.Warn("removing old jobs", "err", err)
	}
	if _, err := j.parts.Sets.Purge(ctx); err != nil && ctx.Err() == nil {
		j.Logger.Warn("removing saved sets that have expired", "err", err)
	}
}

// pruneDue reports whether this process must remove old jobs and expired sets now. Of several processes, one does.
func (j *Jobs) pruneDue(ctx context.Context, now time.Time) (bool, error) {
	value, revision, err := j.Queue.Cells().Cell(ctx, pruneCell)
	if err != nil || !pruneAgain(value, now) {
		return false, err
	}
	err = j.Queue.Cells().SetCell(ctx, pruneCell, now.UTC().Format(time.RFC3339Nano), revision)
	if core.CodeOf(err) == core.CodeConflict { // another process was first
		return false, nil
	}
	return err == nil, err
}

// pruneAgain reports whether so much time has passed since a time of pruneCell that the tickers of all processes agree. A time in the
// future is that of a wrong clock.
func pruneAgain(last string, now time.Time) bool {
	at, err := time.Parse(time.RFC3339Nano, last)
	age := now.Sub(at)
	return err != nil || age < 0 || age >= PrunedEvery*9/10
}

// Check counts the jobs by state and ends orphans: open jobs without a Request in the queue in this check and in the
// previous one. It returns the open jobs without a Request in this check.
func (j *Jobs) Check(ctx context.Context, before map[string]struct{}) (map[string]struct{}, error) {
	jobs := j.Queue.Jobs()
	if err := j.parts.Metrics.progress.measure(ctx, jobs, j.Queue.Groups()); err != nil {
		return before, err
	}
	counts, err := jobs.Counts(ctx)
	if err != nil {
		return before, err
	}
	for _, s := range core.JobStates() {
		j.parts.Metrics.jobs.WithLabelValues(string(s)).Set(float64(counts[s]))
	}
	if counts[core.JobQueued]+counts[core.JobRunning]+counts[core.JobPaused] == 0 {
		return nil, nil
	}
	open, err := j.openJobs(ctx)
	if err != nil {
		return before, err
	}
	alive, err := j.Queue.JobIDs(ctx) // after the list: a job is created after its Request
	if err != nil {
		return before, err
	}
	suspects := make(map[string]struct{})
	for _, id := range open {
		if _, ok := alive[id]; ok {
			continue
		}
		suspects[id] = struct{}{}
		if _, again := before[id]; !again {
			continue
		}
		j.Logger.Warn("a job has lost its requests", "job_id", id)
		if err := j.parts.Consumers.EndOrphan(ctx, id); err != nil {
			return suspects, err
		}
	}
	return suspects, nil
}

// openJobs returns the ids of the jobs that have not ended.
func (j *Jobs) openJobs(ctx context.Context) (ids []string, err error) {
	for _, state := range []core.JobState{core.JobQueued, core.JobRunning, core.JobPaused} {
		if err := eachJob(ctx, j.Queue, core.JobFilter{State: state, Limit: 200}, func(job core.Job) (done bool) {
			ids = append(ids, job.ID)
			return false
		}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// eachJob calls each for the jobs that a filter selects, the newest first, until it returns true.
func eachJob(ctx context.Context, q *queue.Queue, filter core.JobFilter, each func(core.Job) (done bool)) error {
	for {
		page, next, err := q.Jobs().List(ctx, filter)
		if err != nil || slices.ContainsFunc(page, each) || next == "" {
			return err
		}
		filter.Cursor = next
	}
}

// RunAll queues a run of every repository if one is due. Jobs that have no Request in the queue are ended before: the parts of a backup are
// not of the same moment, and the Requests of a damaged queue are lost.
func (j *Jobs) RunAll(ctx context.Context) error {
	due, done, err := j.Queue.RunAllDue(ctx)
	if err != nil || due == queue.RunAllNone {
		return err
	}
	suspects, err := j.Check(ctx, nil)
	if err == nil {
		_, err = j.Check(ctx, suspects)
	}
	if err != nil {
		return err
	}
	for _, rc := range j.Repositories {
		// The index may have many documents that the store of a backup does not have: it was read later.
		flags := core.RunFlags{Force: rc.Type == core.TypeLocal && due == queue.RunAllRecords, Difference: due == queue.RunAllDifference}
		job, err := j.Ingest.Run(ctx, core.ScopeRepository, rc.Code, "", flags, core.CauseReconcile, "")
		if err != nil {
			return err
		}
		j.Logger.Info("queued a run of every repository, which was due", "repository", rc.Code, "difference", flags.Difference, "job_id", job.ID)
	}
	return done()
}
