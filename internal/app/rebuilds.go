package app

import (
	"context"

	"tutti/internal/app/compare"
	"tutti/internal/core"
	"tutti/internal/index/mappingplan"
	"tutti/internal/index/rebuild"
)

// rebuildsAPI changes the indices of repositories that were rebuilt.
type rebuildsAPI struct{ *indexer }

// Rollback moves a repository's alias back to the index before the last rebuild, and queues the run that brings that up to date.
func (x rebuildsAPI) Rollback(ctx context.Context, repository, requestID string) (core.Job, error) {
	r, err := x.idle(ctx, repository)
	if err != nil {
		return core.Job{}, err
	}
	if err := core.CheckOwnIndex(x.cfg.CoreRepositories(), repository); err != nil {
		return core.Job{}, err
	}
	var job core.Job
	err = r.Rollback(ctx, x.jobEnded, func() (id string, err error) {
		job, err = x.ingest.Run(ctx, core.ScopeRepository, repository, "", core.RunFlags{}, core.CauseREST, requestID)
		return job.ID, err
	})
	return job, err
}

// jobEnded reports whether a job has ended, or does not exist.
func (x rebuildsAPI) jobEnded(ctx context.Context, id string) (bool, error) {
	job, err := x.data.Queue.Jobs().Get(ctx, id)
	if core.CodeOf(err) == core.CodeNotFound {
		return true, nil
	}
	return err == nil && job.State.Final(), err
}

// DropPrevious deletes the index before the last rebuild.
func (x rebuildsAPI) DropPrevious(ctx context.Context, repository string) error {
	r, err := x.idle(ctx, repository)
	if err != nil {
		return err
	}
	return r.DropPrevious(ctx, x.jobEnded)
}

// Plan compares a repository's index with the configuration, and with its mapping file as it is now.
func (x rebuildsAPI) Plan(ctx context.Context, repository string) (mappingplan.Plan, error) {
	rc, err := compare.Repository(x.cfg, repository)
	if err != nil {
		return mappingplan.Plan{}, err
	}
	return compare.Mapping(ctx, x.cfg, rc, x.declared.typesOf(repository), x.data.Index)
}

// idle returns the Rebuild of a repository, after it has deleted what a rebuild whose job was cancelled has left behind: otherwise only the
// next check of the index does. An index that others read is kept.
func (x rebuildsAPI) idle(ctx context.Context, repository string) (*rebuild.Rebuild, error) {
	r, err := x.rebuild(repository)
	if err != nil {
		return nil, err
	}
	if err := r.DiscardEnded(ctx, x.jobEnded); err != nil && core.CodeOf(err) != core.CodeConflict {
		return nil, err
	}
	return r, nil
}

func (x rebuildsAPI) rebuild(repository string) (*rebuild.Rebuild, error) {
	if r := x.rebuilds[repository]; r != nil {
		return r, nil
	}
	return nil, core.RepositoryNotConfigured(repository)
}
