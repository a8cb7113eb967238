package core

import "time"

// AnalysisState is the state of an analysis of the built-in metadata repository (CONTRACT section 8).
type AnalysisState string

// States of an analysis. StateSuppressed is final.
const (
	StateUnpublished AnalysisState = "UNPUBLISHED"
	StatePublished   AnalysisState = "PUBLISHED"
	StateSuppressed  AnalysisState = "SUPPRESSED"
)

// Valid reports whether s is one of the states.
func (s AnalysisState) Valid() bool {
	return s == StateUnpublished || s == StatePublished || s == StateSuppressed
}

// Study is what analyses belong to in the built-in metadata repository.
type Study struct {
	ID           string `json:"studyId"`
	Name         string `json:"name"`
	Organization string `json:"organization"`
	Description  string `json:"description"`
}

// Analysis is an analysis of the built-in metadata repository as it is stored.
type Analysis struct {
	ID    string
	Study string
	State AnalysisState
	// Body is the whole analysis as clients get it, one JSON object without line feeds, in Song's form.
	Body []byte
}

// Change is an event of the outbox: an analysis was changed in a way that can show in the index.
type Change struct {
	// ID is unique, and the same however often the change is told.
	ID         string
	Study      string
	AnalysisID string
	At         time.Time
}
