package page

import (
	"context"
	"strconv"
	"sync"

	"tutti/consumers/loop"
	"tutti/consumers/state"
	"tutti/internal/core"
)

// pagesPerCall is how many pages are in flight for each call to the upstream that may be: those that are not being read wait
// for the outcomes of their documents.
const pagesPerCall = 4

// Worker processes the pages of one repository's runs.
type Worker struct {
	cfg      Config
	inFlight sync.Map // the keys of the pages in flight
}

// New returns a Worker.
func New(cfg Config) *Worker { return &Worker{cfg: cfg} }

// Pull pulls pages from src until the process stops.
func (p *Worker) Pull(src loop.Source) {
	p.cfg.Loop.PullQuarantined(core.ClassPages, src, pagesPerCall*p.cfg.Concurrency, p.handle)
}

// InFlight counts the pages in flight.
func (p *Worker) InFlight() int {
	n := 0
	for range p.inFlight.Range {
		n++
	}
	return n
}

// PublishFirst publishes the first page of an organization's list, which is read again from epoch on, 0 for the first time. Doing so twice
// has no effect.
func (p *Worker) PublishFirst(ctx context.Context, job core.Job, organization string, epoch int) error {
	first := state.Child(job, core.ScopePage, organization)
	first.Page = &core.Page{Epoch: epoch, Limit: p.cfg.Sizes.Largest}
	return p.cfg.Loop.RetryUntilStopped(ctx, "publishing the first page", func() error { return p.cfg.Requests.Publish(ctx, first) })
}

// Forget removes the stored ids of the pages of an organization's list, once it has ended. What cannot be removed now is
// removed with the job.
func (p *Worker) Forget(ctx context.Context, job core.Job, run core.OrganizationRun) {
	if job.Scope == core.ScopeRepository && (state.Compares(job, p.cfg.Split != nil) || run.Invalid) { // the sweep at the job's end reads them
		return
	}
	state.ForgetPages(ctx, p.cfg.Notes, p.cfg.Logger, job.ID, run.Organization)
}

// handle reads one page, publishes the next, writes the documents and ends m after their outcomes. free frees the slot
// for another page while this one only waits for its report to be stored.
func (p *Worker) handle(ctx context.Context, m core.Message, free func()) {
	req := m.Request()
	key := req.JobID + "/" + req.Organization + "/" + strconv.Itoa(req.Page.Number)
	if req.Page.Group {
		key += "/group"
	}
	if _, busy := p.inFlight.LoadOrStore(key, nil); busy {
		p.cfg.Loop.Do(ctx, m, func(context.Context) error { return loop.ErrBusy })
		return
	}
	defer p.inFlight.Delete(key)
	p.cfg.Loop.Do(ctx, m, func(ctx context.Context) error { return p.settle(ctx, m, free) })
}

// settle completes m's page. m may end when it returns nil.
func (p *Worker) settle(ctx context.Context, m core.Message, free func()) error {
	req := m.Request()
	job, err := p.cfg.Jobs.Of(ctx, m)
	if err != nil {
		return err
	}
	if req.Page.Group {
		return p.settleGroup(ctx, m, job, free)
	}
	run, err := p.cfg.Organizations.Organization(ctx, job.ID, req.Organization)
	if core.CodeOf(err) == core.CodeNotFound {
		run = core.OrganizationRun{Organization: req.Organization, State: core.JobRunning, DoneThrough: req.Page.Number - 1}
		_, err = p.cfg.Organizations.CreateOrganization(ctx, job.ID, run)
	}
	if err != nil {
		return err
	}
	if job.State.Final() && !run.State.Final() { // cancelled or failed before the organization was
		_, err := p.cfg.Organizations.UpdateOrganization(ctx, job.ID, req.Organization, state.Cancel)
		return err
	}
	if run.State.Final() {
		free()
		return p.cfg.EndJob(ctx, job.ID)
	}
	if req.Page.IDs {
		return p.cfg.IDs.Settle(ctx, m, job, run, free)
	}
	page, run, todo, err := p.admit(ctx, m, run)
	if err != nil {
		return err
	}
	switch {
	case todo:
		return p.process(ctx, m, job, page, run, free)
	case run.AllPagesDone():
		free()
		return p.cfg.EndList(ctx, job, run)
	case run.ListEpoch > page.Epoch && run.DoneThrough < 0:
		return p.PublishFirst(ctx, job, run.Organization, run.Epoch) // the process that restarted the list may have crashed before it published the first page
	default: // the page has ended, or the chain was restarted before it
		return nil
	}
}

// admit reports whether m's page has to be read, and returns the run after a change. When a page was in flight when a
// process crashed, its chain is reread from this page on: rows may have moved between it and its successor since. The epoch
// voids the pages of the old chain; the page from which the chain restarts carries the older epoch itself.
func (p *Worker) admit(ctx context.Context, m core.Message, run core.OrganizationRun) (core.Page, core.OrganizationRun, bool, error) {
	page := *m.Request().Page
	isDue := func(run *core.OrganizationRun) bool {
		return !run.IsVoid(page.Number, page.Epoch) && !run.PageDone(page.Number)
	}
	if !isDue(&run) {
		return page, run, false, nil
	}
	if page.Epoch == run.Epoch && loop.Attempts(m) == 0 {
		return page, run, true, nil
	}
	todo := false
	run, err := p.cfg.Organizations.UpdateOrganization(ctx, m.Request().JobID, m.Request().Organization,
		func(run *core.OrganizationRun) error {
			if todo = isDue(run); todo {
				run.RestartFrom(page.Number)
			}
			return nil
		})
	page.Epoch = run.Epoch
	return page, run, todo, err
}
