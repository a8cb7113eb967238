package datamodel

import (
	"encoding/json"
	"time"
)

// AnalysisType is one version of a schema that analyses are validated against (CONTRACT section 7).
type AnalysisType struct {
	Name string
	// Version counts the registrations of Name from 1, without gaps.
	Version   int
	CreatedAt time.Time
	// Options are those of the registration, or else of the previous version. A list that was never set is nil; readers apply the
	// default.
	Options AnalysisOptions
	// Schema is the registered dynamic schema, a JSON object.
	Schema json.RawMessage
}

// AnalysisOptions are the checks in addition to the schema. A nil list was never set; an empty one was cleared.
type AnalysisOptions struct {
	// FileTypes are the allowed values of a file's fileType; an empty list allows all.
	FileTypes           []string             `json:"fileTypes"`
	ExternalValidations []ExternalValidation `json:"externalValidations"`
}

// ExternalValidation is a service that validates a value.
type ExternalValidation struct {
	// URL is a template with the tokens {study} and {value}.
	URL string `json:"url"`
	// JSONPath is the location of the value in an analysis; a leading "$." may be missing.
	JSONPath string `json:"jsonPath"`
}

// AnalysisTypeQuery selects the analysis types to list.
type AnalysisTypeQuery struct {
	// Names and Versions filter the list; an empty one matches all.
	Names    []string
	Versions []int
	// Sort has "version" and "name", ascending unless Descending. None sorts by registration, latest first; with Descending, earliest
	// first.
	Sort       []string
	Descending bool
	Limit      int
	Offset     int
	// CountOnly lists no type, but counts those that match.
	CountOnly bool
}

// AnalysisTypeRef identifies one version of an analysis type.
type AnalysisTypeRef struct {
	Name    string
	Version int
}
