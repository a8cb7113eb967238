package state

import (
	"context"
	"maps"
	"sync"
	"time"

	"tutti/internal/core"
)

// Progress collects the reports of an organization's pages and writes them together, at most once per interval, so that many
// short pages do not cost a durable write each. A page's message is acknowledged after its report is stored, so a report is
// never counted twice or lost.
type Progress struct {
	runs  OrganizationRuns
	every time.Duration

	mu      sync.Mutex
	pending map[string]*pendingReports
}

// pendingReports collects the reports of one organization of one job.
type pendingReports struct {
	written  time.Time
	reports  []*report
	flushNow chan struct{} // closed when a report must not wait for the interval
	flushing bool
}

// idle reports whether l may be dropped: it has no reports, and a new one would not be written too early.
func (l *pendingReports) idle(every time.Duration) bool {
	return len(l.reports) == 0 && time.Since(l.written) > every
}

type report struct {
	apply func(*core.OrganizationRun)
	done  chan struct{}
	run   core.OrganizationRun
	err   error
}

// NewProgress returns a Progress that writes at most once in every interval.
func NewProgress(runs OrganizationRuns, every time.Duration) *Progress {
	return &Progress{runs: runs, every: every, pending: make(map[string]*pendingReports)}
}

// Write applies a change to the organization's run and returns the run as stored. apply may be called several times. An
// urgent change does not wait for the interval to end.
func (p *Progress) Write(ctx context.Context, jobID, organization string, urgent bool, apply func(*core.OrganizationRun)) (core.OrganizationRun, error) {
	key := jobID + "/" + organization
	mine := &report{apply: apply, done: make(chan struct{})}
	p.mu.Lock()
	l := p.pending[key]
	if l == nil {
		maps.DeleteFunc(p.pending, func(_ string, l *pendingReports) bool { return l.idle(p.every) })
		l = &pendingReports{flushNow: make(chan struct{})}
		p.pending[key] = l
	}
	l.reports = append(l.reports, mine)
	leads := len(l.reports) == 1
	if urgent && !l.flushing {
		l.flushing = true
		close(l.flushNow)
	}
	hurry, wait := l.flushNow, time.Until(l.written.Add(p.every))
	p.mu.Unlock()
	if leads {
		p.flush(ctx, jobID, organization, l, hurry, wait)
	}
	<-mine.done
	return mine.run, mine.err
}

// Pending counts the organizations whose reports are held in memory.
func (p *Progress) Pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending)
}

// flush waits for the interval to end, then stores all collected reports and wakes their goroutines.
func (p *Progress) flush(ctx context.Context, jobID, organization string, l *pendingReports, hurry <-chan struct{}, wait time.Duration) {
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-hurry:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	batch := l.reports
	l.reports, l.written = nil, time.Now()
	l.flushing, l.flushNow = false, make(chan struct{})
	p.mu.Unlock()
	run, err := p.runs.UpdateOrganization(ctx, jobID, organization, func(run *core.OrganizationRun) error {
		for _, r := range batch {
			r.apply(run)
		}
		return nil
	})
	for _, r := range batch {
		r.run, r.err = run, err
		close(r.done)
	}
}
