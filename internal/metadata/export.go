package metadata

import (
	"context"
	"database/sql"
	"errors"

	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
	"tutti/internal/store"
)

// ExportStudy calls each for all analyses of a study, with the payload that could be submitted again as Body. An Analysis is valid
// until each returns. CodeNotFound for an unknown study.
func (r *Repository) ExportStudy(ctx context.Context, study string, each func(datamodel.Analysis) error) error {
	all := []datamodel.AnalysisState{datamodel.StatePublished, datamodel.StateSuppressed, datamodel.StateUnpublished}
	_, err := r.Page(ctx, study, all, 0, 0, func(a datamodel.Analysis) error {
		a.Body = analysis.Exported(a.Body)
		return each(a)
	})
	return err
}

// ExportAnalysis returns an analysis of any study with the payload that could be submitted again as Body. CodeNotFound
// (analysis.id.not.found) when there is none.
func (r *reader) ExportAnalysis(ctx context.Context, id string) (datamodel.Analysis, error) {
	a, err := r.FindAnalysis(ctx, id)
	if err != nil {
		return datamodel.Analysis{}, err
	}
	if a, err = r.Analysis(ctx, a.Study, id); err == nil {
		a.Body = analysis.Exported(a.Body)
	}
	return a, err
}

// FindAnalysis returns the study and the state of an analysis, without its Body. CodeNotFound (analysis.id.not.found) when there is
// none.
func (r *reader) FindAnalysis(ctx context.Context, id string) (datamodel.Analysis, error) {
	if !analysis.Storable(id) {
		return datamodel.Analysis{}, analysisNotFound()
	}
	a := datamodel.Analysis{ID: id}
	err := r.store.Read().QueryRowContext(ctx, "SELECT study, state FROM analysis WHERE id = $1", id).Scan(&a.Study, &a.State)
	if errors.Is(err, sql.ErrNoRows) {
		return datamodel.Analysis{}, analysisNotFound()
	}
	return a, store.WrapError("finding an analysis", err)
}
