package core

import "encoding/json"

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
