package upstream

import (
	"context"

	"tutti/internal/config/setting"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// Type describes one type of repository: what tutti needs to know of its protocol, its settings, and how to open a client.
type Type struct {
	// Name is the value of the key type.
	Name core.RepositoryType
	// Fields are the document fields that identify a record, Known those that every record has.
	Fields core.RecordFields
	Known  func() *mapping.Field
	// Organization and Organizations name one and several organizations of a repository in messages.
	Organization, Organizations string
	// DocumentType is the document type of a default catalogue.
	DocumentType string
	// NonOverlapping is set if the rows of a page cannot be compared with those of the page before: the repository counts in whole pages.
	NonOverlapping bool
	// Topic is the default name of the Kafka topic of its change notifications, "" for none.
	Topic string
	// Section is the member of a repository's configuration that holds the type's settings, which NewSettings returns.
	Section     string
	NewSettings func() Settings
	// ListPath returns the path below the repository's URL that lists its organizations.
	ListPath func(Settings) string
	// Open returns a client of a repository, CodeInvalid for invalid settings. It is nil for the built-in repository.
	Open func(Config, Settings) (Reader, error)
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
	// Organizations returns the ids of all organizations.
	Organizations(ctx context.Context) ([]string, error)
	// Page calls each for the records of a page.
	Page(ctx context.Context, organization string, offset, limit int, each func(core.Record) error) (core.PageInfo, error)
	// Record returns one record.
	Record(ctx context.Context, organization, id string) (core.Record, error)
	// Close closes idle connections.
	Close()
}
