package store

import (
	"context"
	"embed"
	"errors"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"tutti/internal/core"
)

//go:embed migrations
var migrations embed.FS

// migrate brings the tables up to date. Processes that start together on one PostgreSQL do it one after the other.
func (s *Store) migrate(ctx context.Context) error {
	dialect, folder := goose.DialectSQLite3, "migrations/sqlite"
	var options []goose.ProviderOption
	if s.postgres {
		dialect, folder = goose.DialectPostgres, "migrations/postgres"
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return core.WrapError(core.CodeInternal, "preparing the store's tables", err)
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return core.WrapError(core.CodeInternal, "preparing the store's tables", err)
	}
	provider, err := goose.NewProvider(dialect, s.write, files, options...)
	if err != nil {
		return Fault("preparing the store's tables", err)
	}
	current, err := provider.GetDBVersion(ctx)
	if err != nil {
		return Fault("reading the version of the store's tables", err)
	}
	sources := provider.ListSources()
	if newest := sources[len(sources)-1].Version; current > newest {
		return &core.Error{
			Code: core.CodeConflict, Message: "the store was written by a newer tutti",
			Hint: "start that version, or restore a copy of the store from before", Err: errors.New("unknown migration"),
		}
	}
	_, err = provider.Up(ctx)
	return Fault("bringing the store's tables up to date", err)
}
