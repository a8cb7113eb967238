// Package outage knows whether a repository answers, for all its runs: while it does not, one call at a time probes it, and the jobs whose
// calls wait are paused.
//
// It imports internal/core and the packages consumers/loop, fetch and state.
package outage

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// jobCheckInterval is how often a paused run checks whether its job has ended.
const jobCheckInterval = 2 * time.Second

// Outage tracks whether a repository answers the calls of its runs. While it does not, one call at a time probes it, with
// backoff, and the others wait. Any answered call ends the outage. It is safe for concurrent use.
type Outage struct {
	loop        *loop.Loop
	jobs        *state.Jobs
	log         *slog.Logger
	giveUpAfter time.Duration
	probing     chan struct{} // holds an element while a call probes

	mu       sync.Mutex
	cause    error         // of the latest failure, nil while the repository answers
	since    time.Time     // when the calls began to fail
	failures int           // consecutive failures, for the backoff
	next     time.Time     // when the next probe may start
	waiting  int           // calls that wait or probe
	answers  int           // answered calls
	ended    chan struct{} // closed at the end of the outage
}

// New returns an Outage that has not begun. A run waits giveUpAfter before it fails.
func New(l *loop.Loop, jobs *state.Jobs, log *slog.Logger, giveUpAfter time.Duration) *Outage {
	return &Outage{loop: l, jobs: jobs, log: log, giveUpAfter: giveUpAfter, probing: make(chan struct{}, 1)}
}

// Reason returns why runs wait, "" when none does.
func (o *Outage) Reason() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause == nil || o.waiting == 0 {
		return ""
	}
	return state.PauseReason(o.cause)
}

// Start starts the outage after a call's consecutive failures, of which cause is the last and the first was at since. It has
// no effect during an outage.
func (o *Outage) Start(cause error, failures int, since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause != nil {
		return
	}
	o.ended, o.since = make(chan struct{}), since
	o.failedLocked(cause, failures)
	o.log.Warn("runs are paused until the repository answers", "err", cause)
}

// failedLocked records a failure. The caller holds mu.
func (o *Outage) failedLocked(cause error, failures int) {
	o.cause, o.failures = cause, failures
	o.next = time.Now().Add(o.loop.Delay(failures, cause))
}

// Current returns a channel that is closed at the end of the outage, nil without one, when the next probe may start, and the
// number of answered calls so far.
func (o *Outage) Current() (ended <-chan struct{}, next time.Time, answers int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause == nil {
		return nil, time.Time{}, o.answers
	}
	return o.ended, o.next, o.answers
}

// GaveUp reports whether job no longer waits for a repository whose calls have failed since then or whose outage lasts.
// A run waits giveUpAfter, also when it started during the outage. The zero time is that of no failure.
func (o *Outage) GaveUp(job core.Job, since time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause != nil && (since.IsZero() || o.since.Before(since)) {
		since = o.since
	}
	if since.IsZero() {
		return false
	}
	if job.StartedAt != nil && job.StartedAt.After(since) {
		since = *job.StartedAt
	}
	return time.Since(since) >= o.giveUpAfter
}

// Await blocks until the outage ends, the caller may probe the repository, or job no longer waits for it. It returns a
// function that the caller must call with the error of its next call, nil when the repository answered it. It returns
// loop.ErrJobEnded once the job has ended, and an error when the process stops.
func (o *Outage) Await(ctx context.Context, job core.Job) (done func(error), err error) {
	if ended, _, _ := o.Current(); ended == nil {
		return o.note, nil
	}
	o.addWaiting(1)
	probes, err := o.acquireProbe(ctx, job)
	if err != nil {
		o.addWaiting(-1)
		return nil, err
	}
	return func(err error) {
		o.note(err)
		if probes {
			o.noteProbe(err)
			<-o.probing
		}
		o.addWaiting(-1)
	}, nil
}

// acquireProbe blocks until the outage ends, job no longer waits for it, or the caller holds probing and the backoff has
// passed. It reports whether the caller holds probing.
func (o *Outage) acquireProbe(ctx context.Context, job core.Job) (probes bool, err error) {
	check := time.NewTicker(jobCheckInterval)
	defer check.Stop()
	turn := o.probing // nil once acquired
	var due <-chan time.Time
	for {
		ended, next, _ := o.Current()
		if ended == nil || o.GaveUp(job, time.Time{}) {
			return turn == nil, nil
		}
		if turn == nil && due == nil {
			due = time.After(time.Until(next))
		}
		select {
		case turn <- struct{}{}:
			turn = nil
		case <-due:
			return true, nil
		case <-ended:
		case <-check.C:
			if o.jobs.Ended(ctx, job.ID) {
				err = loop.ErrJobEnded
			}
		case <-o.loop.Draining().Done():
			err = o.loop.Draining().Err()
		}
		if err != nil {
			if turn == nil {
				<-o.probing
			}
			return false, err
		}
	}
}

// note ends the outage and wakes the calls that wait when the repository answered a call, whose err is nil.
func (o *Outage) note(err error) {
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers++
	if o.cause != nil {
		o.cause = nil
		close(o.ended)
		o.log.Info("the repository answers again")
	}
}

// noteProbe records the result of a probe for the backoff.
func (o *Outage) noteProbe(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(err, loop.ErrJobEnded) { // no call was made
		return
	}
	if o.cause != nil && err != nil {
		o.failedLocked(err, o.failures+1)
	}
}

func (o *Outage) addWaiting(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting += n
}
