package core

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// GraphQLRequest is one GraphQL operation of a client.
type GraphQLRequest struct {
	Query, OperationName string
	// Variables is a JSON object, or null, or nil.
	Variables json.RawMessage
	// ReadOnly is set if mutations are not allowed: GET.
	ReadOnly bool
	// Header are the headers of the client's request; a federation forwards those that its configuration lists. Nil for none.
	Header http.Header
	// Caller is whose share of the memory the response counts towards.
	Caller Caller
}

// GraphQLResponse is the response to a GraphQLRequest.
type GraphQLResponse struct {
	// Body is a GraphQL response: {"data":…,"errors":…}.
	Body []byte
	// Rejected is set if nothing was executed: the request is not valid GraphQL, does not match the schema, exceeds a limit, or
	// has invalid variables. Body then has no data.
	Rejected bool
	// RejectedMutation is set if the operation is a mutation and GraphQLRequest.ReadOnly is set; Rejected is set then, too.
	RejectedMutation bool
	// Overloaded, unless nil, is why nothing was executed: too little memory was free. It is of CodeOverloaded; Rejected is set then, too.
	Overloaded error
	// Release, if not nil, returns Body to its pool, and its memory; Body must not be used afterwards. Call it at most once.
	Release func()
}

// Media types of downloads.
const (
	MediaTSV       = "text/tab-separated-values"
	MediaCSV       = "text/csv"
	MediaJSONLines = "application/x-ndjson"
	MediaJSON      = "application/json"
	// MediaArchive is a tar of several files, compressed with gzip.
	MediaArchive = "application/gzip"
)

// DownloadRequest requests documents of a catalogue as a file, or as several files in an archive (CONTRACT section 5).
type DownloadRequest struct {
	// Params is a JSON object that selects documents, columns and files, in the form of Arranger's clients or of this server. Its
	// members are not validated.
	Params json.RawMessage
	// Accept is the preferred supported media type of the client's Accept header, "" for none. It applies if Params does not set
	// the format.
	Accept string
	// Caller is whose limit the download counts towards.
	Caller Caller
}

// DownloadHead describes a download before its first byte.
type DownloadHead struct {
	// ContentType is a media type with its parameters.
	ContentType string
	// FileName is the suggested file name. It may contain any characters; characters that are invalid in file names are removed
	// later.
	FileName string
}

// BeginDownload starts a response and returns the writer of its body. It is called at most once, after all validation: an error
// before that reaches the client as an error, as does its own error, which means that the client does not accept the content
// type. A later error can only abort the download. The writer does not retain bytes, blocks on a slow client, and fails once the
// client is gone.
type BeginDownload func(DownloadHead) (io.Writer, error)

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
