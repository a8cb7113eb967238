package core

// RepositoryType is the protocol that a repository speaks.
type RepositoryType string

// Types of repository (CONTRACT section 9).
const (
	TypeSong  RepositoryType = "song"
	TypeLyric RepositoryType = "lyric"
	TypeLocal RepositoryType = "local"
)

// Repository is one configured source of records, with the metadata that is written into each document.
type Repository struct {
	Code string
	Type RepositoryType
	URL  string
	// IndexName is the alias for the repository's documents.
	IndexName string
	// Fields are the RecordFields of the type.
	Fields RecordFields
	// Name, Organization and Country describe the repository in a document's repositories block.
	Name         string
	Organization string
	Country      string
}

// RecordFields are the document fields that identify a record.
type RecordFields struct {
	// ID is the record's id, Organization its own organization.
	ID, Organization string
	// Document is the document's id if a record has several documents, empty if its document has the record's id.
	Document string
}

// Pause is a repository whose consumers are paused, and why. Reason is safe to display.
type Pause struct {
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
}

// Suffixes of the aliases of a rebuild.
const (
	NextSuffix     = "--next"
	PreviousSuffix = "--previous"
)

// NextAlias returns the alias of the index that a rebuild fills to replace that of alias.
func NextAlias(alias string) string { return alias + NextSuffix }

// PreviousAlias returns the alias of the index that alias had before its last rebuild.
func PreviousAlias(alias string) string { return alias + PreviousSuffix }
