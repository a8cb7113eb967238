// Package protocol registers the types of repository: what tutti needs to know of each type, and how to open its client. The document
// fields of a type are in core.RepositoryType, its settings in internal/config, its notifications in ingest.
package protocol

import (
	"context"
	"time"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
	"tutti/internal/upstream/local"
	"tutti/internal/upstream/lyric"
	"tutti/internal/upstream/song"
)

// Client reads one repository. Its methods are those of the clients below internal/upstream.
type Client interface {
	// Organizations returns the ids of all organizations.
	Organizations(ctx context.Context) ([]string, error)
	// Page calls each for the records of a page.
	Page(ctx context.Context, organization string, offset, limit int, each func(core.Record) error) (core.PageInfo, error)
	// Record returns one record.
	Record(ctx context.Context, organization, id string) (core.Record, error)
	// Close closes idle connections.
	Close()
}

var (
	_ Client = (*song.Client)(nil)
	_ Client = (*lyric.Client)(nil)
	_ Client = (*local.Client)(nil)
)

// Options are what the process adds to a repository's configuration. The zero value is the default.
type Options struct {
	// Timeout replaces the repository's timeout when it is shorter. Default 0: none.
	Timeout time.Duration
	// UserAgent is sent with each request.
	UserAgent string
	// MaxRecordBytes bounds a record in bytes. Default: that of the client.
	MaxRecordBytes int
	// Memory bounds the bytes of large records; nil means unbounded.
	Memory upstream.Memory
	// Metrics may be nil.
	Metrics *upstream.Metrics
	// Local is the built-in repository; required for core.TypeLocal.
	Local local.Repository
}

// Protocol describes one type of repository.
type Protocol struct {
	// Organization and Organizations name one and several organizations of a repository in messages.
	Organization, Organizations string
	// DocumentType is the document type of a default catalogue.
	DocumentType string
	// NonOverlapping is set if the rows of a page cannot be compared with those of the page before: the repository counts in whole pages.
	NonOverlapping bool
	// Known returns the fields that every record has.
	Known func() *mapping.Field
	// ListPath returns the path below the repository's URL that lists its organizations.
	ListPath func(config.Repository) string
	// Open returns a client of a repository. CodeInvalid for invalid settings.
	Open func(config.Repository, Options) (Client, error)
}

// Of returns the Protocol of a type of repository.
func Of(t core.RepositoryType) Protocol {
	studies := Protocol{
		Organization: "study", Organizations: "studies", DocumentType: "analysis", Known: mapping.Song,
		ListPath: func(config.Repository) string { return "studies/all" },
	}
	switch t {
	case core.TypeLyric:
		return Protocol{
			Organization: "organization", Organizations: "organizations", DocumentType: "record", Known: mapping.Lyric,
			NonOverlapping: true,
			ListPath:       func(r config.Repository) string { return "category/" + r.Lyric.CategoryID },
			Open:           openLyric,
		}
	case core.TypeLocal:
		studies.Open = openLocal
	case core.TypeSong:
		studies.Open = openSong
	}
	return studies
}

// client returns the settings that the clients of all types with a URL have.
func (o Options) client(r config.Repository) upstream.Config {
	timeout := r.Timeout
	if o.Timeout > 0 {
		timeout = min(o.Timeout, timeout)
	}
	return upstream.Config{
		URL: r.URL, Token: r.Token.Reveal(), Username: r.Username, Password: r.Password.Reveal(), Timeout: timeout,
		Concurrency: 2 * r.Concurrency, UserAgent: o.UserAgent, Repository: r.Code, MaxRecordBytes: o.MaxRecordBytes,
		Memory: o.Memory, Metrics: o.Metrics,
	}
}

func openSong(r config.Repository, o Options) (Client, error) {
	return song.New(song.Config{Config: o.client(r), States: r.Song.States})
}

func openLyric(r config.Repository, o Options) (Client, error) {
	return lyric.New(lyric.Config{
		Config: o.client(r), CategoryID: r.Lyric.CategoryID, ValidOnly: r.Lyric.ValidOnly, Entity: r.Lyric.Entity,
	})
}

func openLocal(r config.Repository, o Options) (Client, error) {
	return local.New(o.Local, local.Config{
		States: r.Song.States, Repository: r.Code, MaxRecordBytes: o.MaxRecordBytes, Metrics: o.Metrics,
	})
}
