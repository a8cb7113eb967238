package ingest

import (
	"context"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/core/idlist"
)

// Lists stores the ids of jobs.
type Lists interface {
	// Open returns the number of jobs over lists of a repository that have not ended.
	Open(ctx context.Context, repository string) (int, error)
	// StoreList stores the ids of a job before its Request; what no Request follows is removed after a while.
	StoreList(ctx context.Context, jobID string, list []idlist.List) error
	// DropList removes them.
	DropList(ctx context.Context, jobID string) error
}

// IDs requests that a list of records is indexed and returns the job that does it. organization is the only one of the list, or empty
// for a list that may have several. No id may be in the list twice. It returns nil only after the queue has stored the list and the
// job's Request; before the Request, which is stored last, nothing of the list is processed. Errors: CodeInvalid, CodeNotFound for an
// unknown repository, CodeOverloaded while idlist.MaxOpen lists of it have not ended, CodeOverloaded or CodeUnavailable from the queue.
func (s *Service) IDs(ctx context.Context, repository, organization string, list []idlist.List, requestID string) (core.Job, error) {
	repo, err := s.repository(repository)
	if err != nil {
		return core.Job{}, err
	}
	if err := validList(list); err != nil {
		return core.Job{}, err
	}
	if s.cfg.Lists == nil {
		return core.Job{}, core.NewError(core.CodeUnsupported, "lists of ids are not stored here")
	}
	stored, err := s.reserveList(ctx, repository)
	if err != nil {
		return core.Job{}, err
	}
	defer stored()
	s.receive(repository, core.CauseREST, core.KindIndex)
	r := core.Request{
		ID: orNewID(requestID), Kind: core.KindIndex, Scope: core.ScopeIDs, Repository: repository, Organization: organization,
		JobID: newID(), Cause: core.CauseREST, ReceivedAt: s.now(),
	}
	if err = s.cfg.Lists.StoreList(ctx, r.JobID, list); err != nil {
		err = fmt.Errorf("storing the ids of a job: %w", err)
	} else {
		err = s.publish(ctx, r)
	}
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err == nil {
		return s.createJob(settling, repo, r), nil
	}
	if core.CodeOf(err) == core.CodeUnavailable { // the Request may be stored
		return core.Job{}, err
	}
	if err := s.cfg.Lists.DropList(settling, r.JobID); err != nil {
		s.cfg.Logger.InfoContext(ctx, "the ids of a job that was not queued are removed later", "job_id", r.JobID, "err", err)
	}
	return core.Job{}, err
}

// reserveList checks that one more list of a repository may be stored, and counts it until stored is called, when its job counts.
func (s *Service) reserveList(ctx context.Context, repository string) (stored func(), err error) {
	count := s.storingLists[repository]
	storing := int(count.Add(1))
	stored = func() { count.Add(-1) }
	open, err := s.cfg.Lists.Open(ctx, repository)
	if err == nil && open+storing > idlist.MaxOpen {
		err = &core.Error{
			Code: core.CodeOverloaded, Message: fmt.Sprintf("%d lists of ids of the repository are waiting or in progress, the limit", idlist.MaxOpen),
			Hint: "retry when one has ended, or put the ids into fewer lists",
		}
	}
	if err != nil {
		stored()
		return nil, fmt.Errorf("counting the lists of ids: %w", err)
	}
	return stored, nil
}

func validList(list []idlist.List) error {
	count := 0
	for _, part := range list {
		if err := core.ValidID("organization", part.Organization); err != nil {
			return err
		}
		for _, id := range part.IDs {
			if err := core.ValidID("id", id); err != nil {
				return err
			}
		}
		count += len(part.IDs)
	}
	if count == 0 || count > idlist.MaxIDs || len(list) > idlist.MaxOrganizations {
		return core.NewError(core.CodeInvalid, fmt.Sprintf(
			"a list must have 1 to %d ids of at most %d organizations", idlist.MaxIDs, idlist.MaxOrganizations))
	}
	return nil
}
