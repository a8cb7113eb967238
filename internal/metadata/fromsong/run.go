package fromsong

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tutti/internal/base/equality"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// batchSize is the number of analyses that are stored in one transaction.
const batchSize = 100

// maxReasons is the maximum number of skipped entities that a Report lists.
const maxReasons = 1000

// Source reads the data of a Song.
type Source interface {
	// Studies returns all studies.
	Studies(ctx context.Context) ([]datamodel.Study, error)
	// Types returns all versions of all analysis types, in the order of their registration.
	Types(ctx context.Context) ([]datamodel.AnalysisType, error)
	// Analyses calls each for all analyses of a study, some at a time, in the order of their creation if the source knows it. missing is
	// the number of analyses that the source counts but does not return.
	Analyses(ctx context.Context, study string, each func([]datamodel.ImportedAnalysis) error) (missing int, err error)
	// Close releases the source.
	Close(ctx context.Context) error
}

// Target stores the copied studies and analyses.
type Target interface {
	Study(ctx context.Context, id string) (datamodel.Study, error)
	CreateStudy(ctx context.Context, s datamodel.Study) error
	Import(ctx context.Context, analyses []datamodel.ImportedAnalysis, report func(id string, did datamodel.ImportResult, why string)) error
}

// Types stores analysis types.
type Types interface {
	AnalysisType(ctx context.Context, name string, version int) (datamodel.AnalysisType, error)
	AddAnalysisType(ctx context.Context, name string, next func(previous *datamodel.AnalysisType) (datamodel.AnalysisType, error)) (datamodel.AnalysisType, error)
}

// Report counts what a migration has copied.
type Report struct {
	// Studies and Types count those of the source, StudiesAdded and TypesAdded those that the target did not have.
	Studies, StudiesAdded, Types, TypesAdded int
	// Analyses counts the analyses by result, States the copied ones by state, Files their files and StateChanges their state changes.
	Analyses            map[datamodel.ImportResult]int
	States              map[datamodel.AnalysisState]int
	Files, StateChanges int
	// Missing counts analyses that the source counts but does not return.
	Missing int
	// Skipped lists what was not copied, each with its reason; NotNamed counts what it omits beyond the first thousand.
	Skipped  []string
	NotNamed int
}

// Complete reports whether everything was copied.
func (r *Report) Complete() bool { return len(r.Skipped) == 0 && r.Missing == 0 }

func (r *Report) skip(what, why string) {
	if len(r.Skipped) < maxReasons {
		r.Skipped = append(r.Skipped, what+": "+why)
	} else {
		r.NotNamed++
	}
}

// run is one migration.
type run struct {
	from   Source
	target Target
	types  Types
	report *Report
	// progress is called after each batch.
	progress func(*Report)
	// known are the versions of analysis types that exist in the target.
	known map[datamodel.AnalysisTypeRef]struct{}
}

// Run copies everything from a source. It can be repeated, also to continue an interrupted run: it skips what was copied and has not
// changed since. progress, which may be nil, is called after each batch. The Report is valid also with an error.
func Run(ctx context.Context, from Source, target Target, types Types, progress func(*Report)) (*Report, error) {
	m := run{
		from: from, target: target, types: types, progress: progress, known: map[datamodel.AnalysisTypeRef]struct{}{},
		report: &Report{Analyses: map[datamodel.ImportResult]int{}, States: map[datamodel.AnalysisState]int{}},
	}
	if m.progress == nil {
		m.progress = func(*Report) {}
	}
	if err := m.copyTypes(ctx); err != nil {
		return m.report, err
	}
	studies, err := from.Studies(ctx)
	if err != nil {
		return m.report, fmt.Errorf("reading the studies: %w", err)
	}
	for _, study := range studies {
		if err := m.copyStudy(ctx, study); err != nil {
			return m.report, err
		}
	}
	return m.report, nil
}

// copyTypes copies the analysis types with their numbers.
func (m *run) copyTypes(ctx context.Context) error {
	all, err := m.from.Types(ctx)
	if err != nil {
		return fmt.Errorf("reading the analysis types: %w", err)
	}
	for _, t := range all {
		m.report.Types++
		stored, err := m.types.AnalysisType(ctx, t.Name, t.Version)
		if core.CodeOf(err) == core.CodeNotFound {
			if err := m.addType(ctx, t); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("reading an analysis type: %w", err)
		}
		if !equality.New(nil).Equal(stored.Schema, t.Schema) {
			return &core.Error{
				Code: core.CodeConflict, Message: fmt.Sprintf("version %d of the analysis type %s differs from that in tutti", t.Version, t.Name),
				Hint: "migrate into a store without analysis types; do not set schemas.seed before",
			}
		}
		m.known[datamodel.AnalysisTypeRef{Name: t.Name, Version: t.Version}] = struct{}{}
	}
	return nil
}

// errGap ends the registration of a version without its predecessor.
var errGap = errors.New("the version before it is missing")

func (m *run) addType(ctx context.Context, t datamodel.AnalysisType) error {
	_, err := m.types.AddAnalysisType(ctx, t.Name, func(previous *datamodel.AnalysisType) (datamodel.AnalysisType, error) {
		before := 0
		if previous != nil {
			before = previous.Version
		}
		if before != t.Version-1 {
			return datamodel.AnalysisType{}, errGap
		}
		return t, nil
	})
	switch {
	case errors.Is(err, errGap):
		m.report.skip(fmt.Sprintf("analysis type %s, version %d", t.Name, t.Version), "the version before it is missing")
		return nil
	case core.CodeOf(err) == core.CodeInvalid:
		m.report.skip(fmt.Sprintf("analysis type %s, version %d", t.Name, t.Version), core.MessageOf(err))
		return nil
	case err != nil:
		return fmt.Errorf("storing an analysis type: %w", err)
	}
	m.report.TypesAdded++
	m.known[datamodel.AnalysisTypeRef{Name: t.Name, Version: t.Version}] = struct{}{}
	return nil
}

// copyStudy copies a study with its analyses.
func (m *run) copyStudy(ctx context.Context, study datamodel.Study) error {
	m.report.Studies++
	_, err := m.target.Study(ctx, study.ID)
	if core.CodeOf(err) == core.CodeNotFound {
		err = m.target.CreateStudy(ctx, study)
		if core.CodeOf(err) == core.CodeInvalid {
			m.report.skip("study "+study.ID+" with its analyses", core.MessageOf(err))
			return nil
		}
		if err == nil {
			m.report.StudiesAdded++
		}
	}
	if err != nil {
		return fmt.Errorf("storing a study: %w", err)
	}
	missing, err := m.from.Analyses(ctx, study.ID, func(analyses []datamodel.ImportedAnalysis) error {
		for batch := range slices.Chunk(analyses, batchSize) {
			if err := m.copyBatch(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
	m.report.Missing += missing
	if err != nil {
		return fmt.Errorf("copying the analyses of a study: %w", err)
	}
	return nil
}

func (m *run) copyBatch(ctx context.Context, batch []datamodel.ImportedAnalysis) error {
	ready := make([]datamodel.ImportedAnalysis, 0, len(batch))
	byID := map[string]*datamodel.ImportedAnalysis{}
	for i := range batch {
		a := &batch[i]
		byID[a.ID] = a
		if _, exists := m.known[a.Type]; !exists {
			m.report.Analyses[datamodel.ImportSkipped]++
			why := "it has no analysis type"
			if a.Type.Name != "" {
				why = fmt.Sprintf("version %d of its type %s was not copied", a.Type.Version, a.Type.Name)
			}
			m.report.skip("analysis "+a.ID, why)
			continue
		}
		ready = append(ready, *a)
	}
	err := m.target.Import(ctx, ready, func(id string, did datamodel.ImportResult, why string) {
		m.report.Analyses[did]++
		if did == datamodel.ImportSkipped || did == datamodel.ImportConflict {
			m.report.skip("analysis "+id, why)
			return
		}
		if why != "" {
			m.report.skip("analysis "+id, why)
		}
		a := byID[id]
		m.report.States[a.State]++
		m.report.Files += len(a.Files)
		m.report.StateChanges += len(a.History)
	})
	if err != nil {
		return err
	}
	m.progress(m.report)
	return nil
}

// Lines returns the report as lines of text.
func (r *Report) Lines() []string {
	lines := []string{
		fmt.Sprintf("studies: %d, %d added", r.Studies, r.StudiesAdded),
		fmt.Sprintf("versions of analysis types: %d, %d added", r.Types, r.TypesAdded),
	}
	for _, did := range slices.Sorted(maps.Keys(r.Analyses)) {
		lines = append(lines, fmt.Sprintf("analyses %s: %d", did, r.Analyses[did]))
	}
	for _, state := range slices.Sorted(maps.Keys(r.States)) {
		lines = append(lines, fmt.Sprintf("analyses in state %s: %d", state, r.States[state]))
	}
	lines = append(lines, fmt.Sprintf("files: %d", r.Files), fmt.Sprintf("state changes: %d", r.StateChanges))
	if r.Missing > 0 {
		lines = append(lines, fmt.Sprintf("analyses that Song counts but does not return, because they have no files or samples: %d", r.Missing))
	}
	return lines
}
