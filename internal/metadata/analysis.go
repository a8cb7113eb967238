package metadata

import (
	"context"
	"database/sql"
	"errors"

	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
	"tutti/internal/store"
)

// current is an analysis as it is stored now.
type current struct {
	analysis.Document
	// token is its updated_at, which grows with each change. A write is conditional on the token that was read.
	token int64
}

// reader reads single analyses.
type reader struct {
	store   *store.Store
	studies *studies
}

// Analysis returns one analysis in any state, CodeNotFound when the study has no analysis with that id.
func (r *reader) Analysis(ctx context.Context, study, id string) (datamodel.Analysis, error) {
	state, _, body, err := r.read(ctx, r.store.Read(), study, id)
	if err != nil {
		return datamodel.Analysis{}, err
	}
	return datamodel.Analysis{ID: id, Study: study, State: state, Body: body}, nil
}

func (r *reader) load(ctx context.Context, conn store.Conn, study, id string) (current, error) {
	_, token, body, err := r.read(ctx, conn, study, id)
	if err != nil {
		return current{}, err
	}
	return current{Document: analysis.Parse(body), token: token}, nil
}

func (r *reader) read(ctx context.Context, conn store.Conn, study, id string) (state datamodel.AnalysisState, token int64, body []byte, err error) {
	if !analysis.Storable(id) || !analysis.Storable(study) {
		return "", 0, nil, analysisNotFound()
	}
	err = conn.QueryRowContext(ctx, "SELECT state, updated_at, body FROM analysis WHERE id = $1 AND study = $2", id, study).
		Scan(&state, &token, &body)
	if errors.Is(err, sql.ErrNoRows) {
		if err := r.studies.requireStudy(ctx, conn, study); err != nil {
			return "", 0, nil, err
		}
		return "", 0, nil, analysisNotFound()
	}
	if err != nil {
		return "", 0, nil, store.WrapError("reading an analysis", err)
	}
	return state, token, body, nil
}

// nextToken returns the time of a change: later than the previous change, even when the clock was set back.
func (r *Repository) nextToken(c *current) int64 { return max(store.Micros(r.cfg.Now()), c.token+1) }
