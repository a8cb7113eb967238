package ids

import (
	"context"
	"fmt"
	"log/slog"

	"tutti/consumers/loop"
	"tutti/consumers/outage"
	"tutti/consumers/outcome"
	"tutti/consumers/state"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
)

// Records processes single records.
type Records interface {
	// Settle fetches req's record and writes or removes its document with the given version. After an error the record has no final
	// outcome.
	Settle(ctx context.Context, req core.Request, version core.Version) (organization string, o core.Outcome, err error)
}

// Pages stores the pages of ids of jobs.
type Pages interface {
	IDPage(ctx context.Context, jobID, organization string, page int) ([]idlist.ID, error)
	// UpdateIDPage is a compare-and-set that is retried on a conflict.
	UpdateIDPage(ctx context.Context, jobID, organization string, page int, change func([]idlist.ID) error) ([]idlist.ID, error)
}

// Config holds the settings and dependencies of a Worker; all are required.
type Config struct {
	// Repository is the code of the repository that has the records.
	Repository string
	Logger     *slog.Logger
	Loop       *loop.Loop
	Jobs       *state.Jobs
	Progress   *state.Progress
	Calls      *outage.Calls
	Outcomes   *outcome.Outcomes
	// Organizations are the lists of ids of jobs, one for each organization.
	Organizations state.OrganizationRuns
	Pages         Pages
	Records       Records
	Requests      core.Publisher
	// Attempts is how often the ids of a page are processed before those that fail get Requests of their own.
	Attempts int
	// EndJob ends a job if its lists have all ended.
	EndJob func(ctx context.Context, jobID string) error
}

// Worker processes the lists of ids of one repository's jobs.
type Worker struct{ cfg Config }

// New returns a Worker.
func New(cfg Config) *Worker { return &Worker{cfg: cfg} }

// Start publishes the first page of each list of a job, unless its chain of pages was started already. A job without lists fails.
func (w *Worker) Start(ctx context.Context, job core.Job) error {
	lists, err := w.cfg.Organizations.Organizations(ctx, job.ID)
	if err != nil {
		return err
	}
	if len(lists) == 0 {
		return w.cfg.Jobs.Fail(ctx, job.ID, core.NewError(core.CodeNotFound, "the ids of the job are no longer stored"))
	}
	if err := w.cfg.Jobs.Expect(ctx, job.ID, len(lists)); err != nil {
		return err
	}
	for _, list := range lists {
		if begun := list.State.Final() || list.DoneThrough >= 0 || len(list.Ahead) > 0; begun {
			continue
		}
		if err := w.cfg.publish(ctx, job, list.Organization, 0); err != nil {
			return err
		}
	}
	return nil
}

// publish publishes a page of ids. Doing so twice has no effect.
func (c *Config) publish(ctx context.Context, job core.Job, organization string, page int) error {
	req := state.Child(job, core.ScopePage, organization)
	req.Page = &core.Page{IDs: true, Number: page, Offset: page * idlist.IDsPerPage, Limit: idlist.IDsPerPage}
	return c.Loop.RetryUntilStopped(ctx, "publishing a page of ids", func() error { return c.Requests.Publish(ctx, req) })
}

// Settle completes m's page of a list. m may end when it returns nil. The list does not change, so that a page needs no epoch: a page that is
// redelivered is processed again, except for the ids whose outcomes are stored. free frees the slot for another page while this one only waits
// for its report to be stored.
func (w *Worker) Settle(ctx context.Context, m core.Message, job core.Job, list core.OrganizationRun, free func()) error {
	number := m.Request().Page.Number
	if list.PageDone(number) {
		if !list.AllPagesDone() {
			return nil
		}
		free()
		return w.endList(ctx, job, list)
	}
	p := newPage(&w.cfg, m, job, list)
	failure, err := p.settle(ctx)
	if err != nil {
		return err
	}
	free()
	counted := false
	list, err = w.cfg.Progress.Write(ctx, job.ID, list.Organization, failure != nil || p.last, func(list *core.OrganizationRun) {
		if counted = !list.State.Final() && !list.PageDone(number); counted {
			p.report(list, failure)
		}
	})
	switch {
	case err != nil:
		return err
	case !counted && list.State.Final():
		return w.cfg.EndJob(ctx, job.ID)
	case !counted:
		return loop.ErrBusy // another consumer has reported it; should that fail, only this message continues the list
	}
	w.cfg.Outcomes.Ended(core.ScopePage, m.Version(), failure == nil && p.totals.Written())
	if failure != nil {
		w.cfg.Logger.WarnContext(ctx, "ids could not be indexed", "job_id", job.ID, "organization", list.Organization, "page", number, "err", failure)
		return w.cfg.EndJob(ctx, job.ID)
	}
	if list.AllPagesDone() {
		return w.endList(ctx, job, list)
	}
	return nil
}

// endList ends a list whose pages have all ended, and then the job if it was the last one.
func (w *Worker) endList(ctx context.Context, job core.Job, list core.OrganizationRun) error {
	_, err := w.cfg.Organizations.UpdateOrganization(ctx, job.ID, list.Organization, func(list *core.OrganizationRun) error {
		if list.State.Final() {
			return nil
		}
		list.State = core.JobSucceeded
		t := list.Totals
		if left := t.Expected - t.Indexed - t.Stale - t.Removed - t.Excluded; left > t.Rejected {
			list.State, list.Error = core.JobPartial, &core.JobError{Code: core.JobErrorIDsNotIndexed, Message: fmt.Sprintf(
				"%d of %d not indexed; the ids of the job say why (tutti jobs ids %s)", left, t.Expected, job.ID)}
		}
		state.NoteRejected(w.cfg.Repository, list)
		return nil
	})
	if err != nil {
		return err
	}
	return w.cfg.EndJob(ctx, job.ID)
}
