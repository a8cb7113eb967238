package problem

import (
	"strings"
	"time"

	"tutti/internal/core"
)

// IndexMembers are the additional members of a problem of /index, for clients of Maestro.
type IndexMembers struct {
	Successful bool   `json:"successful"`
	Details    string `json:"details"`
}

// WithIndexMembers adds the IndexMembers.
func (p Problem) WithIndexMembers() Problem {
	details := p.Hint
	if details == "" {
		details = p.Detail
	}
	p.Message = p.Detail
	p.IndexMembers = &IndexMembers{Details: details}
	return p
}

// MetadataMembers are the additional members of a problem of /schemas, /studies and /submit, for clients of Song (CONTRACT
// section 0).
type MetadataMembers struct {
	ErrorID        string `json:"errorId"`
	HTTPStatusCode int    `json:"httpStatusCode"`
	// HTTPStatusName is the status as Song writes it, such as NOT_FOUND.
	HTTPStatusName string `json:"httpStatusName"`
	RequestURL     string `json:"requestUrl"`
	// Timestamp is in milliseconds since 1970.
	Timestamp int64 `json:"timestamp"`
	// DebugMessage and StackTrace are empty: without them, clients of Song do not recognize the error as Song's.
	DebugMessage string   `json:"debugMessage"`
	StackTrace   []string `json:"stackTrace"`
}

// WithMetadataMembers adds the MetadataMembers.
func (p Problem) WithMetadataMembers(errorID, requestURL string, now time.Time) Problem {
	p.Message = p.Detail
	p.MetadataMembers = &MetadataMembers{
		ErrorID: errorID, HTTPStatusCode: p.Status, RequestURL: requestURL, Timestamp: now.UnixMilli(),
		HTTPStatusName: p.StatusName(), StackTrace: []string{},
	}
	return p
}

// AmbiguousType are the additional members of the problem of a shared document type, under the names that Arranger uses.
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

// GraphQLMembers are the additional members of a problem of a GraphQL path, for clients that read errors there.
type GraphQLMembers struct {
	Errors []GraphQLError `json:"errors"`
}

// GraphQLError is an error in the form of a GraphQL response.
type GraphQLError struct {
	Message    string            `json:"message"`
	Extensions GraphQLExtensions `json:"extensions"`
}

// GraphQLExtensions are the extensions of a GraphQLError.
type GraphQLExtensions struct {
	Code string `json:"code"`
}

// StatusName returns the title of a problem as an upper-case name, such as NOT_FOUND.
func (p Problem) StatusName() string {
	return strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(p.Title))
}
