package core

import (
	"encoding/json"
	"time"
)

// SavedSet is the metadata of a saved set: the values of one field in the documents that matched a filter when it was saved
// (CONTRACT sections 5 and 6).
type SavedSet struct {
	// ID identifies the set in filters, as set_id:<id>. It cannot be guessed.
	ID string
	// Owner is the Principal.ID of the user who saved it; only the owner can use it.
	Owner string
	// Catalogue is the ID of its catalogue, Type the document type there.
	Catalogue, Type string
	// Path is the field of the members, as the client named it.
	Path string
	// UserID is the client's name for the owner, "" for none. It grants no access.
	UserID string
	// SQON is the filter as the client sent it; nil for all documents.
	SQON json.RawMessage
	// Size is the number of members.
	Size int
	// CreatedAt, UsedAt and ExpiresAt are in UTC. Using a set extends ExpiresAt.
	CreatedAt, UsedAt, ExpiresAt time.Time
}
