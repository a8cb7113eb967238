package store

import (
	"context"
	"embed"
	"errors"
	"io/fs"

	"github.com/pressly/goose/v3"

	"tutti/internal/core"
)

//go:embed migrations
var migrations embed.FS

// migrate brings the tables up to date. Processes that start together do it one after the other.
func (s *Store) migrate(ctx context.Context) error {
	if s.postgres {
		err := s.tryMigrate(ctx, goose.DialectPostgres, "migrations/postgres", goose.WithSessionLocker(migrationLock{}))
		if stateOf(err) == stateTableExists {
			return &core.Error{
				Code: core.CodeConflict, Message: "the store's database holds another program's tables of the same names",
				Hint: "give tutti a database of its own, or a schema by search_path in the store's URL", Err: err,
			}
		}
		return err
	}
	for try := 1; ; try++ {
		// Without a lock the slower process finds the tables made meanwhile: each migration is one transaction.
		err := s.tryMigrate(ctx, goose.DialectSQLite3, "migrations/sqlite")
		if err == nil || try == sqliteTries || core.CodeOf(err) == core.CodeConflict || ctx.Err() != nil {
			return err
		}
	}
}

func (s *Store) tryMigrate(ctx context.Context, dialect goose.Dialect, folder string, options ...goose.ProviderOption) error {
	const doing = "bringing the store's tables up to date"
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return core.WrapError(core.CodeInternal, doing, err)
	}
	options = append(options, goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
	provider, err := goose.NewProvider(dialect, s.write, files, options...)
	if err != nil {
		return core.WrapError(core.CodeInternal, doing, err)
	}
	current, err := provider.GetDBVersion(ctx)
	if err != nil {
		return readFault(err)
	}
	sources := provider.ListSources()
	if newest := sources[len(sources)-1].Version; current > newest {
		return &core.Error{
			Code: core.CodeConflict, Message: "the store was written by a newer tutti",
			Hint: "start that version, or restore a copy of the store from before", Err: errors.New("unknown migration"),
		}
	}
	_, err = provider.Up(ctx)
	return Fault(doing, err)
}

// readFault is the error of tables whose version could not be read: that a file is no database can show only now.
func readFault(err error) error {
	if opening := openFault(err); core.HintOf(opening) != "" {
		return opening
	}
	return Fault("reading the version of the store's tables", err)
}
