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
	// told is false as long as nobody was told of the state, warned what was said of the model.
	told   bool
	warned []string
	// followed tells that the definition had a Fault before, gone that another entry has taken the place of this one.
	followed, gone bool
}

// follows reports whether the definition follows its folder: it is wrong, or it was and may not be finished. The others are those of
// the start.
func (e *entry) follows() bool { return e.followed || e.definition.Fault != nil }

// differs reports whether a definition, read again, is not what e has. Of two with a Fault what can be seen counts.
func (e *entry) differs(d definition.Definition) bool {
	was := e.definition
	if d.Fault == nil || was.Fault == nil {
		return !reflect.DeepEqual(d, was)
	}
	return d.Fault.Message != was.Fault.Message || d.ID != was.ID || d.DocumentType != was.DocumentType || d.Description != was.Description
}

func newEntry(d definition.Definition) *entry {
	why := unanswered()
	if d.Fault != nil {
		why = faulty(d)
	}
	return &entry{definition: d, catalogue: failed(d, why)}
}

// tell says what is wrong and odd with the definition itself.
func (e *entry) tell(log *slog.Logger) {
	for _, warning := range e.definition.Warnings {
		log.Warn("the configuration of a catalogue is odd", "catalogue", e.definition.ID, "warning", warning)
	}
	if e.definition.Fault != nil {
		e.become(log, built{problem: faulty(e.definition)}, e.definition.Fault)
	}
}

// become puts a built result, or a problem of reading, in the place of what was. What is the same already stays, to the
// pointer. err is the cause of a problem, for the log.
func (e *entry) become(log *slog.Logger, b built, err error) {
	if e.gone {
		return
	}
	was := e.catalogue.Problem
	if b.problem == nil {
		e.available(log, b.model)
		return
	}
	if was != nil && *was == *b.problem && e.told {
		return
	}
	if !e.told || was == nil || was.Code != b.problem.Code {
		why := []any{
			"catalogue", e.definition.ID, "index", e.definition.Index, "code", string(b.problem.Code), "reason", b.problem.Message,
		}
		if err != nil {
			why = append(why, "err", err)
		}
		log.Warn("a catalogue has failed", why...)
	}
	if was == nil || *was != *b.problem {
		e.catalogue = failed(e.definition, b.problem)
	}
	e.model, e.told = nil, true
}

func (e *entry) available(log *slog.Logger, m *Model) {
	if e.model == m {
		return
	}
	state := []any{"catalogue", e.definition.ID, "index", e.definition.Index, "fields", len(m.catalogue.Fields)}
	switch {
	case e.model == nil:
		log.Info("a catalogue is available", state...)
	case !slices.Equal(e.catalogue.Fields, m.catalogue.Fields) && slices.EqualFunc(e.catalogue.Fields, m.catalogue.Fields, sameButValues):
		log.Info("a sample shows other fields of a catalogue with several values", state...)
	default:
		log.Info("the mapping of a catalogue has changed", state...)
	}
	for _, warning := range m.warnings {
		if !slices.Contains(e.warned, warning) {
			log.Warn("a catalogue does not fit its mapping", "catalogue", e.definition.ID, "warning", warning)
		}
	}
	e.catalogue, e.model, e.told, e.warned = m.catalogue, m, true, m.warnings
}

// sameButValues reports whether two fields are the same but for what a sample shows of their values.
func sameButValues(a, b core.CatalogueField) bool {
	a.MultiValued = b.MultiValued
	return a == b
}
