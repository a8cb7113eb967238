package datamodel

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
	// Traceparent is the span of the change (W3C Trace Context, section 3.2), empty for none.
	Traceparent string
}

// StoredObject is a file's object in an object storage.
type StoredObject struct {
	// Size is in bytes.
	Size int64
	// MD5 is the object's MD5 sum in hexadecimal digits, empty when the storage does not know it.
	MD5 string
}

// ImportedAnalysis is an analysis of another repository that speaks Song's protocol, to be stored with its ids, state and history.
type ImportedAnalysis struct {
	ID, Study            string
	State                AnalysisState
	Type                 AnalysisTypeRef
	CreatedAt, UpdatedAt time.Time
	// History are the changes of its state, in any order.
	History []StateChange
	// Data is a JSON object with all other members but the files.
	Data json.RawMessage
	// Files are JSON objects, each with its objectId.
	Files []json.RawMessage
}

// StateChange is a change of the state of an analysis.
type StateChange struct {
	From, To AnalysisState
	At       time.Time
}

// ImportResult is what an import did with an analysis.
type ImportResult string

// Results of an import.
const (
	// ImportAdded: the analysis is new.
	ImportAdded ImportResult = "added"
	// ImportEqual: it was imported before and has not changed.
	ImportEqual ImportResult = "equal"
	// ImportUpdated: it was imported before and has changed in the other repository since.
	ImportUpdated ImportResult = "updated"
	// ImportKept: it has changed in tutti since it was imported, and not in the other repository.
	ImportKept ImportResult = "kept"
	// ImportConflict: it has changed in both repositories, or was not imported. It stays as it is.
	ImportConflict ImportResult = "conflict"
	// ImportSkipped: it cannot be stored.
	ImportSkipped ImportResult = "skipped"
)

// Entity is a file of an analysis in any state, as Score's server and client read it.
type Entity struct {
	ObjectID, AnalysisID, FileName, Study, Access string
}

// EntityQuery selects entities by exact values; an empty one selects all.
type EntityQuery struct {
	ObjectID, AnalysisID, FileName, Study, Access string
	// Offset and Limit select the rows, in the order of their object ids.
	Offset, Limit int
}

// IDSearch selects analyses by regular expressions (RE2, case-insensitive, matching anywhere) for ids of one of their samples, with
// its specimen and donor, and of one of their files. An empty expression selects all.
type IDSearch struct {
	DonorID, SpecimenID, SampleID                            string
	SubmitterDonorID, SubmitterSpecimenID, SubmitterSampleID string
	// FileID is for the object id of a file.
	FileID string
}

// FileChangeType is what a change of a file changed.
type FileChangeType string

// Types of changes of a file, as Song names them.
const (
	FileUnchanged       FileChangeType = "NO_UPDATE"
	FileContentChanged  FileChangeType = "CONTENT_UPDATE"
	FileMetadataChanged FileChangeType = "METADATA_UPDATE"
)

// FileChange is the result of a change of a file.
type FileChange struct {
	Type       FileChangeType
	AnalysisID string
	// State is the state of the analysis, which the change does not affect.
	State AnalysisState
	// Before is the file before the change, a JSON object.
	Before json.RawMessage
}
