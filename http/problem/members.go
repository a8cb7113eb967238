package problem

import (
	"strings"
	"time"

	"tutti/internal/core"
)

// IndexMembers is what a problem of /index has beside the others, for clients that know Maestro's answers.
type IndexMembers struct {
	Successful bool   `json:"successful"`
	Details    string `json:"details"`
}

// WithIndexMembers adds what /index has beside the others.
func (p Problem) WithIndexMembers() Problem {
	details := p.Hint
	if details == "" {
		details = p.Detail
	}
	p.Message = p.Detail
	p.IndexMembers = &IndexMembers{Details: details}
	return p
}

// MetadataMembers is what a problem of /schemas, /studies and /submit has beside the others, for clients that know Song's
// answers (CONTRACT section 0).
type MetadataMembers struct {
	ErrorID        string `json:"errorId"`
	HTTPStatusCode int    `json:"httpStatusCode"`
	// HTTPStatusName is in Song's form, such as NOT_FOUND.
	HTTPStatusName string `json:"httpStatusName"`
	RequestURL     string `json:"requestUrl"`
	// Timestamp is in milliseconds since 1970.
	Timestamp int64 `json:"timestamp"`
	// DebugMessage and StackTrace are empty: clients of Song take an error without them for another server's.
	DebugMessage string   `json:"debugMessage"`
	StackTrace   []string `json:"stackTrace"`
}

// WithMetadataMembers adds what /schemas, /studies and /submit have beside the others.
func (p Problem) WithMetadataMembers(errorID, requestURL string, now time.Time) Problem {
	p.Message = p.Detail
	p.MetadataMembers = &MetadataMembers{
		ErrorID: errorID, HTTPStatusCode: p.Status, RequestURL: requestURL, Timestamp: now.UnixMilli(),
		HTTPStatusName: p.StatusName(), StackTrace: []string{},
	}
	return p
}

// AmbiguousType is what the problem of a shared document type has beside the others, under the names of Arranger's answer.
type AmbiguousType struct {
	DocumentType         string             `json:"documentType"`
	MatchingCatalogueIDs []string           `json:"matchingCatalogueIds"`
	Error                AmbiguousTypeError `json:"error"`
}

// AmbiguousTypeError is the error of an AmbiguousType.
type AmbiguousTypeError struct {
	Code    core.Code `json:"code"`
	Message string    `json:"message"`
}

// GraphQLMembers is what a problem of a GraphQL path has beside the others, for clients that look for errors there.
type GraphQLMembers struct {
	Errors []GraphQLError `json:"errors"`
}

// GraphQLError is an error in the form of a GraphQL response.
type GraphQLError struct {
	Message    string            `json:"message"`
	Extensions GraphQLExtensions `json:"extensions"`
}

// GraphQLExtensions is what a GraphQLError has beside its message.
type GraphQLExtensions struct {
	Code string `json:"code"`
}

// StatusName returns the title of a problem as an upper-case name, such as NOT_FOUND.
func (p Problem) StatusName() string {
	return strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(p.Title))
}
