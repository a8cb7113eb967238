package page

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// Bounds of groups.
const (
	// membersInFlight is how many organizations of a group wait for their documents at the same time.
	membersInFlight = 32
	// memberRows is how many rows an organization of a group is expected to have.
	memberRows = 8
	// groupAttempts is how often a group is processed. Then its organizations continue by themselves: one of them may end the process.
	groupAttempts = 2
	// maxMemberIDs is how many ids of an organization are stored with its group for the sweep: all of them in a job that compares, those
	// that its list shows as not to be indexed in any job.
	maxMemberIDs = 64
)

// group is the processing of one group's message. It collects the states of the organizations and stores them together.
type group struct {
	worker *Worker
	log    *slog.Logger // with the job
	job    core.Job
	number int
	// storing is held during a write; dirty receives a token for every change.
	storing *semaphore.Weighted
	dirty   chan struct{}

	mu sync.Mutex
	// runs are the organizations as this process has them, changed those of them that are not stored as they are.
	runs    map[string]*core.OrganizationRun
	changed map[string]struct{}
	// checked is when the job was last read, ended whether it had ended then.
	checked time.Time
	ended   bool
}

// member is the place of an organization in its group.
type member struct{ group *group }

// memberMessage is the message of a group as that of the first page of one of its organizations.
type memberMessage struct {
	core.Message
	request core.Request
}

// Request implements core.Message.
func (m *memberMessage) Request() core.Request { return m.request }

// settleGroup reads the first page of every organization of m's group that has not ended. An organization that has only this page ends
// within the group; the others continue by themselves. m may end when it returns nil.
func (p *Worker) settleGroup(ctx context.Context, m core.Message, job core.Job, free func()) error {
	number := m.Request().Page.Number
	runs, err := p.cfg.Groups.Group(ctx, job.ID, number)
	if core.CodeOf(err) == core.CodeNotFound { // the job was removed
		return nil
	}
	if err != nil {
		return err
	}
	if job.State.Final() {
		_, err := p.cfg.Groups.UpdateGroup(ctx, job.ID, number, func(runs []core.OrganizationRun) error {
			for i := range runs {
				_ = state.Cancel(&runs[i])
			}
			return nil
		})
		if err == nil {
			err = p.cfg.EndJob(ctx, job.ID)
		}
		return err
	}
	g := &group{
		worker: p, log: p.cfg.Logger.With("job_id", job.ID), job: job, number: number, checked: time.Now(), storing: semaphore.NewWeighted(1), dirty: make(chan struct{}, 1),
		runs: make(map[string]*core.OrganizationRun, len(runs)), changed: make(map[string]struct{}),
	}
	if loop.Attempts(m) >= groupAttempts {
		err = g.disband(ctx, m, runs)
	} else {
		err = g.process(ctx, m, runs)
	}
	if storeErr := g.store(ctx); storeErr != nil || err != nil {
		return errors.Join(storeErr, err)
	}
	free()
	return p.cfg.EndJob(ctx, job.ID)
}

// process settles the organizations of the group that have not ended, and returns the first error of any.
func (g *group) process(ctx context.Context, m core.Message, runs []core.OrganizationRun) error {
	alone, err := g.alone(ctx, m)
	if err != nil {
		return err
	}
	var lost *pageError
	if g.job.Rebuild {
		if err := g.worker.cfg.checkRebuild(ctx, g.job); err != nil && !errors.As(err, &lost) {
			return err
		}
	}
	stored := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(stored)
		g.storeUntil(ctx, done)
	}()
	var calls errgroup.Group
	calls.SetLimit(membersInFlight)
	for i := range runs {
		run := runs[i]
		if run.State.Final() && !run.Moved {
			continue
		}
		if _, is := alone[run.Organization]; is {
			run.Moved = true
		}
		g.mu.Lock()
		g.runs[run.Organization] = &run
		g.mu.Unlock()
		if g.worker.cfg.Loop.Stopping(ctx) {
			err = loop.ErrBusy // requeued at once, as the process stops
			break
		}
		calls.Go(func() error { return g.settle(ctx, m, run, lost) })
	}
	err = errors.Join(err, calls.Wait())
	close(done)
	<-stored
	return err
}

// alone returns the organizations that are stored by themselves if an earlier delivery of m may have stored some.
func (g *group) alone(ctx context.Context, m core.Message) (map[string]struct{}, error) {
	if loop.Attempts(m) == 0 {
		return nil, nil
	}
	alone := make(map[string]struct{})
	err := g.worker.cfg.Groups.EachSum(ctx, g.job.ID, 0, func(c jobsum.Change) error {
		if c.Group < 0 {
			alone[c.Organization] = struct{}{}
		}
		return nil
	})
	return alone, err
}

// disband stores every organization of the group that has not ended by itself, and publishes its first page.
func (g *group) disband(ctx context.Context, m core.Message, runs []core.OrganizationRun) error {
	g.log.InfoContext(ctx, "organizations of a group that did not end are processed one by one", "attempts", loop.Attempts(m))
	for _, run := range runs {
		if run.State.Final() && !run.Moved {
			continue
		}
		g.runs[run.Organization] = &run
		alone := core.OrganizationRun{Organization: run.Organization, State: core.JobQueued, DoneThrough: -1}
		if _, err := g.worker.cfg.Organizations.CreateOrganization(ctx, g.job.ID, alone); err != nil {
			return err
		}
		own, err := g.worker.cfg.Organizations.Organization(ctx, g.job.ID, run.Organization)
		if err != nil {
			return err
		}
		if _, err := g.update(run.Organization, func(run *core.OrganizationRun) error { run.Moved = true; return nil }); err != nil {
			return err
		}
		// The first page was a part of the group's message, also if a later page has ended, or the chain was restarted.
		if own.State.Final() || own.DoneThrough >= 0 {
			continue
		}
		if err := g.worker.PublishFirst(ctx, g.job, run.Organization, 0); err != nil {
			return err
		}
	}
	return nil
}

// settle settles one organization. lost is why the job's index is lost, nil if it is not.
func (g *group) settle(ctx context.Context, m core.Message, run core.OrganizationRun, lost *pageError) error {
	first := m.Request()
	first.Organization, first.Page = run.Organization, &core.Page{Limit: first.Page.Limit}
	own := &memberMessage{Message: m, request: first}
	if run.Moved {
		_, _ = g.update(run.Organization, func(run *core.OrganizationRun) error { run.Moved = true; return nil })
		return g.worker.settle(ctx, own, func() {})
	}
	w := newWork(&g.worker.cfg, own, g.job, *first.Page, run, &member{group: g})
	failure := lost
	if lost == nil {
		if err := w.run(ctx); err != nil && !errors.As(err, &failure) {
			return err
		}
	}
	if w.organization.member != nil && (len(w.ledger.late) > 0 || failure == nil && (w.listing.shifted || w.listing.repeats)) {
		if err := w.leaveGroup(ctx); err != nil {
			return err
		}
	}
	if w.organization.member == nil {
		return g.worker.conclude(ctx, w, failure)
	}
	return g.end(ctx, w, failure)
}

// end ends an organization that had one page.
func (g *group) end(ctx context.Context, w *work, failure *pageError) error {
	_, err := w.organization.update(ctx, func(run *core.OrganizationRun) error {
		w.report(run, failure)
		if failure == nil {
			run.State, run.IDs, run.InvalidIDs = core.JobSucceeded, state.PackIDs(w.listing.hashes), state.PackIDs(w.listing.invalid)
			state.NoteRejected(g.worker.cfg.Repository.Code, run)
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.ended(failure)
	if failure == nil {
		return nil
	}
	w.log.WarnContext(ctx, "organization could not be read", "err", failure.cause)
	if !w.organization.paused {
		return nil
	}
	if err := g.store(ctx); err != nil {
		return err
	}
	return g.worker.cfg.Jobs.Resume(ctx, g.job.ID)
}

// fitsMember reports whether the only page of an organization needs no note: what its end and the sweep read of it is known, or stored
// with the group.
func (w *work) fitsMember(p *pass) bool {
	if state.Compares(w.job, w.cfg.Split != nil) && len(p.hashes) > maxMemberIDs || len(p.invalid) > maxMemberIDs {
		return false
	}
	distinct := slices.Clone(p.hashes)
	slices.Sort(distinct)
	return !w.cfg.Sizes.NonOverlapping || len(slices.Compact(distinct)) == p.info.Total
}

// leaveGroup stores the organization by itself, because there is more to it than one page.
func (w *work) leaveGroup(ctx context.Context) error {
	run := core.OrganizationRun{Organization: w.organization.name, State: core.JobRunning, DoneThrough: -1}
	var created bool
	err := w.cfg.Loop.RetryUntilStopped(ctx, "storing an organization of a group by itself", func() (err error) {
		created, err = w.cfg.Organizations.CreateOrganization(ctx, w.job.ID, run)
		return err
	})
	if err == nil && !created { // by another consumer of the group; the redelivered message finds it
		err = loop.ErrBusy
	}
	if err == nil {
		err = w.store(ctx, w.listing.hashes, len(w.listing.invalid) > 0)
	}
	if err != nil {
		return err
	}
	_, err = w.organization.update(ctx, func(run *core.OrganizationRun) error {
		run.Moved = true
		return nil
	})
	w.organization.member = nil
	return err
}

// update changes an organization of the group as it will be stored.
func (g *group) update(organization string, change func(*core.OrganizationRun) error) (core.OrganizationRun, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	run := *g.runs[organization]
	if err := change(&run); err != nil {
		return run, err
	}
	g.runs[organization] = &run
	g.changed[organization] = struct{}{}
	select {
	case g.dirty <- struct{}{}:
	default:
	}
	return run, nil
}

// store stores the organizations that have changed. One that has ended in the store, by a cancel or another consumer, stays as it is;
// that it is stored by itself counts always.
func (g *group) store(ctx context.Context) error {
	if err := g.storing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer g.storing.Release(1)
	g.mu.Lock()
	changed := make(map[string]core.OrganizationRun, len(g.changed))
	for organization := range g.changed {
		changed[organization] = *g.runs[organization]
	}
	clear(g.changed)
	g.mu.Unlock()
	if len(changed) == 0 {
		return nil
	}
	_, err := g.worker.cfg.Groups.UpdateGroup(ctx, g.job.ID, g.number, func(runs []core.OrganizationRun) error {
		for i := range runs {
			run, is := changed[runs[i].Organization]
			switch {
			case !is:
			case run.Moved:
				runs[i].Moved = true
			case !runs[i].State.Final():
				runs[i] = run
			}
		}
		return nil
	})
	if err != nil {
		g.mu.Lock()
		for organization := range maps.Keys(changed) {
			g.changed[organization] = struct{}{}
		}
		g.mu.Unlock()
	}
	return err
}

// storeUntil stores what has changed, at most every ProgressEvery, until done is closed. What could not be stored is stored later.
func (g *group) storeUntil(ctx context.Context, done <-chan struct{}) {
	for {
		select {
		case <-g.dirty:
		case <-done:
			return
		}
		due := time.NewTimer(g.worker.cfg.ProgressEvery)
		select {
		case <-due.C:
		case <-done:
			due.Stop()
			return
		}
		if err := g.store(ctx); err != nil {
			g.log.InfoContext(ctx, "storing a group of organizations; its end retries", "err", err)
		}
	}
}

// jobEnded reports whether the group's job is known to be final. It reads the job at most every ProgressEvery.
func (g *group) jobEnded(ctx context.Context) bool {
	g.mu.Lock()
	now := time.Now()
	due := !g.ended && now.Sub(g.checked) > g.worker.cfg.ProgressEvery
	if due {
		g.checked = now
	}
	ended := g.ended
	g.mu.Unlock()
	if !due {
		return ended
	}
	ended = g.worker.cfg.Jobs.Ended(ctx, g.job.ID)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = g.ended || ended
	return g.ended
}
