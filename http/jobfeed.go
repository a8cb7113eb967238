package http

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"tutti/internal/core"
)

// jobFeed holds what one client has still to be told of a job. It stands between the port, which must never wait, and
// the client, which may be slow: of what changes twice before the client is told, only the newest state is kept.
type jobFeed struct {
	// ready is closed when everything that was there at the start is known; changed gets a token for every change after.
	ready   chan struct{}
	changed chan struct{}

	mu      sync.Mutex
	started bool
	job     *core.Job
	// jobRevision is that of job, revision the highest of all.
	jobRevision uint64
	revision    uint64
	rows        map[string]feedRow
	// What was not told yet: pending names the rows.
	pending    map[string]struct{}
	jobPending bool
}

// feedRow is the newest state of an organization.
type feedRow struct {
	revision uint64
	run      *core.OrganizationRun
}

// feedBatch is what a client is told at a time.
type feedBatch struct {
	// rows are the organizations that changed, by revision.
	rows []feedRow
	// job is nil when nothing is known of the job itself yet.
	job         *jobSummary
	jobRevision uint64
	// revision is the highest that the batch and those before it hold.
	revision uint64
	// changed is false when nothing was left to tell.
	changed bool
}

// final reports whether the batch ends the stream.
func (b feedBatch) final() bool { return b.job != nil && b.job.State.Final() }

// paused returns why the job waits, "" when it does not.
func (b feedBatch) paused() string {
	if b.job == nil {
		return ""
	}
	return b.job.Paused
}

func newJobFeed() *jobFeed {
	return &jobFeed{
		ready: make(chan struct{}), changed: make(chan struct{}, 1),
		rows: map[string]feedRow{}, pending: map[string]struct{}{},
	}
}

// add takes a change. It never waits and never returns an error.
func (f *jobFeed) add(c core.JobChange) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision = max(f.revision, c.Revision)
	switch {
	case c.Job != nil:
		f.job, f.jobRevision, f.jobPending = c.Job, c.Revision, true
	case c.Run != nil:
		f.rows[c.Run.Organization] = feedRow{revision: c.Revision, run: c.Run}
		f.pending[c.Run.Organization] = struct{}{}
	default:
		if !f.started {
			f.started = true
			close(f.ready)
		}
		return nil
	}
	if f.started {
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
	return nil
}

// isReady reports whether everything that was there at the start is known.
func (f *jobFeed) isReady() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

// resume drops what a client knows that has seen everything up to revision last, and returns the revision from which its
// ids go on. ended is true when nothing is left to tell: the job is final, and its client knows so. An id beyond all
// revisions of a job that goes on was never given, so it counts as none.
func (f *jobFeed) resume(last uint64) (from uint64, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last >= f.revision && f.job != nil && f.job.State.Final() {
		return last, true
	}
	if last > f.revision {
		return 0, false
	}
	for name := range f.pending {
		if f.rows[name].revision <= last {
			delete(f.pending, name)
		}
	}
	return last, false
}

// take returns what the client has still to be told, and the job as of now.
func (f *jobFeed) take(now time.Time) feedBatch {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.changed:
	default:
	}
	b := feedBatch{
		jobRevision: f.jobRevision, revision: f.revision, rows: make([]feedRow, 0, len(f.pending)),
		changed: f.jobPending || len(f.pending) > 0,
	}
	for name := range f.pending {
		b.rows = append(b.rows, f.rows[name])
	}
	clear(f.pending)
	f.jobPending = false
	slices.SortFunc(b.rows, func(x, y feedRow) int { return cmp.Compare(x.revision, y.revision) })
	if f.job == nil {
		return b
	}
	var sum core.JobSum
	for _, row := range f.rows {
		sum.Add(row.run)
	}
	summary := newJobSummary(*f.job, sum, now)
	b.job = &summary
	return b
}

// state returns the last known state of the job.
func (f *jobFeed) state() core.JobState {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.job == nil {
		return ""
	}
	return f.job.State
}
