package metadata

import (
	"context"
	"errors"

	"tutti/internal/core"
	"tutti/internal/store"
)

// SetState publishes, unpublishes or suppresses an analysis. An analysis that is already in the state stays as it is; in an
// indexed state its event is still written, so that publishing again repairs the index. Errors: CodeNotFound for an unknown study
// or analysis, CodeConflict (suppressed.state.transition) for leaving StateSuppressed, CodeInvalid for an invalid state.
func (r *Repository) SetState(ctx context.Context, study, id string, state core.AnalysisState) error {
	if !state.Valid() {
		return parameterError("the state must be UNPUBLISHED, PUBLISHED or SUPPRESSED")
	}
	for range maxTries {
		event := false
		err := r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			event, err = r.setState(ctx, tx, study, id, state)
			return err
		})
		if errors.Is(err, errChanged) { // only on PostgreSQL
			continue
		}
		if err == nil {
			r.recordChange(ctx, actionFor(state), study, id, event)
		}
		return err
	}
	return core.NewError(core.CodeOverloaded, "the analysis is changed too often concurrently; retry later")
}

// setState changes the state of an analysis and reports whether it wrote an event.
func (r *Repository) setState(ctx context.Context, tx *store.Tx, study, id string, state core.AnalysisState) (event bool, err error) {
	c, err := r.load(ctx, tx, study, id)
	if err != nil {
		return false, err
	}
	event = r.indexed(c.state) || r.indexed(state)
	if c.state == core.StateSuppressed && state != c.state {
		return false, suppressedError()
	}
	if c.state != state {
		micros := r.nextToken(&c)
		next := c.document
		next.setState(state, micros)
		if err := r.overwrite(ctx, tx, &c, &next, micros, next.bytes()); err != nil {
			return false, err
		}
	}
	if !event {
		return false, nil
	}
	return true, r.writeEvent(ctx, tx, study, id)
}

// actionFor returns the action of a change to a state.
func actionFor(state core.AnalysisState) action {
	switch state {
	case core.StatePublished:
		return actionPublish
	case core.StateSuppressed:
		return actionSuppress
	default:
		return actionUnpublish
	}
}
