package store

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tutti/internal/core"
)

// backupFile is the name of the copy that Backup makes in the data directory. One that a killed process left is replaced.
const backupFile = sqliteFile + ".backup"

// Backup calls add with the name and the size of SQLite's file and a function that writes its content as of one moment after the call.
// Transactions go on meanwhile. It needs as much free space in the data directory as the content has. CodeUnsupported for PostgreSQL.
// Calls must not overlap.
func (s *Store) Backup(ctx context.Context, add func(name string, size int64, write func(io.Writer) error) error) (err error) {
	const doing = "copying the store"
	if s.postgres {
		return core.NewError(core.CodeUnsupported, "PostgreSQL has its own backup, pg_dump")
	}
	copied := filepath.Join(s.cfg.Dir, backupFile)
	if err := removeIfExists(copied); err != nil {
		return core.WrapError(core.CodeUnavailable, doing, err)
	}
	defer func() { err = errors.Join(err, removeIfExists(copied)) }()
	file, err := filepath.Abs(filepath.Join(s.cfg.Dir, sqliteFile))
	if err != nil {
		return core.WrapError(core.CodeInvalid, "resolving the store's directory", err)
	}
	db, err := sql.Open("sqlite", sqliteDSN(file, false)) // not one of the connections of readers, which it would occupy
	if err != nil {
		return WrapError(doing, err)
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO $1", copied)
	if err = errors.Join(WrapError(doing, err), db.Close()); err != nil {
		return err
	}
	from, err := os.Open(copied)
	if err != nil {
		return core.WrapError(core.CodeUnavailable, doing, err)
	}
	defer func() { _ = from.Close() }() // only read
	info, err := from.Stat()
	if err != nil {
		return core.WrapError(core.CodeUnavailable, doing, err)
	}
	return add(sqliteFile, info.Size(), func(w io.Writer) error {
		_, err := io.Copy(w, from)
		return err
	})
}

func removeIfExists(file string) error {
	err := os.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
