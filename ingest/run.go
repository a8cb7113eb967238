package ingest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tutti/internal/base/keylock"
	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// settleTimeout limits the writes after a Request has been published or rejected, which do not end with the caller's
// ctx.
const settleTimeout = 5 * time.Second

// maxCellConflicts is how many compare-and-swaps a trigger may lose before it returns CodeOverloaded.
const maxCellConflicts = 100

// errNotJoinable ends an update of a job that no trigger may join any more.
var errNotJoinable = errors.New("the job can no longer be joined")

// runs queues jobs, one for each scope and its flags.
type runs struct {
	*sender

	jobs       JobStore
	cells      core.Cells
	scopeLocks keylock.Locks
}

// Run requests that a whole organization or repository is indexed and returns the job that does it: a queued, not yet
// started job of the same scope and flags if there is one, else a new one (CONTRACT section 1). It returns nil only
// after the queue has stored the job's Request. Errors: CodeInvalid, CodeNotFound for an unknown repository,
// CodeOverloaded or CodeUnavailable from the queue.
func (s *runs) Run(
	ctx context.Context, scope core.Scope, repository, organization string, flags core.RunFlags,
	cause core.Cause, requestID string,
) (core.Job, error) {
	repo, err := s.repository(repository)
	if err != nil {
		return core.Job{}, err
	}
	if err := validRun(scope, organization, flags); err != nil {
		return core.Job{}, err
	}
	if flags.Rebuild {
		if err := core.CheckOwnIndex(slices.Collect(maps.Values(s.repositories)), repository); err != nil {
			return core.Job{}, err
		}
	}
	s.receive(repository, cause, core.KindIndex)
	r := core.Request{
		ID: orNewID(requestID), Kind: core.KindIndex, Scope: scope, Repository: repository, Organization: organization,
		Cause: cause, Force: flags.Force, Rebuild: flags.Rebuild, Difference: flags.Difference, ReceivedAt: s.now(),
	}
	return s.reserve(ctx, repo, r, cellName(r), 0)
}

// differenceInterval is the shortest interval between the starts of two runs of RunDifference of one organization.
const differenceInterval = time.Minute

// RunDifference requests that the difference of an organization is indexed, at most once a minute: it returns the job of an earlier call
// that has not started, or a new one that starts at once or a minute after the last one. Runs of Run are neither joined nor counted.
// Errors are those of Run.
func (s *runs) RunDifference(ctx context.Context, repository, organization string, cause core.Cause, requestID string) (core.Job, error) {
	repo, err := s.repository(repository)
	if err == nil {
		err = validRun(core.ScopeOrganization, organization, core.RunFlags{Difference: true})
	}
	if err != nil {
		return core.Job{}, err
	}
	r := core.Request{
		ID: orNewID(requestID), Kind: core.KindIndex, Scope: core.ScopeOrganization, Repository: repository, Organization: organization,
		Cause: cause, Difference: true, ReceivedAt: s.now(),
	}
	return s.reserve(ctx, repo, r, core.SpacedCell+cellName(r), differenceInterval)
}

// reserve returns the job in a cell if it may be joined, or queues a new one, which starts at least interval after the start of that in
// the cell.
func (s *runs) reserve(ctx context.Context, repo core.Repository, r core.Request, cell string, interval time.Duration) (core.Job, error) {
	unlock, err := s.scopeLocks.Lock(ctx, cell)
	if err != nil {
		return core.Job{}, core.WrapError(core.CodeUnavailable, "the trigger was cancelled", err)
	}
	defer unlock()
	return s.joinOrQueue(ctx, repo, r, cell, interval)
}

func validRun(scope core.Scope, organization string, flags core.RunFlags) error {
	if flags.Rebuild && scope != core.ScopeRepository {
		return core.NewError(core.CodeInvalid, "only whole repositories can be rebuilt")
	}
	if flags.Rebuild && flags.Difference {
		return core.NewError(core.CodeInvalid, "a rebuild writes every record: it cannot be limited to the difference")
	}
	switch scope {
	case core.ScopeOrganization:
		return core.ValidID("organization", organization)
	case core.ScopeRepository:
		if organization != "" {
			return core.NewError(core.CodeInvalid, "a run of a repository must not name an organization")
		}
		return nil
	case core.ScopeRecord, core.ScopeRecords, core.ScopePage, core.ScopeIDs, core.ScopeRetry:
		return core.NewError(core.CodeInvalid, fmt.Sprintf("scope %q is not a run", scope))
	default:
		return core.NewError(core.CodeInvalid, fmt.Sprintf("unknown scope %q", scope))
	}
}

// joinOrQueue returns the queued job in the cell, or reserves the cell and queues a new one.
func (s *runs) joinOrQueue(
	ctx context.Context, repo core.Repository, r core.Request, cell string, interval time.Duration,
) (core.Job, error) {
	var reserved string // a job id that another trigger reserved and has not created yet
	var since time.Time
	for losses := 0; losses < maxCellConflicts; {
		id, revision, err := s.cells.Cell(ctx, cell)
		if err != nil {
			return core.Job{}, fmt.Errorf("reading the cell of queued jobs: %w", err)
		}
		job, state, err := s.join(ctx, id)
		if err != nil {
			return core.Job{}, err
		}
		if state == cellJoined {
			return job, nil
		}
		if state == cellReserved {
			if id != reserved {
				reserved, since = id, s.cfg.Now()
			}
			if s.cfg.Now().Sub(since) < s.cfg.JoinWait && !s.abandoned(id) {
				if err := retry.Sleep(ctx, s.cfg.JoinPoll); err != nil {
					return core.Job{}, core.WrapError(core.CodeUnavailable, "the trigger was cancelled", err)
				}
				continue
			}
		}
		if interval > 0 && job.StartedAt != nil {
			r.NotBefore = job.StartedAt.Add(interval)
		}
		r.JobID = newID()
		switch err := s.cells.SetCell(ctx, cell, r.JobID, revision); {
		case err == nil:
			return s.queue(ctx, repo, r, cell)
		case core.CodeOf(err) != core.CodeConflict:
			return core.Job{}, fmt.Errorf("reserving the cell of queued jobs: %w", err)
		}
		losses++
	}
	return core.Job{}, core.NewError(core.CodeOverloaded, "too many concurrent triggers of one scope")
}

// abandoned reports whether the id of a missing job is older than the time its creator needs to create the job: the
// job was pruned, or the process that reserved the cell died. An id without a time (RFC 9562, 5.7) is not abandoned.
func (s *runs) abandoned(id string) bool {
	parsed, err := uuid.Parse(id)
	if err != nil || parsed.Version() != 7 {
		return false
	}
	made := time.Unix(parsed.Time().UnixTime())
	return s.cfg.Now().Sub(made) > s.cfg.JoinWait
}

// cellState is what join found in a cell.
type cellState int

const (
	// cellFree: empty, or a job that is no longer joinable; a new job may be queued.
	cellFree cellState = iota
	// cellJoined: a job that is returned.
	cellJoined
	// cellReserved: the id of a job that does not exist yet.
	cellReserved
)

// join returns a job and, if it is joinable, increments Job.Returned. This change and those of a job's state are all
// compare-and-swap, so a returned run can only start, and a returned retry only end, after it was returned.
func (s *runs) join(ctx context.Context, id string) (core.Job, cellState, error) {
	if id == "" {
		return core.Job{}, cellFree, nil
	}
	joinable := true
	var ended core.Job
	job, err := s.jobs.Update(ctx, id, func(j *core.Job) error {
		if joinable = j.Joinable(); !joinable {
			ended = *j
			return errNotJoinable
		}
		j.Returned++
		return nil
	})
	switch {
	case err == nil:
		return job, cellJoined, nil
	case !joinable:
		return ended, cellFree, nil
	case core.CodeOf(err) == core.CodeNotFound:
		return core.Job{}, cellReserved, nil
	default:
		return core.Job{}, cellFree, fmt.Errorf("joining a queued job: %w", err)
	}
}

// queue publishes the Request of a new job and then creates the job, so that a crash between the two leaves a Request
// whose job its consumer creates, and never a job without a Request (DESIGN, Data).
func (s *runs) queue(ctx context.Context, repo core.Repository, r core.Request, cell string) (core.Job, error) {
	publishErr := s.publish(ctx, r)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if publishErr != nil {
		s.release(ctx, cell, r.JobID)
		return core.Job{}, publishErr
	}
	return s.createJob(ctx, repo, r), nil
}

// createJob creates the job of a Request that is stored.
func (s *runs) createJob(ctx context.Context, repo core.Repository, r core.Request) core.Job {
	job := core.NewJob(r, repo.IndexName)
	if err := s.jobs.Create(ctx, job); err != nil && core.CodeOf(err) != core.CodeConflict {
		// The Request is stored, so the trigger is accepted: the consumer creates the job from it.
		s.cfg.Logger.WarnContext(ctx, "creating a job failed; its consumer creates it",
			"repository", r.Repository, "job_id", r.JobID, "request_id", r.ID, "err", err)
	}
	return job
}

// release empties a cell whose Request was not stored, so that the next trigger need not wait for its job. If that
// fails, that trigger waits.
func (s *runs) release(ctx context.Context, cell, jobID string) {
	id, revision, err := s.cells.Cell(ctx, cell)
	if err == nil && id == jobID {
		err = s.cells.SetCell(ctx, cell, "", revision)
	}
	if err != nil && core.CodeOf(err) != core.CodeConflict {
		s.cfg.Logger.WarnContext(ctx, "releasing the cell of a job that was not queued", "job_id", jobID, "err", err)
	}
}

// cellName returns the name of the cell of the job of r's scope, filter and flags that triggers may join. Parts are base64url, an empty one
// is "=", so that names of cells are unique.
func cellName(r core.Request) string {
	flags := ""
	if r.Force {
		flags += "f"
	}
	if r.Rebuild {
		flags += "r"
	}
	if r.Difference {
		flags += "d"
	}
	parts := []string{"queued"}
	of := []string{r.Repository, string(r.Scope), r.Organization, flags}
	if r.Scope == core.ScopeRetry {
		if of[2] = r.Reason; r.Organization != "" {
			of = append(of, r.Organization)
		}
	}
	for _, p := range of {
		if p == "" {
			parts = append(parts, "=")
			continue
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString([]byte(p)))
	}
	return strings.Join(parts, ".")
}
