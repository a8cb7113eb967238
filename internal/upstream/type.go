package upstream

import (
	"context"

	"tutti/internal/base/setting"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// Type describes one type of repository: what tutti needs to know of its protocol, its settings, and how to open a client.
type Type struct {
	// Name is the value of the key type.
	Name core.RepositoryType
	// Documents are the kinds of documents that records can become, the default first.
	Documents []Documents
	// Exclusions are the lists of ids by which records can be excluded.
	Exclusions []Exclusion
	// Organization and Organizations name one and several organizations of a repository in messages.
	Organization, Organizations string
	// NonOverlapping is set if pages cannot overlap, because the offset of a page must be a multiple of its size.
	NonOverlapping bool
	// Topic is the default name of the Kafka topic of its change notifications, "" for none.
	Topic string
	// Events is the format of its change notifications. EventServer returns the name of the server in the events of a repository; if it
	// is nil, that is the repository's code.
	Events      core.EventFormat
	EventServer func(Settings) string
	// Section is the member of a repository's configuration that holds the type's settings, which NewSettings returns.
	Section     string
	NewSettings func() Settings
	// ListPath returns the path below the repository's URL that lists its organizations.
	ListPath func(Settings) string
	// Open returns a client of a repository, CodeInvalid for invalid settings. It is nil for the built-in repository.
	Open func(Config, Settings) (Reader, error)
}

// Exclusion describes one list of ids of a repository's exclude: records with one of them are not indexed.
type Exclusion struct {
	// List is the list's key, such as donors, and Doc its description.
	List, Doc string
	// Value returns the record's own id or organization. It is nil if Path is set: the names of the members that lead to the ids in
	// a record's Body, joined by dots; a member that is an array stands for each of its items.
	Value func(rec core.Record) string
	Path  string
}

// ExcludeOrganizations is the list of excluded organizations, which each type has.
const ExcludeOrganizations = "organizations"

// ByOrganization returns the list of the organizations whose records are excluded.
func ByOrganization(doc string) Exclusion {
	return Exclusion{List: ExcludeOrganizations, Doc: doc, Value: func(rec core.Record) string { return rec.Organization }}
}

// ByRecord returns the list of the records that are excluded.
func ByRecord(list, doc string) Exclusion {
	return Exclusion{List: list, Doc: doc, Value: func(rec core.Record) string { return rec.ID }}
}

// Documents describes one kind of documents that a type's records can become.
type Documents struct {
	// Name is the value of the key documents.
	Name string
	// Fields are the document fields that identify a record, Known those that every document has.
	Fields core.RecordFields
	Known  func() *mapping.Field
	// Above is the path of the object in a document that has the members of a record, "" for the document itself.
	Above string
	// DocumentType is the document type of a default catalogue.
	DocumentType string
	// Append appends the document of a record to dst. It is nil if Split is set, which calls each with the documents of a record
	// and their ids; a document is valid until each returns. Split returns CodeInvalid, before any call of each, for a record that
	// cannot be documents, and an error of each unchanged. block is RepositoriesBlock's.
	Append func(dst []byte, rec core.Record, block []byte) []byte
	Split  func(rec core.Record, block []byte, each func(id string, document []byte) error) error
}

// DefaultDocuments is the name of the default kind of documents, the records themselves.
const DefaultDocuments = "record"

// DocumentsOf returns a kind of documents by its name; ok is false, with the default kind, when the type has none of that name.
func (t Type) DocumentsOf(name string) (kind Documents, ok bool) {
	for _, kind := range t.Documents {
		if kind.Name == name {
			return kind, true
		}
	}
	return t.Documents[0], false
}

// Settings are the settings of one type of repository.
type Settings interface {
	// Keys returns the keys of the section, bound to the settings.
	Keys() []setting.Key
	// Missing returns a key without a value that the type requires, with a hint, "" for none.
	Missing() (key, hint string)
}

// Reader reads one repository; the clients of all types implement it.
type Reader interface {
	core.Upstream
	// Close closes idle connections.
	Close()
}

// Declarer is a Reader of a repository that declares the types of its records' fields.
type Declarer interface {
	// Declared returns the declared types by the paths of records. If there are none, it returns why, in words, if that is known. Errors are
	// those of Organizations.
	Declared(ctx context.Context) (types *mapping.Types, none string, err error)
}

// RecordDeclarer is a Declarer whose records name what declares their fields.
type RecordDeclarer interface {
	Declarer
	// Declares reports whether what the last call of Declared returned includes what declares the fields of a record; true if that is not known.
	Declares(rec core.Record) bool
}

// Reviser is a Declarer that can tell cheaply whether it declares something else by now.
type Reviser interface {
	Declarer
	// Revision returns a value that changes whenever Declared may return something else.
	Revision(ctx context.Context) (string, error)
}
