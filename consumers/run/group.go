package run

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// Bounds of groups.
const (
	// manyGroups is how many groups a job has at least, so that processes share it, unless they would be smaller than minGroup.
	manyGroups = 32
	// minGroup and maxGroup bound the number of organizations of a group. A group is stored as one message, and written at most every
	// ProgressEvery and at its end.
	minGroup = 8
	maxGroup = 100
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

// publishOrganizations creates and publishes the runs of a job's organizations, of which begun exist already: each by itself if they are
// few, otherwise in groups. An organization of a group costs no message and no write of its own, unless it has more than one page.
func (w *runs) publishOrganizations(ctx context.Context, job core.Job, begun []core.OrganizationRun, organizations []string) error {
	alone := make(map[string]struct{})
	next := 0
	var again []int
	err := w.Groups.EachSum(ctx, job.ID, 0, func(c core.SumChange) error {
		if c.Group < 0 {
			alone[c.Organization] = struct{}{}
			return nil
		}
		if next = max(next, c.Group+1); c.Sum.Open() > 0 {
			again = append(again, c.Group)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, number := range again {
		runs, err := w.Groups.Group(ctx, job.ID, number)
		if err != nil {
			return err
		}
		if err := w.publishGroup(ctx, job, number, runs); err != nil {
			return err
		}
	}
	exist := make(map[string]struct{}, len(begun))
	for _, run := range begun {
		exist[run.Organization] = struct{}{}
	}
	var fresh []string
	for _, organization := range organizations {
		if _, is := exist[organization]; !is {
			fresh = append(fresh, organization)
		} else if _, is := alone[organization]; is {
			if err := w.publishOrganization(ctx, job, organization); err != nil {
				return err
			}
		}
	}
	if len(fresh) < w.GroupedFrom {
		for _, organization := range fresh {
			if err := w.publishOrganization(ctx, job, organization); err != nil {
				return err
			}
		}
		return nil
	}
	return w.createGroups(ctx, job, next, fresh)
}

// createGroups creates and publishes groups of organizations, numbered from next.
func (w *runs) createGroups(ctx context.Context, job core.Job, next int, fresh []string) error {
	slices.Sort(fresh)
	size := min(max(len(fresh)/manyGroups, minGroup), maxGroup)
	for names := range slices.Chunk(fresh, size) {
		runs := make([]core.OrganizationRun, len(names))
		for i, name := range names {
			runs[i] = core.OrganizationRun{Organization: name, State: core.JobQueued, DoneThrough: -1}
		}
		created, err := w.Groups.CreateGroup(ctx, job.ID, next, runs)
		if err != nil {
			return err
		}
		if !created { // by another consumer of this message, maybe with other organizations
			return loop.ErrBusy
		}
		if err := w.publishGroup(ctx, job, next, runs); err != nil {
			return err
		}
		next++
	}
	return nil
}

// publishGroup publishes the first pages of the organizations of a group. Doing so twice has no effect.
func (w *runs) publishGroup(ctx context.Context, job core.Job, number int, runs []core.OrganizationRun) error {
	req := state.Child(job, core.ScopePage, runs[0].Organization)
	req.Page = &core.Page{Group: true, Number: number, Limit: w.PageSize}
	return w.loop.RetryUntilStopped(ctx, "publishing a group of organizations", func() error { return w.Requests.Publish(ctx, req) })
}

// group is the processing of one group's message. It collects the states of the organizations and stores them together.
type group struct {
	*pages
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

// member is one organization of a group.
type member struct {
	group        *group
	organization string
}

// memberMessage is the message of a group as that of the first page of one of its organizations.
type memberMessage struct {
	core.Message
	request core.Request
}

// Request implements core.Message.
func (m *memberMessage) Request() core.Request { return m.request }

// settleGroup reads the first page of every organization of m's group that has not ended. An organization that has only this page ends
// within the group; the others continue by themselves. m may end when it returns nil.
func (p *pages) settleGroup(ctx context.Context, m core.Message, job core.Job, free func()) error {
	number := m.Request().Page.Number
	runs, err := p.Groups.Group(ctx, job.ID, number)
	if core.CodeOf(err) == core.CodeNotFound { // the job was removed
		return nil
	}
	if err != nil {
		return err
	}
	if job.State.Final() {
		_, err := p.Groups.UpdateGroup(ctx, job.ID, number, func(runs []core.OrganizationRun) error {
			for i := range runs {
				_ = state.Cancel(&runs[i])
			}
			return nil
		})
		if err == nil {
			err = p.ender.endIfComplete(ctx, job.ID)
		}
		return err
	}
	g := &group{
		pages: p, job: job, number: number, checked: time.Now(), storing: semaphore.NewWeighted(1), dirty: make(chan struct{}, 1),
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
	return p.ender.endIfComplete(ctx, job.ID)
}

// process settles the organizations of the group that have not ended, and returns the first error of any.
func (g *group) process(ctx context.Context, m core.Message, runs []core.OrganizationRun) error {
	alone, err := g.alone(ctx, m)
	if err != nil {
		return err
	}
	rebuild := organizationRun{repository: g.repository, req: m.Request(), job: g.job}
	var lost *pageError
	if err := rebuild.checkRebuild(ctx); err != nil && !errors.As(err, &lost) {
		return err
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
		if g.loop.Stopping(ctx) {
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
	err := g.Groups.EachSum(ctx, g.job.ID, 0, func(c core.SumChange) error {
		if c.Group < 0 {
			alone[c.Organization] = struct{}{}
		}
		return nil
	})
	return alone, err
}

// disband stores every organization of the group that has not ended by itself, and publishes its first page.
func (g *group) disband(ctx context.Context, m core.Message, runs []core.OrganizationRun) error {
	g.log.InfoContext(ctx, "organizations of a group that did not end are processed one by one", "job_id", g.job.ID, "attempts", loop.Attempts(m))
	for _, run := range runs {
		if run.State.Final() && !run.Moved {
			continue
		}
		g.runs[run.Organization] = &run
		alone := core.OrganizationRun{Organization: run.Organization, State: core.JobQueued, DoneThrough: -1}
		if _, err := g.Organizations.CreateOrganization(ctx, g.job.ID, alone); err != nil {
			return err
		}
		own, err := g.Organizations.Organization(ctx, g.job.ID, run.Organization)
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
		if err := g.publishFirst(ctx, g.job, run.Organization); err != nil {
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
		return g.pages.settle(ctx, own, func() {})
	}
	w := newPageWork(g.repository, own, g.job, *first.Page, run)
	w.member = &member{group: g, organization: run.Organization}
	failure := lost
	if lost == nil {
		if err := w.run(ctx); err != nil && !errors.As(err, &failure) {
			return err
		}
	}
	if w.member != nil && (len(w.late) > 0 || failure == nil && (w.shifted || w.repeats)) {
		if err := w.leaveGroup(ctx); err != nil {
			return err
		}
	}
	if w.member == nil {
		return g.conclude(ctx, w, failure)
	}
	return g.end(ctx, w, failure)
}

// end ends an organization that had one page.
func (g *group) end(ctx context.Context, w *pageWork, failure *pageError) error {
	_, err := w.update(ctx, func(run *core.OrganizationRun) error {
		g.report(w, run, failure)
		if failure == nil {
			run.State, run.IDs, run.InvalidIDs = core.JobSucceeded, state.PackIDs(w.hashes), state.PackIDs(w.notValid)
			state.NoteRejected(g.Repository.Code, run)
		}
		return nil
	})
	if err != nil {
		return err
	}
	g.Outcomes.Ended(core.ScopePage, w.msg.Version(), failure == nil && (w.totals.Rejected == 0 || w.totals.Written()))
	if failure == nil {
		return nil
	}
	g.log.WarnContext(ctx, "organization could not be read", "job_id", g.job.ID, "organization", w.req.Organization, "page", 0, "err", failure.cause)
	if !w.paused {
		return nil
	}
	if err := g.store(ctx); err != nil {
		return err
	}
	return g.jobs.Resume(ctx, g.job.ID)
}

// fitsMember reports whether the only page of an organization needs no note: what its end and the sweep read of it is known, or stored
// with the group.
func (w *pageWork) fitsMember(pass *pagePass) bool {
	if w.compares(w.job) && len(pass.hashes) > maxMemberIDs || len(pass.notValid) > maxMemberIDs {
		return false
	}
	distinct := slices.Clone(pass.hashes)
	slices.Sort(distinct)
	return !w.NonOverlapping || len(slices.Compact(distinct)) == pass.info.Total
}

// leaveGroup stores the organization by itself, because there is more to it than one page.
func (w *pageWork) leaveGroup(ctx context.Context) error {
	run := core.OrganizationRun{Organization: w.req.Organization, State: core.JobRunning, DoneThrough: -1}
	var created bool
	err := w.loop.RetryUntilStopped(ctx, "storing an organization of a group by itself", func() (err error) {
		created, err = w.Organizations.CreateOrganization(ctx, w.job.ID, run)
		return err
	})
	if err == nil && !created { // by another consumer of the group; the redelivered message finds it
		err = loop.ErrBusy
	}
	if err == nil {
		err = w.noteHeld(ctx)
	}
	if err != nil {
		return err
	}
	_, err = w.update(ctx, func(run *core.OrganizationRun) error {
		run.Moved = true
		return nil
	})
	w.member = nil
	return err
}

// update is organizationRun.update for an organization of a group: the group stores it.
func (m *member) update(change func(*core.OrganizationRun) error) (core.OrganizationRun, error) {
	return m.group.update(m.organization, change)
}

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
	_, err := g.Groups.UpdateGroup(ctx, g.job.ID, g.number, func(runs []core.OrganizationRun) error {
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
		due := time.NewTimer(g.ProgressEvery)
		select {
		case <-due.C:
		case <-done:
			due.Stop()
			return
		}
		if err := g.store(ctx); err != nil {
			g.log.InfoContext(ctx, "storing a group of organizations; its end retries", "job_id", g.job.ID, "err", err)
		}
	}
}

// jobEnded reports whether the group's job is known to be final. It reads the job at most every ProgressEvery.
func (g *group) jobEnded(ctx context.Context) bool {
	g.mu.Lock()
	now := time.Now()
	due := !g.ended && now.Sub(g.checked) > g.ProgressEvery
	if due {
		g.checked = now
	}
	ended := g.ended
	g.mu.Unlock()
	if !due {
		return ended
	}
	ended = g.jobs.Ended(ctx, g.job.ID)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = g.ended || ended
	return g.ended
}
