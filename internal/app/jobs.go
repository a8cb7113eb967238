package app

import (
	"context"
	"sync"
	"time"

	"tutti/consumers"
	tuttihttp "tutti/http"
	"tutti/internal/core"
	"tutti/internal/queue"
)

const (
	// jobsKept is how many jobs are kept, the newest; older ones also go after 90 days.
	jobsKept = 1000
	// jobsCountedEvery is how often jobs are counted for the metric, jobsPrunedEvery how often old ones go.
	jobsCountedEvery = 15 * time.Second
	jobsPrunedEvery  = 10 * time.Minute
	// healthWait bounds one look at queue, index or store: a probe from outside seldom waits longer.
	healthWait = 2 * time.Second
)

// jobsAPI is what HTTP sees of the jobs.
type jobsAPI struct {
	*queue.Jobs
	consumers *consumers.Consumers
}

// List gives jobs, newest first.
func (j jobsAPI) List(ctx context.Context, repository string, state core.JobState, limit int, cursor string) ([]core.Job, string, error) {
	return j.Jobs.List(ctx, queue.JobFilter{Repository: repository, State: state, Limit: limit, Cursor: cursor})
}

// Cancel ends a job that has not ended.
func (j jobsAPI) Cancel(ctx context.Context, id string) (core.Job, error) {
	return j.consumers.Cancel(ctx, id)
}

// Health tells how the parts of the process are. It asks them side by side, so that one that hangs is not taken for another,
// and each answers within healthWait, or is down.
func (a *App) Health(ctx context.Context) tuttihttp.Health {
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	var queue, index, store tuttihttp.ComponentState
	var asked sync.WaitGroup
	asked.Go(func() { queue = state(a.queue.Ready(ctx)) })
	asked.Go(func() { index = state(a.index.Ping(ctx)) })
	asked.Go(func() { store = state(a.store.Ping(ctx)) })
	asked.Wait()
	h := tuttihttp.Health{Components: map[string]tuttihttp.ComponentState{"queue": queue, "index": index, "store": store}}
	if known, err := a.brokers(); known {
		h.Components["kafka"] = state(err)
	}
	if a.relay != nil {
		h.Components["outbox"] = tuttihttp.ComponentUp
		if a.relay.Health() != nil { // changes are kept and told later
			h.Components["outbox"] = tuttihttp.ComponentDegraded
		}
	}
	degraded := a.consumers.ClockAlarm() || stillLoading(a.index)
	for _, p := range a.consumers.Paused() {
		degraded = degraded || p.Index
	}
	h.Paused = a.Paused()
	if h.Components["index"] == tuttihttp.ComponentUp && degraded {
		h.Components["index"] = tuttihttp.ComponentDegraded
	}
	return h
}

// Paused lists the repositories whose consumers wait for something.
func (a *App) Paused() []tuttihttp.Pause {
	var all []tuttihttp.Pause
	for _, p := range a.consumers.Paused() {
		all = append(all, tuttihttp.Pause{Repository: p.Repository, Reason: p.Reason})
	}
	return all
}

// stillLoading tells that an index takes writes, and has aliases that cannot be searched yet after a start.
func stillLoading(index any) bool {
	loader, loads := index.(interface{ Loading() []string })
	return loads && len(loader.Loading()) > 0
}

func state(err error) tuttihttp.ComponentState {
	if err != nil {
		return tuttihttp.ComponentDown
	}
	return tuttihttp.ComponentUp
}

// startHousekeeping counts jobs for the metric, ends those that nothing works on any more, and removes old ones.
func (a *App) startHousekeeping(ctx context.Context) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { a.keepHouse(ctx) })
	a.cleanup.push("housekeeping", func(context.Context) error {
		cancel()
		done.Wait()
		return nil
	})
	return nil
}

func (a *App) keepHouse(ctx context.Context) {
	count, prune := time.NewTicker(jobsCountedEvery), time.NewTicker(jobsPrunedEvery)
	defer count.Stop()
	defer prune.Stop()
	a.prune(ctx)
	var suspects map[string]struct{}
	for {
		var err error
		if suspects, err = a.lookAfterJobs(ctx, suspects); err != nil && ctx.Err() == nil {
			a.log.Warn("looking after jobs", "err", err)
		}
		if n, err := a.metadata.Pending(ctx); err == nil {
			a.metrics.outbox.Set(float64(n))
		} else if ctx.Err() == nil {
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

// prune removes old jobs, and saved sets that have expired.
func (a *App) prune(ctx context.Context) {
	if err := a.queue.Jobs().Prune(ctx, jobsKept); err != nil && ctx.Err() == nil {
		a.log.Warn("removing old jobs", "err", err)
	}
	if _, err := a.sets.Purge(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("removing saved sets that have expired", "err", err)
	}
}

// lookAfterJobs counts the jobs by state and ends orphans: jobs that have not ended and have no Request in the queue, at
// this look and at the one before. It gives the suspects of this look.
func (a *App) lookAfterJobs(ctx context.Context, before map[string]struct{}) (map[string]struct{}, error) {
	jobs := a.queue.Jobs()
	counts, err := jobs.Counts(ctx)
	if err != nil {
		return before, err
	}
	for _, s := range core.JobStates() {
		a.metrics.jobs.WithLabelValues(string(s)).Set(float64(counts[s]))
	}
	if counts[core.JobQueued]+counts[core.JobRunning] == 0 {
		return nil, nil
	}
	open, err := a.openJobs(ctx)
	if err != nil {
		return before, err
	}
	alive, err := a.queue.JobIDs(ctx) // after the list: a job is made after its Request
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
		if err := a.consumers.EndOrphan(ctx, id); err != nil {
			return suspects, err
		}
	}
	return suspects, nil
}

// openJobs gives the ids of the jobs that have not ended.
func (a *App) openJobs(ctx context.Context) ([]string, error) {
	var ids []string
	for _, s := range []core.JobState{core.JobQueued, core.JobRunning} {
		for cursor := ""; ; {
			page, next, err := a.queue.Jobs().List(ctx, queue.JobFilter{State: s, Limit: 200, Cursor: cursor})
			if err != nil {
				return nil, err
			}
			for _, j := range page {
				ids = append(ids, j.ID)
			}
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	return ids, nil
}
