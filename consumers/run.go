package consumers

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"

	"tutti/internal/core"
)

// runsInFlight bounds the runs of a repository that are started concurrently.
const runsInFlight = 8

// busyDelay is the delay before a message is redelivered whose scope, page or record is being processed for another one.
const busyDelay = time.Second

func (r *repository) pullRuns() {
	r.pull(core.ClassRuns, r.Runs, runsInFlight, r.handleRun)
}

// handleRun starts a run: it expands a repository into organizations, or an organization into its first page.
func (r *repository) handleRun(ctx context.Context, m core.Message, _ func()) {
	defer r.c.heartbeat.release(m)
	free, err := r.startRun(ctx, m)
	switch {
	case err == nil && free:
		r.ack(ctx, m)
	case err == nil:
		r.requeue(ctx, m, busyDelay)
	case ctx.Err() != nil || r.c.draining.Err() != nil:
		r.requeue(context.WithoutCancel(ctx), m, 0)
	case errors.Is(err, errSweepEnded):
		r.requeue(ctx, m, 0)
	default:
		r.log.Warn("starting a run", "job_id", m.Request().JobID, "err", err)
		r.requeue(ctx, m, r.retryDelay(m, err))
	}
}

// startRun starts the run of m's Request. It returns false when another job of the same scope is still running.
func (r *repository) startRun(ctx context.Context, m core.Message) (bool, error) {
	req := m.Request()
	job, err := r.jobOf(ctx, m)
	if err != nil || job.State.Final() {
		return true, err
	}
	if req.Scope == job.Scope { // otherwise an organization of a repository's job, which holds the scope already
		free, err := r.acquireScope(ctx, job)
		if err != nil || !free {
			return false, err
		}
	}
	job, err = r.startJob(ctx, job, m.Version())
	if err != nil || job.State.Final() {
		return true, err
	}
	if req.Scope == core.ScopeRepository {
		return true, r.expandRepository(ctx, job)
	}
	return true, r.startOrganization(ctx, job, req)
}

// jobOf returns the job of m's Request, and creates it when a crash prevented that.
func (r *repository) jobOf(ctx context.Context, m core.Message) (core.Job, error) {
	req := m.Request()
	job, err := r.c.deps.Jobs.Get(ctx, req.JobID)
	if core.CodeOf(err) != core.CodeNotFound {
		return job, err
	}
	job = core.Job{
		ID: req.JobID, Scope: req.Scope, Repository: req.Repository, Organization: req.Organization,
		IndexName: r.IndexName, State: core.JobQueued, Cause: req.Cause, Force: req.Force, Rebuild: req.Rebuild,
		RequestID: req.ID, QueuedAt: req.ReceivedAt,
	}
	if job.Scope == core.ScopePage {
		job.Scope = core.ScopeOrganization
	}
	if err := r.c.deps.Jobs.Create(ctx, job); err != nil && core.CodeOf(err) != core.CodeConflict {
		return job, err
	}
	return r.c.deps.Jobs.Get(ctx, req.JobID)
}

// scopeCell names the compare-and-swap cell that holds the id of the job that runs over a scope.
func scopeCell(j core.Job) string {
	enc := base64.RawURLEncoding
	return "running." + enc.EncodeToString([]byte(j.Repository)) + "." + string(j.Scope) + "." +
		enc.EncodeToString([]byte(j.Organization)) + "_"
}

// acquireScope makes job the running job of its scope. It returns false when another job is.
func (r *repository) acquireScope(ctx context.Context, job core.Job) (bool, error) {
	name := scopeCell(job)
	for {
		current, revision, err := r.c.deps.Cells.Cell(ctx, name)
		if err != nil || current == job.ID {
			return err == nil, err
		}
		if current != "" {
			other, err := r.c.deps.Jobs.Get(ctx, current)
			if err != nil && core.CodeOf(err) != core.CodeNotFound {
				return false, err
			}
			if err == nil && !other.State.Final() {
				return false, nil
			}
		}
		err = r.c.deps.Cells.SetCell(ctx, name, job.ID, revision)
		if core.CodeOf(err) == core.CodeConflict {
			continue
		}
		return err == nil, err
	}
}

// startJob sets a queued job to running. Its run has seen the documents with version first or later.
func (r *repository) startJob(ctx context.Context, job core.Job, first core.Version) (core.Job, error) {
	if job.State != core.JobQueued {
		return job, nil
	}
	mark := r.startCheckpoint(ctx)
	return r.c.deps.Jobs.Update(ctx, job.ID, func(j *core.Job) error {
		if j.State != core.JobQueued {
			return nil
		}
		now := time.Now().UTC()
		j.State, j.StartedAt, j.StartVersion, j.StartCheckpoint = core.JobRunning, &now, first, mark
		return nil
	})
}

// startCheckpoint returns the index's checkpoint for a run that starts now, or "" while an older Request is pending or in
// flight: its document may still be written, after the checkpoint and yet with an older version than the run's. The sweep of
// a run without a checkpoint reads every version.
func (r *repository) startCheckpoint(ctx context.Context) string {
	idle, err := r.c.deps.Requests.Idle(ctx, r.Code)
	if err != nil || !idle {
		return ""
	}
	mark, err := r.c.deps.Index.Checkpoint(ctx, r.IndexName)
	if err != nil {
		r.log.Info("the index returned no checkpoint; the sweep will read every version", "err", err)
		return ""
	}
	return mark
}

// expandRepository publishes a run for each organization of the repository.
func (r *repository) expandRepository(ctx context.Context, job core.Job) error {
	organizations, err := r.listOrganizations(ctx, job.ID)
	if err != nil && (ctx.Err() != nil || r.c.draining.Err() != nil) {
		return err
	}
	if err != nil {
		r.log.Warn("listing organizations", "job_id", job.ID, "err", err)
		return r.failJob(ctx, job.ID, err)
	}
	// A process that crashed may have started organizations that are no longer listed: they end like the others.
	begun, err := r.c.deps.Organizations.Organizations(ctx, job.ID)
	if err != nil {
		return err
	}
	for _, run := range begun {
		organizations = append(organizations, run.Organization)
	}
	organizations = r.validOrganizations(organizations)
	count := len(organizations)
	if _, err := r.c.deps.Jobs.Update(ctx, job.ID, func(j *core.Job) error {
		j.ExpectedOrganizations = &count
		return nil
	}); err != nil {
		return err
	}
	for _, organization := range organizations {
		if err := r.publishOrganization(ctx, job, organization); err != nil {
			return err
		}
	}
	return r.endJobIfComplete(ctx, job.ID)
}

func (r *repository) publishOrganization(ctx context.Context, job core.Job, organization string) error {
	run := core.OrganizationRun{Organization: organization, State: core.JobQueued, DoneThrough: -1}
	if _, err := r.c.deps.Organizations.CreateOrganization(ctx, job.ID, run); err != nil {
		return err
	}
	return r.retryUntilStopped(ctx, "publishing an organization", func() error {
		return r.c.deps.Requests.Publish(ctx, r.childRequest(job, core.ScopeOrganization, organization))
	})
}

// listOrganizations returns the upstream's organizations, with retries. Names that cannot be part of a Request are logged
// and left out.
func (r *repository) listOrganizations(ctx context.Context, jobID string) ([]string, error) {
	for try := 1; ; try++ {
		listed, err := r.Upstream.Organizations(ctx)
		if err == nil {
			return r.validOrganizations(listed), nil
		}
		if r.jobEnded(ctx, jobID) {
			return nil, err
		}
		if !retryable(err) || try >= r.c.cfg.PageAttempts {
			return nil, err
		}
		if stop := sleep(r.c.draining, max(retryAfter(err), backoff(try, r.c.cfg.RetryBase, r.c.cfg.RetryMax))); stop != nil {
			return nil, stop
		}
	}
}

func (r *repository) validOrganizations(listed []string) []string {
	out := make([]string, 0, len(listed))
	seen := make(map[string]struct{}, len(listed))
	for _, organization := range listed {
		if err := core.ValidKey("organization", organization); err != nil {
			r.log.Warn("skipping an organization whose name cannot be part of a request", "organization", truncateID(organization), "err", err)
			continue
		}
		if _, twice := seen[organization]; !twice {
			seen[organization] = struct{}{}
			out = append(out, organization)
		}
	}
	return out
}

// startOrganization publishes the first page of an organization, unless its chain of pages was started already.
func (r *repository) startOrganization(ctx context.Context, job core.Job, req core.Request) error {
	if job.Scope == core.ScopeOrganization && job.ExpectedOrganizations == nil {
		one := 1
		if _, err := r.c.deps.Jobs.Update(ctx, job.ID, func(j *core.Job) error {
			j.ExpectedOrganizations = &one
			return nil
		}); err != nil {
			return err
		}
	}
	run := core.OrganizationRun{Organization: req.Organization, State: core.JobQueued, DoneThrough: -1}
	if _, err := r.c.deps.Organizations.CreateOrganization(ctx, job.ID, run); err != nil {
		return err
	}
	run, err := r.c.deps.Organizations.Organization(ctx, job.ID, req.Organization)
	if begun := run.State.Final() || run.DoneThrough >= 0 || len(run.Ahead) > 0 || run.Epoch > 0; err != nil || begun {
		return err
	}
	first := r.childRequest(job, core.ScopePage, req.Organization)
	first.Page = &core.Page{Limit: r.PageSize}
	return r.retryUntilStopped(ctx, "publishing the first page", func() error { return r.c.deps.Requests.Publish(ctx, first) })
}

// childRequest returns a Request that belongs to job.
func (r *repository) childRequest(job core.Job, scope core.Scope, organization string) core.Request {
	return core.Request{
		ID: requestID(), Kind: core.KindIndex, Scope: scope, Repository: r.Code, Organization: organization,
		JobID: job.ID, Cause: job.Cause, Force: job.Force, Rebuild: job.Rebuild, ReceivedAt: time.Now().UTC(),
	}
}

func requestID() string { return uuid.Must(uuid.NewV7()).String() }
