// Package retry processes the jobs that retry dead letters: a page of them at a time, with the cursor in the job, so that a crash
// repeats at most one page.
//
// It imports internal/core, internal/base/span and consumers/loop.
package retry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"tutti/consumers/loop"
	"tutti/internal/core"
)

const (
	// pageSize is how many dead letters are retried between two writes of the job.
	pageSize = 512
	// jobsInFlight bounds the jobs that one process works on.
	jobsInFlight = 2
	// pendingBatches is how many batches of records may be pending before a job publishes more: 768 records, half a second of work.
	pendingBatches = 6
	// batchWait is how long a job waits before it checks again how many batches are pending, and stuckAfter how long for one to end.
	batchWait, stuckAfter = 25 * time.Millisecond, time.Second
	// roomWait is how long a job waits before it checks again whether the queue is more than half full.
	roomWait = time.Second
)

// Letters reads dead letters.
type Letters interface {
	// EachPage calls each with pages of f.Limit of the dead letters that f selects and that exist now, with what their retry needs, from
	// f.Cursor on ("" for all). count is the size of the page with those that were removed since, left the number of those after it, and
	// next the cursor after it.
	EachPage(ctx context.Context, f core.DeadLetterFilter, each func(page []core.DeadLetter, count, left int, next string) error) error
}

// Retrier publishes the Requests of dead letters again.
type Retrier interface {
	// RetryPage returns how many of the letters, all of organization unless it is empty, were retried and how many cannot be. After an error
	// it may be called again.
	RetryPage(ctx context.Context, letters []core.DeadLetter, organization, requestID string) (retried, refused int, err error)
	// Elsewhere reports whether a repository is not configured here, but in another process.
	Elsewhere(ctx context.Context, repository string) (bool, error)
}

// Room reports whether the queue has room.
type Room interface {
	// Room reports whether the queue holds so many Requests that who publishes many should wait, how many batches of records are pending or
	// in flight, and how many may be before each record has a Request of its own.
	Room(ctx context.Context) (halfFull bool, batches, limit int, err error)
}

// Config holds the dependencies of a Worker; all are required.
type Config struct {
	Logger  *slog.Logger
	Letters Letters
	Retrier Retrier
	Jobs    core.Jobs
	Room    Room
}

// Worker processes retries of dead letters.
type Worker struct {
	Config
	loop *loop.Loop
}

// New returns a Worker for the messages that l pulls. No index pauses it: it only publishes Requests.
func New(l *loop.Loop, cfg Config) *Worker {
	l.Pause.Clear()
	return &Worker{Config: cfg, loop: l}
}

// Pull pulls retries from src until the process stops.
func (w *Worker) Pull(src loop.Source) { w.loop.Pull(core.ClassRetries, src, jobsInFlight, w.handle) }

func (w *Worker) handle(ctx context.Context, m core.Message, _ func()) {
	w.loop.Do(ctx, m, func(ctx context.Context) error {
		if err := w.run(ctx, m.Request()); !errors.Is(err, errEnded) {
			return err
		}
		return nil
	})
}

var (
	errEnded    = errors.New("the job has ended")
	errStopping = errors.New("the process is stopping")
)

// run retries the dead letters of the job of req from the job's cursor on, and ends the job. It returns errEnded if the job was
// cancelled.
func (w *Worker) run(ctx context.Context, req core.Request) error {
	switch elsewhere, err := w.Retrier.Elsewhere(ctx, req.Repository); {
	case err != nil:
		return err
	case elsewhere: // redelivered, until it comes to that process
		return loop.ErrBusy
	}
	job, err := w.start(ctx, req)
	if err != nil {
		return err
	}
	filter := core.DeadLetterFilter{Repository: job.Repository, Organization: job.Organization, Reason: job.Reason, Limit: pageSize, Cursor: job.Cursor}
	err = w.Letters.EachPage(ctx, filter, func(page []core.DeadLetter, count, left int, next string) error {
		if err := w.awaitRoom(ctx, job.ID); err != nil {
			return err
		}
		retried, refused, err := w.Retrier.RetryPage(ctx, page, job.Organization, req.ID)
		if err != nil {
			return fmt.Errorf("retrying dead letters: %w", err)
		}
		job, err = w.update(ctx, job, func(j *core.Job) {
			j.Cursor, j.ExpectedOrganizations = next, new(int)
			j.Totals.Fetched += int64(count)
			j.Totals.Retried += int64(retried)
			j.Totals.Rejected += int64(refused)
			j.Totals.Expected = j.Totals.Fetched + int64(left)
		})
		return err
	})
	if err != nil {
		return err
	}
	return w.end(ctx, job)
}

// start sets the job to running, and creates it when a crash prevented that.
func (w *Worker) start(ctx context.Context, req core.Request) (core.Job, error) {
	err := w.Jobs.Create(ctx, core.NewJob(req, ""))
	if err != nil && core.CodeOf(err) != core.CodeConflict {
		return core.Job{}, err
	}
	job, err := w.Jobs.Get(ctx, req.JobID)
	if err != nil || job.State == core.JobRunning {
		return job, err
	}
	return w.update(ctx, job, func(j *core.Job) {
		now := time.Now().UTC()
		j.State, j.StartedAt = core.JobRunning, &now
	})
}

// update changes the job. It returns errEnded if it has ended, and loop.ErrBusy if another process has continued it, to which the
// queue redelivered the message.
func (w *Worker) update(ctx context.Context, job core.Job, change func(*core.Job)) (core.Job, error) {
	return w.Jobs.Update(ctx, job.ID, func(j *core.Job) error {
		switch {
		case j.State.Final():
			return errEnded
		case j.Cursor != job.Cursor:
			return loop.ErrBusy
		}
		change(j)
		return nil
	})
}

// awaitRoom blocks until the queue has room, so that a retry of many dead letters leaves half of it to other Requests. It also blocks while
// more than pendingBatches are pending and become fewer, so that the records are in batches, and their dead letters are removed in order,
// soon after each other: the server keeps the blocks of messages that it touches in memory until all their messages were removed. It does
// not wait for batches that stay, such as those of a paused repository.
func (w *Worker) awaitRoom(ctx context.Context, jobID string) error {
	said, least, progress := false, math.MaxInt, time.Now()
	for {
		if w.loop.Stopping(ctx) {
			return errStopping
		}
		full, batches, limit, err := w.Room.Room(ctx)
		if err != nil {
			return err
		}
		if batches < least {
			least, progress = batches, time.Now()
		}
		if !full && (batches <= min(pendingBatches, limit/2) || time.Since(progress) >= stuckAfter) {
			return nil
		}
		wait := batchWait
		if full {
			wait = roomWait
			if !said {
				said = true
				w.Logger.InfoContext(ctx, "a retry of dead letters waits until the queue is less than half full", "job_id", jobID)
			}
		}
		if w.loop.Sleep(wait) != nil {
			return errStopping
		}
		if job, err := w.Jobs.Get(ctx, jobID); err == nil && job.State.Final() {
			return errEnded
		}
	}
}

func (w *Worker) end(ctx context.Context, job core.Job) error {
	job, err := w.update(ctx, job, func(j *core.Job) {
		j.ExpectedOrganizations = new(int)   // so that the number of dead letters is known, also if it is 0
		j.Totals.Expected = j.Totals.Fetched // fewer than before if those that a crash left were removed until now
		refused := j.Totals.Rejected
		if refused == 0 {
			j.End(core.JobSucceeded, nil)
			return
		}
		state := core.JobPartial
		if j.Totals.Retried == 0 {
			state = core.JobFailed
		}
		j.End(state, &core.JobError{Code: core.JobErrorNotRetryable, Message: fmt.Sprintf(
			"%d of %d dead letters cannot be retried; the retry of one by its id says why (tutti dead-letters retry ID)", refused, j.Totals.Fetched)})
	})
	if err == nil {
		w.Logger.InfoContext(ctx, "job ended", "job_id", job.ID, "state", string(job.State), "retried", job.Totals.Retried, "rejected", job.Totals.Rejected)
	}
	return err
}
