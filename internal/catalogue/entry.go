package catalogue

import (
	"log/slog"
	"reflect"
	"slices"

	"tutti/internal/catalogue/definition"
	"tutti/internal/core"
)

// entry is one catalogue and its state, which the watch alone changes.
type entry struct {
	definition definition.Definition
	// catalogue is what is shown; model is nil when it shows a problem.
	catalogue *core.Catalogue
	model     *Model
	// logged is false as long as nobody was told of the state, warned what was said of the model.
	logged bool
	warned []string
	// followed tells that the definition had a Fault before, gone that another entry has taken the place of this one.
	followed, replaced bool
}

// follows reports whether the definition follows its folder: it is wrong, or it was and may not be finished. The others are those of
// the start.
func (e *entry) follows() bool { return e.followed || e.definition.Err != nil }

// differs reports whether a definition, read again, is not what e has. Of two with a Fault what can be seen counts.
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

// logWarnings says what is wrong and odd with the definition itself.
func (e *entry) logWarnings(log *slog.Logger) {
	for _, warning := range e.definition.Warnings {
		log.Warn("the configuration of a catalogue is odd", "catalogue", e.definition.ID, "warning", warning)
	}
	if e.definition.Err != nil {
		e.update(log, built{problem: definitionProblem(e.definition)}, e.definition.Err)
	}
}

// update puts a built result, or a problem of reading, in the place of what was. What is the same already stays, to the
// pointer. err is the cause of a problem, for the log.
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
		log.Info("a sample shows other fields of a catalogue with several values", state...)
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

// equalExceptValues reports whether two fields are the same but for what a sample shows of their values.
func equalExceptValues(a, b core.CatalogueField) bool {
	a.MultiValued = b.MultiValued
	return a == b
}
