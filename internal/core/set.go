package core

import (
	"encoding/json"
	"time"
)

// SavedSet is what is kept of a saved set beside its members: the values of one field in the documents that matched a filter
// when it was saved (CONTRACT sections 5 and 6).
type SavedSet struct {
	// ID names the set in filters, as set_id:<id>. Nobody can guess one.
	ID string
	// Owner is the Principal.ID of who saved it, who alone can use it.
	Owner string
	// Catalogue is the id of the catalogue that it was saved in, Type what its documents are called there.
	Catalogue, Type string
	// Path is the field whose values the members are, as the client named it.
	Path string
	// UserID is what the client calls the owner, "" when it does not. It grants nothing.
	UserID string
	// SQON is the filter as the client sent it; nil for all documents.
	SQON json.RawMessage
	// Size is the number of members.
	Size int
	// CreatedAt, UsedAt and ExpiresAt are in UTC. Using a set puts off its end.
	CreatedAt, UsedAt, ExpiresAt time.Time
}
