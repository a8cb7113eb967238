package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"tutti/consumers"
	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/jobs"
)

const (
	// jobsKept is how many jobs are kept, the newest. Jobs are also removed after 90 days.
	jobsKept = 1000
	// jobsCountedEvery is how often jobs are counted for the metric, jobsPrunedEvery how often old ones are removed.
	jobsCountedEvery = 15 * time.Second
	jobsPrunedEvery  = 10 * time.Minute
)

// jobsAPI implements the HTTP handler's port for jobs.
type jobsAPI struct {
	*jobs.Jobs
	*jobs.Groups
	consumers *consumers.Consumers
}

// Cancel cancels a job that has not ended.
func (j jobsAPI) Cancel(ctx context.Context, id string) (core.Job, error) {
	return j.consumers.Cancel(ctx, id)
}

// startHousekeeping starts the goroutine that counts jobs for the metric, ends orphaned jobs, and removes old ones.
func (a *App) startHousekeeping(ctx context.Context) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a.indexCheck = &cachedCheck{life: ctx, check: a.checkIndex}
	a.storeCheck = &cachedCheck{life: ctx, check: a.data.Store.Ready}
	a.fillCheck = &cachedCheck{life: ctx, check: a.filler.check}
	a.connectionCheck = &cachedCheck{life: ctx, check: func(ctx context.Context) error { a.connections.Recheck(ctx); return nil }}
	a.data.ShareWriteTimes(ctx) // so that the times of the last run are known to the first request
	var done sync.WaitGroup
	done.Go(func() { a.runHousekeeping(ctx) })
	a.cleanup.Push("housekeeping", func(context.Context) error {
		cancel()
		done.Wait()
		a.indexCheck.wait()
		a.storeCheck.wait()
		a.fillCheck.wait()
		a.connectionCheck.wait()
		return nil
	})
	return nil
}

func (a *App) runHousekeeping(ctx context.Context) {
	count, prune := time.NewTicker(jobsCountedEvery), time.NewTicker(jobsPrunedEvery)
	defer count.Stop()
	defer prune.Stop()
	a.prune(ctx)
	var suspects map[string]struct{}
	uncounted := "" // why the outbox could not be counted the last time
	for {
		a.Health(ctx) // for the metric
		err := a.runAll(ctx)
		if err != nil && ctx.Err() == nil {
			a.log.Warn("queueing the runs of every repository that are due", "err", err)
		}
		if suspects, err = a.checkJobs(ctx, suspects); err != nil && ctx.Err() == nil {
			a.log.Warn("checking jobs", "err", err)
		}
		a.data.ShareWriteTimes(ctx)
		a.indexer.tryStoreNotifications(ctx)
		if n, err := a.builtIn.metadata.Pending(ctx); err == nil {
			a.metrics.outbox.Set(float64(n))
			uncounted = ""
		} else if reason := core.MessageOf(err); reason != uncounted && ctx.Err() == nil {
			uncounted = reason
			a.log.Warn("counting the outbox", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-count.C:
		case <-prune.C:
			a.prune(ctx)
		}
	}
}

// pruneCell is the cell with the time at which a process last removed old jobs and expired sets.
const pruneCell = "housekeeping"

// prune removes old jobs, and saved sets that have expired, unless another process has done so within jobsPrunedEvery.
func (a *App) prune(ctx context.Context) {
	if due, err := a.pruneDue(ctx, time.Now()); err != nil || !due {
		if err != nil && ctx.Err() == nil {
			a.log.Warn("checking when old jobs were last removed", "err", err)
		}
		return
	}
	a.metrics.prunes.Inc()
	if err := a.data.Queue.Jobs().Prune(ctx, jobsKept); err != nil && ctx.Err() == nil {
		a.log.Warn("removing old jobs", "err", err)
	}
	if _, err := a.search.sets.Purge(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("removing saved sets that have expired", "err", err)
	}
}

// pruneDue reports whether this process must remove old jobs and expired sets now. Of several processes, one does.
func (a *App) pruneDue(ctx context.Context, now time.Time) (bool, error) {
	value, revision, err := a.data.Queue.Cells().Cell(ctx, pruneCell)
	if err != nil || !pruneAgain(value, now) {
		return false, err
	}
	err = a.data.Queue.Cells().SetCell(ctx, pruneCell, now.UTC().Format(time.RFC3339Nano), revision)
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
	return err != nil || age < 0 || age >= jobsPrunedEvery*9/10
}

// checkJobs counts the jobs by state and ends orphans: open jobs without a Request in the queue in this check and in the
// previous one. It returns the open jobs without a Request in this check.
func (a *App) checkJobs(ctx context.Context, before map[string]struct{}) (map[string]struct{}, error) {
	jobs := a.data.Queue.Jobs()
	if err := a.metrics.progress.measure(ctx, jobs, a.data.Queue.Groups()); err != nil {
		return before, err
	}
	counts, err := jobs.Counts(ctx)
	if err != nil {
		return before, err
	}
	for _, s := range core.JobStates() {
		a.metrics.jobs.WithLabelValues(string(s)).Set(float64(counts[s]))
	}
	if counts[core.JobQueued]+counts[core.JobRunning]+counts[core.JobPaused] == 0 {
		return nil, nil
	}
	open, err := a.openJobs(ctx)
	if err != nil {
		return before, err
	}
	alive, err := a.data.Queue.JobIDs(ctx) // after the list: a job is created after its Request
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
		a.log.Warn("a job has lost its requests", "job_id", id)
		if err := a.indexer.consumers.EndOrphan(ctx, id); err != nil {
			return suspects, err
		}
	}
	return suspects, nil
}

// openJobs returns the ids of the jobs that have not ended.
func (a *App) openJobs(ctx context.Context) (ids []string, err error) {
	for _, state := range []core.JobState{core.JobQueued, core.JobRunning, core.JobPaused} {
		if err := a.eachJob(ctx, core.JobFilter{State: state, Limit: 200}, func(j core.Job) (done bool) {
			ids = append(ids, j.ID)
			return false
		}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// eachJob calls each for the jobs that a filter selects, the newest first, until it returns true.
func (b *base) eachJob(ctx context.Context, filter core.JobFilter, each func(core.Job) (done bool)) error {
	for {
		page, next, err := b.data.Queue.Jobs().List(ctx, filter)
		if err != nil || slices.ContainsFunc(page, each) || next == "" {
			return err
		}
		filter.Cursor = next
	}
}

// runAll queues a run of every repository if one is due. Jobs that have no Request in the queue are ended before: the parts of a backup are
// not of the same moment, and the Requests of a damaged queue are lost.
func (a *App) runAll(ctx context.Context) error {
	due, done, err := a.data.Queue.RunAllDue(ctx)
	if err != nil || due == queue.RunAllNone {
		return err
	}
	suspects, err := a.checkJobs(ctx, nil)
	if err == nil {
		_, err = a.checkJobs(ctx, suspects)
	}
	if err != nil {
		return err
	}
	for _, rc := range a.cfg.Repositories {
		// The index may have many documents that the store of a backup does not have: it was read later.
		flags := core.RunFlags{Force: rc.Type == core.TypeLocal && due == queue.RunAllRecords, Difference: due == queue.RunAllDifference}
		job, err := a.indexer.ingest.Run(ctx, core.ScopeRepository, rc.Code, "", flags, core.CauseReconcile, "")
		if err != nil {
			return err
		}
		a.log.Info("queued a run of every repository, which was due", "repository", rc.Code, "difference", flags.Difference, "job_id", job.ID)
	}
	return done()
}
