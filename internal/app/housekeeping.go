package app

import (
	"context"
	"sync"
	"time"

	"tutti/consumers"
	"tutti/internal/app/housekeeping"
	"tutti/internal/core"
)

// jobsCountedEvery is how often jobs are counted for the metric.
const jobsCountedEvery = 15 * time.Second

// keeping returns what housekeeping uses.
func (a *App) keeping() housekeeping.Deps {
	return housekeeping.Deps{Repositories: a.cfg.Repositories, Queue: a.data.Queue, Ingest: a.indexer.ingest, Logger: a.log}
}

// startFilled begins to track whether the indices have all that they should.
func (a *App) startFilled(ctx context.Context) error {
	a.contents = housekeeping.NewContents(a.keeping(), housekeeping.Watched{
		Studies:     a.builtIn.metadata.Studies,
		Paused:      func() []consumers.Pause { return a.indexer.consumers.Paused() },
		Failure:     a.indexer.failure,
		LastSuccess: a.metrics.consumers.SetLastSuccess,
	})
	return a.contents.Start(ctx)
}

// startHousekeeping starts the goroutine that counts jobs for the metric, ends orphaned jobs, and removes old ones.
func (a *App) startHousekeeping(ctx context.Context) error {
	a.jobs = housekeeping.NewJobs(a.keeping(), housekeeping.Parts{Consumers: a.indexer.consumers, Sets: a.search.sets, Metrics: a.metrics.keeping})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a.indexCheck = &cachedCheck{life: ctx, check: a.checkIndex}
	a.storeCheck = &cachedCheck{life: ctx, check: a.data.Store.Ready}
	a.fillCheck = &cachedCheck{life: ctx, check: a.contents.Check}
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
	count, prune := time.NewTicker(jobsCountedEvery), time.NewTicker(housekeeping.PrunedEvery)
	defer count.Stop()
	defer prune.Stop()
	a.jobs.Prune(ctx)
	var suspects map[string]struct{}
	uncounted := "" // why the outbox could not be counted the last time
	for {
		a.Health(ctx) // for the metric
		err := a.jobs.RunAll(ctx)
		if err != nil && ctx.Err() == nil {
			a.log.Warn("queueing the runs of every repository that are due", "err", err)
		}
		if suspects, err = a.jobs.Check(ctx, suspects); err != nil && ctx.Err() == nil {
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
			a.jobs.Prune(ctx)
		}
	}
}
