package rebuild

import (
	"context"
	"errors"

	"tutti/internal/core"
)

// Ended reports whether a job has ended. One that does not exist has.
type Ended = func(ctx context.Context, jobID string) (bool, error)

// Rollback moves the alias back to the index that it had before the last rebuild, which then is the one before. That index has not
// been written to since, so that queueRun must queue a run, and return its job. Until it has, the cell of the identity names the other
// index: should the process end, or the queue take no run, the next check of the index finds it replaced and queues the run. A rollback
// that did not end is continued by the next one, in any process. CodeNotFound when there is no index to roll back to; CodeConflict
// while a rebuild, another rollback or a deletion runs, until the job of the last one has ended, and once after a rollback that did not end
// but whose run a check has queued: a request that is sent twice moves the alias once.
func (r *Rebuild) Rollback(ctx context.Context, ended Ended, queueRun func() (jobID string, err error)) error {
	s, err := r.claim(ctx, stepRollingBack, ended)
	if err != nil {
		return err
	}
	if err := r.moveBack(ctx, s); err != nil {
		return err
	}
	jobID, err := queueRun()
	if err != nil {
		return &core.Error{
			Code: core.CodeOf(err), Message: "the index was rolled back, but its run was not queued: " + core.MessageOf(err), Err: err,
			Hint: "request the rollback again; otherwise the next check of the index queues the run", RetryAfter: core.RetryAfterOf(err),
		}
	}
	if err := r.release(ctx, s, state{stepMoved, jobID, s.identity}); err != nil {
		return err
	}
	return r.setIdentity(ctx, s.identity)
}

// moveBack moves the alias to the index with the identity of s, unless that is done.
func (r *Rebuild) moveBack(ctx context.Context, s state) error {
	if moved, err := r.moved(ctx, s); moved || err != nil {
		return err
	}
	err := r.move(ctx, core.PreviousAlias(r.spec.Alias), s.identity)
	if err == nil {
		return nil
	}
	if moved, _ := r.moved(ctx, s); moved { // by another process
		return nil
	}
	if previous, gone := r.previous(ctx); core.CodeOf(gone) == core.CodeNotFound || gone == nil && previous != s.identity {
		return errors.Join(r.release(ctx, s, state{}), errNoPrevious())
	}
	return err
}

// DropPrevious deletes the index that the alias had before the last rebuild. CodeNotFound when there is none, CodeConflict while it is
// rolled back to, until the job of the last rebuild or rollback has ended, and while others have given that index an alias.
func (r *Rebuild) DropPrevious(ctx context.Context, ended Ended) error {
	s, err := r.claim(ctx, stepDropping, ended)
	if err != nil {
		return err
	}
	err = r.index.Drop(ctx, core.PreviousAlias(r.spec.Alias), s.identity)
	if core.CodeOf(err) == core.CodeConflict { // others read it
		return errors.Join(r.release(ctx, s, state{}), err)
	}
	if err != nil {
		return err
	}
	return r.release(ctx, s, state{})
}

// claim sets the cell to a step that changes the index before the last rebuild, and returns the state with the identity of that index.
// If another process, or one that has ended, has set it to the same step, that one is continued.
func (r *Rebuild) claim(ctx context.Context, step string, ended Ended) (state, error) {
	s, revision, err := readState(ctx, r.cells, r.spec.Alias)
	if err != nil {
		return s, err
	}
	done, err := r.rolledBack(ctx, s)
	if err != nil {
		return s, err
	}
	switch {
	case s.step == step && !done:
		return s, nil
	case s.step == step: // the request is the one that the rollback's error has asked for
		return s, errors.Join(r.release(ctx, s, state{stepMoved, "", s.identity}), errRolledBack)
	}
	previous, err := r.previous(ctx)
	if err != nil {
		return s, err
	}
	if !done {
		if err := idle(ctx, s, ended); err != nil {
			return s, err
		}
	}
	claimed := state{step, "", previous}
	err = r.set(ctx, claimed, revision)
	if core.CodeOf(err) == core.CodeConflict {
		return s, errBusy("another request is changing the index")
	}
	return claimed, err
}

// rolledBack reports whether a rollback that did not end needs nothing more: a check of the index has queued its run.
func (r *Rebuild) rolledBack(ctx context.Context, s state) (bool, error) {
	if s.step != stepRollingBack {
		return false, nil
	}
	identity, _, err := r.cells.Cell(ctx, r.identityCell)
	if err != nil || identity != s.identity {
		return false, err
	}
	return r.moved(ctx, s)
}

// idle returns CodeConflict unless the index may be rolled back.
func idle(ctx context.Context, s state, ended Ended) error {
	switch {
	case s.replacing():
		return &core.Error{Code: core.CodeConflict, Message: "the index is being rebuilt", Hint: "cancel the job of the rebuild, or wait for its end"}
	case s.step == stepRollingBack:
		return errBusy("the index is being rolled back")
	case s.step == stepDropping:
		return errBusy("the index before the last rebuild is being deleted")
	case s.jobID == "":
		return nil
	}
	is, err := ended(ctx, s.jobID)
	if err != nil || is {
		return err
	}
	return &core.Error{
		Code: core.CodeConflict, Message: "the index was replaced by the job " + s.jobID + ", which has not ended",
		Hint: "wait for its end, or cancel it",
	}
}

// release sets the cell from a claimed state to the next one. It does nothing if another process has.
func (r *Rebuild) release(ctx context.Context, claimed, next state) error {
	s, revision, err := readState(ctx, r.cells, r.spec.Alias)
	if err != nil || s != claimed {
		return err
	}
	if err := r.set(ctx, next, revision); core.CodeOf(err) != core.CodeConflict {
		return err
	}
	return nil
}

// previous returns the identity of the index before the last rebuild.
func (r *Rebuild) previous(ctx context.Context) (string, error) {
	identity, err := r.index.Identity(ctx, core.PreviousAlias(r.spec.Alias))
	if errors.Is(err, core.ErrIndexMissing) {
		return "", errNoPrevious()
	}
	return identity, err
}
