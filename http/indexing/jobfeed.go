package indexing

import (
	"cmp"
	"sync"
	"time"

	"tutti/internal/base/order"
	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// jobFeed holds the changes of a job that one client has not received yet. It decouples the port, which must never wait, from the
// client, which may be slow: only the newest state of each organization and of the job is kept.
type jobFeed struct {
	// ready is closed when the initial state is complete; changed receives a token for every later change.
	ready   chan struct{}
	changed chan struct{}

	mu      sync.Mutex
	started bool
	job     *core.Job
	// jobRevision is the revision of job, revision the highest of all.
	jobRevision uint64
	revision    uint64
	rows        map[string]feedRow
	// pending are the organizations that were not sent yet; jobPending is set if the job was not.
	pending    map[string]struct{}
	jobPending bool
	// open are the organizations that were sent before they had ended.
	open map[string]struct{}
}

// feedRow is the newest state of an organization.
type feedRow struct {
	revision uint64
	run      *core.OrganizationRun
}

// feedBatch is a set of changes that are sent together.
type feedBatch struct {
	// rows are the organizations that changed, by revision.
	rows []feedRow
	// job is nil while the job's own state is unknown.
	job         *JobSummary
	jobRevision uint64
	// revision is the highest that the batch and those before it hold.
	revision uint64
	// changed is false when nothing was pending.
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
		rows: map[string]feedRow{}, pending: map[string]struct{}{}, open: map[string]struct{}{},
	}
}

// add adds a change. It never blocks and never returns an error.
func (f *jobFeed) add(c core.JobChange) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision = max(f.revision, c.Revision)
	switch {
	case c.Job != nil:
		f.job, f.jobRevision, f.jobPending = c.Job, c.Revision, true
	case c.Run != nil:
		before, known := f.rows[c.Run.Organization]
		if known && sameProgress(before.run, c.Run) { // another organization of its group has changed
			return nil
		}
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

// isReady reports whether the initial state is complete.
func (f *jobFeed) isReady() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

// resume drops the changes up to revision last, which the client has received, and returns the revision after which its ids continue.
// ended is true when the job is final and the client knows it. An id after all revisions of a running job was never issued and is
// ignored.
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

// take returns and clears the pending changes, with the job as of now.
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
	if len(f.rows) > ShownOrganizations {
		b.rows = f.first(b.rows)
	}
	order.Sort(b.rows, func(x, y feedRow) int { return cmp.Compare(x.revision, y.revision) })
	if f.job == nil {
		return b
	}
	var sum jobsum.Sum
	for _, row := range f.rows {
		sum.Add(row.run)
	}
	summary := newJobSummary(*f.job, sum, now)
	b.job = &summary
	return b
}

// first returns those of changed rows that are sent of a job with many organizations: all that were sent before they had ended, and the
// first of the others, so that at most ShownOrganizations are sent that have not ended.
func (f *jobFeed) first(changed []feedRow) []feedRow {
	var sent, others []feedRow
	for _, row := range changed {
		if _, open := f.open[row.run.Organization]; !open {
			others = append(others, row)
			continue
		}
		sent = append(sent, row)
		if row.run.State.Final() {
			delete(f.open, row.run.Organization)
		}
	}
	order.Sort(others, func(a, b feedRow) int { return jobsum.Compare(a.run, b.run) })
	for _, row := range others[:min(len(others), ShownOrganizations)] {
		if !row.run.State.Final() {
			if len(f.open) >= ShownOrganizations {
				continue
			}
			f.open[row.run.Organization] = struct{}{}
		}
		sent = append(sent, row)
	}
	return sent
}

// sameProgress reports whether the bodies of two states of an organization are the same.
func sameProgress(a, b *core.OrganizationRun) bool {
	return a.State == b.State && a.Totals == b.Totals && a.Counted() == b.Counted() && (a.Listed == nil) == (b.Listed == nil) &&
		(a.Listed == nil || *a.Listed == *b.Listed) && (a.Error == nil) == (b.Error == nil) && (a.Error == nil || *a.Error == *b.Error)
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
