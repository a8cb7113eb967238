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

// OrganizationField returns the document field with the record's own organization: Song's study or Lyric's organization.
func (r Repository) OrganizationField() string {
	if r.Type == TypeLyric {
		return "organization"
	}
	return "studyId"
}
