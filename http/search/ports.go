package search

import (
	"context"

	"tutti/internal/core"
)

// Ports is what a Surface needs; each member is required.
type Ports struct {
	Catalogues Catalogues
	GraphQL    GraphQL
	Downloads  Downloads
}

// Catalogues returns the catalogues that can be searched.
type Catalogues interface {
	// Catalogues returns all catalogues as they are now, at once and never nil: the same pointer as long as nothing changed;
	// inside a new set, the same *Catalogue for what did not change.
	Catalogues() *core.CatalogueSet
}

// GraphQL executes GraphQL operations on the documents of a catalogue (CONTRACT section 5).
type GraphQL interface {
	// Execute answers one operation on the catalogue of an id for a caller, the zero Principal without
	// authentication. What is wrong with the operation is in the response. The end of ctx ends the work on it. CodeNotFound when there is
	// no such catalogue or it has failed, CodeUnavailable or CodeOverloaded when nothing can be executed now.
	Execute(ctx context.Context, catalogueID string, who core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error)
}

// Downloads writes the documents of a catalogue as files (CONTRACT section 5).
type Downloads interface {
	// Download calls begin and writes the file to the writer that begin returns; the end of ctx, or of the client, ends it with an error.
	// CodeInvalid for params at fault, CodeNotFound when there is no such catalogue or it has failed, CodeForbidden when it
	// offers no downloads, CodeUnavailable or CodeOverloaded when they cannot be read now.
	Download(ctx context.Context, catalogueID string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error
}
