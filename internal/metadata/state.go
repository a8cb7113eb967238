package metadata

import (
	"context"
	"errors"

	"tutti/internal/core"
	"tutti/internal/store"
)

// SetState publishes, unpublishes or suppresses an analysis. An analysis that is in the state already stays as it is; its
// event is written all the same where the state belongs into the index, so that publishing again mends the index. Errors:
// CodeNotFound for an unknown study or analysis, CodeConflict (suppressed.state.transition) for leaving StateSuppressed,
// CodeInvalid for no state.
func (r *Repository) SetState(ctx context.Context, study, id string, state core.AnalysisState) error {
	if !state.Valid() {
		return malformed("the state is none of UNPUBLISHED, PUBLISHED and SUPPRESSED")
	}
	for range maxTries {
		event := false
		err := r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			event, err = r.enter(ctx, tx, study, id, state)
			return err
		})
		if errors.Is(err, errChanged) { // on PostgreSQL alone
			continue
		}
		if err == nil {
			r.done(ctx, entering(state), study, id, event)
		}
		return err
	}
	return core.NewError(core.CodeOverloaded, "the analysis is being changed by too many others")
}

// enter puts an analysis into a state and reports whether it wrote an event.
func (r *Repository) enter(ctx context.Context, tx *store.Tx, study, id string, state core.AnalysisState) (event bool, err error) {
	c, err := r.load(ctx, tx, study, id)
	if err != nil {
		return false, err
	}
	event = r.indexed(c.state) || r.indexed(state)
	if c.state == core.StateSuppressed && state != c.state {
		return false, suppressed()
	}
	if c.state != state {
		micros := r.next(&c)
		next := c.document
		next.enter(state, micros)
		if err := r.overwrite(ctx, tx, &c, &next, micros, next.bytes()); err != nil {
			return false, err
		}
	}
	if !event {
		return false, nil
	}
	return true, r.tell(ctx, tx, study, id)
}

// entering names the change into a state.
func entering(state core.AnalysisState) action {
	switch state {
	case core.StatePublished:
		return actionPublish
	case core.StateSuppressed:
		return actionSuppress
	default:
		return actionUnpublish
	}
}
