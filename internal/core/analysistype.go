package core

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
	// Options are those that were given, or kept of the version before; a list that was never given is nil, and a default
	// stands for it where it is read.
	Options AnalysisOptions
	// Schema is the dynamic schema as it was registered, a JSON object.
	Schema json.RawMessage
}

// AnalysisOptions are the checks beside the schema. A nil list was never given; an empty one was cleared.
type AnalysisOptions struct {
	// FileTypes are the values that a file's fileType may have; none checks nothing.
	FileTypes           []string             `json:"fileTypes"`
	ExternalValidations []ExternalValidation `json:"externalValidations"`
}

// ExternalValidation is a service that is asked whether a value is valid.
type ExternalValidation struct {
	// URL is a template with the tokens {study} and {value}.
	URL string `json:"url"`
	// JSONPath is where the value stands in an analysis; a leading "$." may be missing.
	JSONPath string `json:"jsonPath"`
}

// AnalysisTypeQuery says which analysis types are listed.
type AnalysisTypeQuery struct {
	// Names and Versions narrow the list; none means any.
	Names    []string
	Versions []int
	// Sort is "version" or "name", upwards unless Descending; "" lists the last registered first, and with Descending the
	// first.
	Sort       string
	Descending bool
	Limit      int
	Offset     int
}

// Violation is one fault of an analysis or of a registration.
type Violation struct {
	// Pointer is a JSON pointer (RFC 6901) to what is at fault, "" for the whole.
	Pointer string `json:"pointer"`
	// Message is safe to display.
	Message string `json:"message"`
	// Keyword is that of JSON Schema that was violated, or the name of the option.
	Keyword string `json:"keyword"`
	// Retryable is true when the same analysis may be valid later: an external service could not be asked.
	Retryable bool `json:"retryable,omitempty"`
}

// AnalysisTypeRef names one version of an analysis type.
type AnalysisTypeRef struct {
	Name    string
	Version int
}
