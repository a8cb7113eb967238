package core

import (
	"encoding/json"
	"time"
)

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
