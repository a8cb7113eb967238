package catalogue

import (
	"log/slog"
	"reflect"
	"slices"

	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
)

// entry is one catalogue and its state; only the watch changes it.
type entry struct {
	definition definition.Definition
	// catalogue is the published state; model is nil if it shows a problem.
	catalogue *core.Catalogue
	model     *Model
	// logged is set once a state was logged; warned are the model's warnings that were logged.
	logged bool
	warned []string
	// followed is set if the definition had an Err before, replaced if another entry took its place.
	followed, replaced bool
}

// follows reports whether the definition follows its folder: it has an Err, or had one and may not be complete. The others stay
// as they were at the start.
func (e *entry) follows() bool { return e.followed || e.definition.Err != nil }

// differs reports whether a reloaded definition differs from that of e. For two definitions with an Err, only visible differences
// count.
func (e *entry) differs(d definition.Definition) bool {
	was := e.definition
	if d.Err == nil || was.Err == nil {
		return !reflect.DeepEqual(d, was)
	}
	return d.Err.Message != was.Err.Message || d.ID != was.ID || d.DocumentType != was.DocumentType || d.Description != was.Description
}

func newEntry(d definition.Definition) *entry {
	why := pendingProblem()
	if d.Err != nil {
		why = definitionProblem(d)
	}
	return &entry{definition: d, catalogue: failedCatalogue(d, why)}
}

// logWarnings logs the error and the warnings of the definition.
func (e *entry) logWarnings(log *slog.Logger) {
	for _, warning := range e.definition.Warnings {
		log.Warn("the configuration of a catalogue has a warning", "catalogue", e.definition.ID, "warning", warning)
	}
	if e.definition.Err != nil {
		e.update(log, built{problem: definitionProblem(e.definition)}, e.definition.Err)
	}
}

// update replaces the state by a build result or by a problem of reading. Unchanged parts keep their pointers. err is the cause
// of a problem, for the log.
func (e *entry) update(log *slog.Logger, b built, err error) {
	if e.replaced {
		return
	}
	was := e.catalogue.Problem
	if b.problem == nil {
		e.available(log, b.model)
		return
	}
	if was != nil && *was == *b.problem && e.logged {
		return
	}
	if !e.logged || was == nil || was.Code != b.problem.Code {
		why := []any{
			"catalogue", e.definition.ID, "index", e.definition.Index, "code", string(b.problem.Code), "reason", b.problem.Message,
		}
		if err != nil {
			why = append(why, "err", err)
		}
		log.Warn("a catalogue has failed", why...)
	}
	if was == nil || *was != *b.problem {
		e.catalogue = failedCatalogue(e.definition, b.problem)
	}
	e.model, e.logged = nil, true
}

func (e *entry) available(log *slog.Logger, m *Model) {
	if e.model == m {
		return
	}
	state := []any{"catalogue", e.definition.ID, "index", e.definition.Index, "fields", len(m.catalogue.Fields)}
	switch {
	case e.model == nil:
		log.Info("a catalogue is available", state...)
	case !slices.Equal(e.catalogue.Fields, m.catalogue.Fields) && slices.EqualFunc(e.catalogue.Fields, m.catalogue.Fields, equalExceptValues):
		log.Info("the fields of a catalogue with several values have changed", state...)
	default:
		log.Info("the mapping of a catalogue has changed", state...)
	}
	for _, warning := range m.warnings {
		if !slices.Contains(e.warned, warning) {
			log.Warn("a catalogue does not fit its mapping", "catalogue", e.definition.ID, "warning", warning)
		}
	}
	e.catalogue, e.model, e.logged, e.warned = m.catalogue, m, true, m.warnings
}

// equalExceptValues reports whether two fields are equal apart from what a sample shows of their values.
func equalExceptValues(a, b core.CatalogueField) bool {
	a.MultiValued = b.MultiValued
	return a == b
}
