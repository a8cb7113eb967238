package metadata

import (
	"context"
	"database/sql"
	"errors"

	"tutti/internal/core"
	"tutti/internal/store"
)

// current is an analysis as it is stored now.
type current struct {
	document
	// token is its updated_at, which grows with each change: who writes names the one that it has read.
	token int64
}

// Analysis returns one analysis in any state, CodeNotFound when the study has none of that id.
func (r *Repository) Analysis(ctx context.Context, study, id string) (core.Analysis, error) {
	state, _, body, err := r.read(ctx, r.store.Read(), study, id)
	if err != nil {
		return core.Analysis{}, err
	}
	return core.Analysis{ID: id, Study: study, State: state, Body: body}, nil
}

func (r *Repository) load(ctx context.Context, conn store.Conn, study, id string) (current, error) {
	_, token, body, err := r.read(ctx, conn, study, id)
	if err != nil {
		return current{}, err
	}
	return current{document: parseDocument(body), token: token}, nil
}

func (r *Repository) read(ctx context.Context, conn store.Conn, study, id string) (state core.AnalysisState, token int64, body []byte, err error) {
	if !storable(id) || !storable(study) {
		return "", 0, nil, noAnalysis()
	}
	err = conn.QueryRowContext(ctx, "SELECT state, updated_at, body FROM analysis WHERE id = $1 AND study = $2", id, study).
		Scan(&state, &token, &body)
	if errors.Is(err, sql.ErrNoRows) {
		if err := r.needStudy(ctx, conn, study); err != nil {
			return "", 0, nil, err
		}
		return "", 0, nil, noAnalysis()
	}
	if err != nil {
		return "", 0, nil, store.Fault("reading an analysis", err)
	}
	return state, token, body, nil
}

// next returns the time of a change: later than the one before, also where the clock was set back.
func (r *Repository) next(c *current) int64 { return max(store.Micros(r.cfg.Now()), c.token+1) }
