package store

import (
	"context"
	"embed"
	"errors"
	"io/fs"

	"github.com/pressly/goose/v3"

	"tutti/internal/core"
	"tutti/internal/store/connection"
)

//go:embed migrations
var migrations embed.FS

// migrate updates the tables to the newest version. Processes that start together migrate one after the other.
func (s *Store) migrate(ctx context.Context) error {
	if s.postgres {
		unlock, err := s.lockMigrations(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		err = s.tryMigrate(ctx, goose.DialectPostgres, "migrations/postgres")
		if connection.State(err) == stateTableExists {
			return &core.Error{
				Code: core.CodeConflict, Message: "the store's database contains another program's tables with the same names",
				Hint: "use a separate database for tutti, or a separate schema with search_path in store.url", Err: err,
			}
		}
		return err
	}
	for try := 1; ; try++ {
		// There is no lock: the slower process may find that the tables exist already. Each migration is one transaction.
		err := s.tryMigrate(ctx, goose.DialectSQLite3, "migrations/sqlite")
		if err == nil || try == sqliteTries || core.CodeOf(err) == core.CodeConflict || ctx.Err() != nil {
			return err
		}
	}
}

func (s *Store) tryMigrate(ctx context.Context, dialect goose.Dialect, folder string) error {
	const doing = "migrating the store's tables"
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return core.WrapError(core.CodeInternal, doing, err)
	}
	provider, err := goose.NewProvider(dialect, s.write, files, goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return core.WrapError(core.CodeInternal, doing, err)
	}
	current, err := provider.GetDBVersion(ctx)
	if err != nil {
		return versionError(err)
	}
	sources := provider.ListSources()
	if newest := sources[len(sources)-1].Version; current > newest {
		return &core.Error{
			Code: core.CodeConflict, Message: "the store was written by a newer tutti",
			Hint: "start that version, or restore an older backup of the store", Err: errors.New("unknown migration"),
		}
	}
	_, err = provider.Up(ctx)
	return WrapError(doing, err)
}

// versionError wraps an error of reading the tables' version, where a file that is not a database may show first.
func versionError(err error) error {
	if opening := openError(err); core.HintOf(opening) != "" {
		return opening
	}
	return WrapError("reading the version of the store's tables", err)
}
