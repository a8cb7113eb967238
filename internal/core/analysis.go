package core

import (
	"encoding/json"
	"time"
)

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

// Study groups analyses in the built-in metadata repository.
type Study struct {
	ID           string `json:"studyId"`
	Name         string `json:"name"`
	Organization string `json:"organization"`
	Description  string `json:"description"`
	// Info is a JSON object of other members as the study was created with, nil for none.
	Info json.RawMessage `json:"info,omitempty"`
}

// Analysis is a stored analysis of the built-in metadata repository.
type Analysis struct {
	ID    string
	Study string
	State AnalysisState
	// Body is the complete analysis as clients receive it, one JSON object without line feeds, in Song's format.
	Body []byte
}

// Change is an outbox event: an analysis was changed in a way that can affect the index.
type Change struct {
	// ID is unique, and the same for each delivery of the change.
	ID         string
	Study      string
	AnalysisID string
	At         time.Time
}

// StoredObject is a file's object in an object storage.
type StoredObject struct {
	// Size is in bytes.
	Size int64
	// MD5 is the object's MD5 sum in hexadecimal digits, empty when the storage does not know it.
	MD5 string
}
