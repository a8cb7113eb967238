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
	// Name, Organization and Country describe the repository in a document's repositories block.
	Name         string
	Organization string
	Country      string
}

// RepositoryTypes returns all types of repository.
func RepositoryTypes() []RepositoryType { return []RepositoryType{TypeSong, TypeLyric, TypeLocal} }

// RecordFields are the document fields that identify a record.
type RecordFields struct {
	// ID is the record's id, Organization its own organization.
	ID, Organization string
}

// Fields returns the fields that identify the records of a type.
func (t RepositoryType) Fields() RecordFields {
	switch t {
	case TypeLyric:
		return RecordFields{ID: "systemId", Organization: "organization"}
	case TypeSong, TypeLocal:
	}
	return RecordFields{ID: "analysisId", Organization: "studyId"}
}

// Pause is a repository whose consumers are paused, and why. Reason is safe to display.
type Pause struct {
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
}
