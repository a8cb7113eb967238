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
	// jobsCountedEvery is how often jobs and waiting requests are counted for the metrics, jobsPrunedEvery how often
	// old jobs go.
	jobsCountedEvery = 15 * time.Second
	jobsPrunedEvery  = 10 * time.Minute
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

// Health tells how the parts of the process are.
func (a *App) Health(ctx context.Context) tuttihttp.Health {
	h := tuttihttp.Health{Components: map[string]tuttihttp.ComponentState{
		"queue": state(a.queue.Ready(ctx)), "index": state(a.index.Ping(ctx)),
	}}
	for _, p := range a.consumers.Paused() {
		h.Paused = append(h.Paused, tuttihttp.Pause{Repository: p.Repository, Reason: p.Reason})
	}
	if h.Components["index"] == tuttihttp.ComponentUp && a.consumers.ClockAlarm() {
		h.Components["index"] = tuttihttp.ComponentDegraded
	}
	return h
}

func state(err error) tuttihttp.ComponentState {
	if err != nil {
		return tuttihttp.ComponentDown
	}
	return tuttihttp.ComponentUp
}

// startHousekeeping counts jobs and waiting requests for the metrics, and removes the jobs that are too many.
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
	for {
		if err := a.countJobs(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("counting jobs", "err", err)
		}
		if _, err := a.queue.Pending(ctx); err != nil && ctx.Err() == nil { // sets its metric
			a.log.Warn("counting waiting requests", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-count.C:
		case <-prune.C:
			if err := a.queue.Jobs().Prune(ctx, jobsKept); err != nil && ctx.Err() == nil {
				a.log.Warn("removing old jobs", "err", err)
			}
		}
	}
}

func (a *App) countJobs(ctx context.Context) error {
	counts := make(map[core.JobState]int)
	cursor := ""
	for {
		jobs, next, err := a.queue.Jobs().List(ctx, queue.JobFilter{Limit: 200, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			counts[j.State]++
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	for _, s := range core.JobStates() {
		a.metrics.jobs.WithLabelValues(string(s)).Set(float64(counts[s]))
	}
	return nil
}
