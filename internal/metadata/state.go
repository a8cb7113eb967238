package metadata

import (
	"context"
	"errors"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/store"
)

// SetState publishes, unpublishes or suppresses an analysis. An analysis that is already in the state stays as it is; in an
// indexed state its event is still written, so that publishing again repairs the index. Before an unpublished analysis is published,
// its version and its objects in the storage are checked; ignoreUndefinedMD5 accepts objects whose MD5 sum the storage does not know.
// Errors: CodeNotFound for an unknown study or analysis, CodeConflict (suppressed.state.transition) for leaving StateSuppressed,
// CodeInvalid for an invalid state, those of Validator.CheckVersion and of checkStorage.
func (r *Repository) SetState(ctx context.Context, study, id string, state datamodel.AnalysisState, ignoreUndefinedMD5 bool) error {
	if !state.Valid() {
		return parameterError("the state must be UNPUBLISHED, PUBLISHED or SUPPRESSED")
	}
	for range maxTries {
		var checked int64
		var err error
		if state == datamodel.StatePublished {
			if checked, err = r.checkPublishable(ctx, study, id, ignoreUndefinedMD5); err != nil {
				return err
			}
		}
		event := false
		err = r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			event, err = r.setState(ctx, tx, study, id, state, checked)
			return err
		})
		if errors.Is(err, errChanged) {
			continue
		}
		if err == nil {
			r.recordChange(ctx, actionFor(state), study, id, event)
		}
		return err
	}
	return core.NewError(core.CodeOverloaded, "the analysis is changed too often concurrently; retry later")
}

// checkPublishable checks what a publication of an unpublished analysis requires, and returns the analysis' token. It holds no
// transaction: the storage asks this server for the file's entity before it answers.
func (r *Repository) checkPublishable(ctx context.Context, study, id string, ignoreUndefinedMD5 bool) (token int64, err error) {
	c, err := r.load(ctx, r.store.Read(), study, id)
	if err != nil || c.State != datamodel.StateUnpublished {
		return c.token, err
	}
	if err := r.validator.CheckVersion(ctx, c.Kind); err != nil {
		return 0, err
	}
	if r.cfg.Storage == nil {
		return c.token, nil
	}
	return c.token, r.cfg.checkStorage(ctx, &c, ignoreUndefinedMD5)
}

// setState changes the state of an analysis and reports whether it wrote an event. checked is the token of the analysis that was found
// publishable: errChanged when that is no longer the stored one.
func (r *Repository) setState(ctx context.Context, tx *store.Tx, study, id string, state datamodel.AnalysisState, checked int64) (event bool, err error) {
	c, err := r.load(ctx, tx, study, id)
	if err != nil {
		return false, err
	}
	event = r.indexed(c.State) || r.indexed(state)
	if c.State == datamodel.StateSuppressed && state != c.State {
		return false, suppressedError()
	}
	if c.State == datamodel.StateUnpublished && state == datamodel.StatePublished && c.token != checked {
		return false, errChanged
	}
	if c.State != state {
		micros := r.nextToken(&c)
		next := c.Document
		next.SetState(state, micros)
		if err := r.overwrite(ctx, tx, &c, &next, micros, next.Bytes()); err != nil {
			return false, err
		}
	}
	if !event {
		return false, nil
	}
	return true, r.writeEvent(ctx, tx, study, id)
}

// actionFor returns the action of a change to a state.
func actionFor(state datamodel.AnalysisState) action {
	switch state {
	case datamodel.StatePublished:
		return actionPublish
	case datamodel.StateSuppressed:
		return actionSuppress
	default:
		return actionUnpublish
	}
}
