package search

import (
	"context"
	"time"

	"tutti/internal/core"
)

// Ports are the dependencies of a Surface; all are required.
type Ports struct {
	Catalogues core.Catalogues
	GraphQL    GraphQL
	Downloads  Downloads
	Data       Data
}

// Data describes the documents of a catalogue.
type Data interface {
	// IndexedAt returns when the index of a catalogue last received a write that its readers can see, without blocking; the zero time if
	// that is unknown.
	IndexedAt(catalogueID string) time.Time
	// Values returns by field name the values in the documents that a caller sees: at most most of a keyword or a boolean, the bounds of
	// a number or a date. Other fields are absent, and those that are not among fields unless it is nil. CodeNotFound if the catalogue does not exist or has failed, CodeUnavailable or
	// CodeOverloaded if nothing can be counted now.
	Values(ctx context.Context, catalogueID string, who core.Principal, fields []string, most int) (map[string]core.FieldValues, error)
}

// GraphQL executes GraphQL operations on the documents of a catalogue (CONTRACT section 5).
type GraphQL interface {
	// Execute runs one operation on a catalogue. The Principal is zero for an anonymous caller. Errors of the operation are in the
	// response. The end of ctx stops the execution. CodeNotFound if the catalogue does not exist or has failed, CodeUnavailable or
	// CodeOverloaded if nothing can be executed now.
	Execute(ctx context.Context, catalogueID string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error)
}

// Downloads writes the documents of a catalogue as files (CONTRACT section 5).
type Downloads interface {
	// Download calls begin and writes the file to the writer that begin returns. The end of ctx and a disconnect of the client stop
	// it with an error. CodeInvalid for invalid params, CodeNotFound if the catalogue does not exist or has failed, CodeForbidden
	// if it offers no downloads, CodeUnavailable or CodeOverloaded if the documents cannot be read now.
	Download(ctx context.Context, catalogueID string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error
}
