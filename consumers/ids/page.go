package ids

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"tutti/consumers/fetch"
	"tutti/consumers/loop"
	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
)

// inFlight is how many ids of one page are processed concurrently.
const inFlight = 32

// page processes one page of ids, until each has an outcome.
type page struct {
	cfg          *Config
	job          core.Job
	organization string // of the list
	queued       bool   // the list is not yet stored as running
	version      core.Version
	number       int
	last         bool
	totals       core.Totals

	mu      sync.Mutex
	open    map[string]error // the ids without an outcome, and why
	settled map[string]idlist.ID
	wentOn  bool // see goOn
}

// newPage returns m's page of a list.
func newPage(cfg *Config, m core.Message, job core.Job, list core.OrganizationRun) *page {
	number := m.Request().Page.Number
	return &page{
		cfg: cfg, job: job, organization: list.Organization, queued: list.State == core.JobQueued, version: job.PageVersion(m.Version()), number: number,
		last: list.LastPage != nil && number >= *list.LastPage,
	}
}

// settle processes the ids of the page and stores their outcomes. failure is set when the repository did not answer for too long, and err is
// loop.ErrJobEnded when the job ended before all ids had an outcome.
func (p *page) settle(ctx context.Context) (failure, err error) {
	ids, err := p.cfg.Pages.IDPage(ctx, p.job.ID, p.organization, p.number)
	if err != nil {
		return nil, err
	}
	p.open, p.settled = make(map[string]error, len(ids)), make(map[string]idlist.ID, len(ids))
	for _, id := range ids {
		if id.Outcome == "" {
			p.open[id.ID] = nil
		}
	}
	if p.queued {
		state.MarkRunning(ctx, p.cfg.Logger, p.job.ID, p.organization, p.update)
	}
	failure, err = p.settleAll(ctx)
	if err == nil || errors.Is(err, loop.ErrJobEnded) {
		if stored := p.store(ctx); stored != nil {
			return nil, stored
		}
	}
	if err == nil && failure == nil {
		err = p.goOn(ctx)
	}
	return failure, err
}

// update changes what is stored of the list.
func (p *page) update(ctx context.Context, change func(*core.OrganizationRun) error) (core.OrganizationRun, error) {
	return p.cfg.Organizations.UpdateOrganization(ctx, p.job.ID, p.organization, change)
}

// settleAll processes the open ids until each has an outcome. Ids that fail again and again while the repository answers get
// Requests of their own, so that no page waits for a single record. failure is set when the repository did not answer for too long.
func (p *page) settleAll(ctx context.Context) (failure, err error) {
	for try := 1; len(p.open) > 0; try++ {
		if err := p.cfg.Loop.AwaitIndex(); err != nil {
			return nil, err
		}
		if p.cfg.Jobs.Ended(ctx, p.job.ID) {
			return nil, loop.ErrJobEnded
		}
		cause, err := p.settleOnce(ctx)
		switch {
		case err != nil || cause == nil:
			return nil, err
		case p.cfg.Outcomes.PausedByRejections():
			try = 0
			continue
		case try < p.cfg.Attempts:
			ended, err := p.cfg.Jobs.Sleep(ctx, p.job.ID, p.cfg.Loop.Delay(try, cause))
			if ended {
				err = loop.ErrJobEnded
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		_, waited, err := p.cfg.Calls.Organizations(ctx, p.job)
		switch {
		case err != nil && (p.cfg.Loop.Stopping(ctx) || errors.Is(err, loop.ErrJobEnded)):
			return nil, err
		case err != nil:
			return err, nil
		case waited: // the repository answers again
			try = 0
		default:
			return nil, p.requestOpen(ctx)
		}
	}
	return nil, nil
}

// settleOnce processes each open id once. cause is the error of one that is still open, nil if none is.
func (p *page) settleOnce(ctx context.Context) (cause, err error) {
	ids := make([]string, 0, len(p.open))
	for id := range p.open {
		ids = append(ids, id)
	}
	calls, callCtx := errgroup.WithContext(ctx)
	calls.SetLimit(inFlight)
	ended := false
	for i, id := range ids {
		if ended = i > 0 && i%inFlight == 0 && p.cfg.Jobs.Ended(ctx, p.job.ID); ended || callCtx.Err() != nil {
			break
		}
		calls.Go(func() error { return p.settleID(callCtx, id) })
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	if ended {
		return nil, loop.ErrJobEnded
	}
	for _, cause = range p.open {
		break
	}
	return cause, nil
}

// settleID processes one id. It returns an error only when the page must end.
func (p *page) settleID(ctx context.Context, id string) error {
	settled := idlist.ID{ID: id}
	organization, result, err := p.cfg.Records.Settle(ctx, p.recordRequest(id), p.version)
	switch {
	case err != nil && p.cfg.Loop.Stopping(ctx):
		return err
	case err != nil && !fetch.Retryable(err):
		return err
	case err != nil:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open[id] = err
		p.totals.Retried++
		return nil
	}
	if p.job.Organization != "" && (result == core.OutcomeMismatch || organization != p.job.Organization) {
		result = core.OutcomeRemoved // the caller of the job may not know which ids other organizations have
	}
	switch result {
	case core.OutcomeIndexed:
		settled.Outcome = idlist.Indexed
	case core.OutcomeRemoved:
		settled.Outcome = idlist.Removed
	case core.OutcomeExcluded:
		settled.Outcome = idlist.Excluded
	case core.OutcomeStale:
		settled.Outcome = idlist.Stale
	case core.OutcomeMismatch:
		settled.Outcome, settled.Hint = idlist.Mismatch, "the record belongs to another organization of the repository; use that one"
	case core.OutcomeRejected:
		if settled, err = p.deadLettered(ctx, id); err != nil {
			return err
		}
	case core.OutcomeRetry:
		return core.NewError(core.CodeInternal, "a record was settled without an outcome")
	}
	p.mu.Lock()
	p.settled[id] = settled
	delete(p.open, id)
	p.mu.Unlock()
	return p.goOn(ctx)
}

// deadLettered returns the outcome of an id with a dead letter.
func (p *page) deadLettered(ctx context.Context, id string) (idlist.ID, error) {
	settled := idlist.ID{ID: id, Outcome: idlist.DeadLettered, Reason: core.ReasonRejected}
	letter, err := p.cfg.Outcomes.FindDeadLetter(ctx, p.organization, id)
	if core.CodeOf(err) == core.CodeNotFound { // of one of several documents, or removed since
		return settled, nil
	}
	settled.Reason, settled.Hint = letter.Reason, letter.Hint
	if letter.EngineReason != "" {
		settled.Reason += ": " + letter.EngineReason
	}
	return settled, err
}

// goOn publishes the next page, and resumes the job if another process had paused it. It is called once an id of the page has an
// outcome: while the repository does not answer, the list does not go on.
func (p *page) goOn(ctx context.Context) error {
	p.mu.Lock()
	first := !p.wentOn
	p.wentOn = true
	p.mu.Unlock()
	if first && p.job.State == core.JobPaused {
		if err := p.cfg.Jobs.Resume(ctx, p.job.ID); err != nil {
			return err
		}
	}
	if !first || p.last {
		return nil
	}
	return p.cfg.publish(ctx, p.job, p.organization, p.number+1)
}

// recordRequest returns the Request for one record of the page.
func (p *page) recordRequest(id string) core.Request {
	req := state.Child(p.job, core.ScopeRecord, p.organization)
	req.RecordID, req.Force = id, false
	return req
}

// requestOpen publishes a record Request, with the run's version, for each open id.
func (p *page) requestOpen(ctx context.Context) error {
	err := p.cfg.Loop.PublishEach(ctx, func(yield func(core.Request) bool) {
		for id := range p.open {
			req := p.recordRequest(id)
			req.AsOf = p.version
			if !yield(req) {
				return
			}
		}
	}, func(req core.Request) {
		p.settled[req.RecordID] = idlist.ID{
			ID: req.RecordID, Outcome: idlist.Retrying, Reason: core.MessageOf(p.open[req.RecordID]),
			Hint: "it is retried until the record is indexed, removed or a dead letter",
		}
	})
	if err == nil {
		clear(p.open)
	}
	return err
}

// store stores the outcomes of the page, each once, and counts all of them.
func (p *page) store(ctx context.Context) error {
	var stored []idlist.ID
	err := p.cfg.Loop.RetryUntilStopped(ctx, "storing the outcomes of ids", func() (err error) {
		stored, err = p.cfg.Pages.UpdateIDPage(ctx, p.job.ID, p.organization, p.number, func(ids []idlist.ID) error {
			for i := range ids {
				if settled, is := p.settled[ids[i].ID]; is && ids[i].Outcome == "" {
					settled.Reason = outcome.Truncate(settled.Reason, idlist.MaxOutcomeText)
					settled.Hint = outcome.Truncate(settled.Hint, idlist.MaxOutcomeText)
					ids[i] = settled
				}
			}
			return nil
		})
		return err
	})
	for _, id := range stored {
		p.count(id.Outcome)
	}
	return err
}

func (p *page) count(o idlist.Outcome) {
	if o.Settled() {
		p.totals.Fetched++
	}
	switch o {
	case idlist.Indexed:
		p.totals.Indexed++
	case idlist.Stale:
		p.totals.Stale++
	case idlist.Removed:
		p.totals.Removed++
	case idlist.Excluded:
		p.totals.Excluded++
	case idlist.DeadLettered:
		p.totals.Rejected++
	case idlist.Mismatch, idlist.Retrying, idlist.Queued, idlist.Skipped:
	}
}

// report adds the page to its organization's run.
func (p *page) report(run *core.OrganizationRun, failure error) {
	if run.State == core.JobQueued {
		run.State = core.JobRunning
	}
	if failure == nil {
		run.EndPage(p.number, p.totals, nil)
		return
	}
	run.Count(p.totals)
	run.State = core.JobFailed
	run.EndPause()
	run.Error = &core.JobError{Code: string(core.CodeOf(failure)), Message: core.MessageOf(failure)}
}
