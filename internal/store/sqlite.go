package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	_ "modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"tutti/internal/core"
)

const (
	// sqliteFile is the file name of the database in the data directory.
	sqliteFile = "tutti.db"
	// sqliteReaders is the number of connections for reading.
	sqliteReaders = 4
	// sqliteCache is the page cache of each connection in KiB.
	sqliteCache = 16 << 10
	// sqliteCheckpoint is the length of the log in pages of 4 KiB from which a commit copies them to the file: the same pages of its indices
	// are written again and again.
	sqliteCheckpoint = 8000
	// sqliteLog bounds the log's size on disk after a checkpoint, in bytes.
	sqliteLog = 64 << 20
	// sqliteMode grants access to the owner only: the database contains hashes of API keys. SQLite gives its log the same mode.
	sqliteMode = 0o600
	// sqliteTries bounds the attempts to prepare a new database while another process does the same.
	sqliteTries = 8
)

// sqliteDSN returns the DSN of a file with the settings of each connection: a write-ahead log that is synced at every commit.
func sqliteDSN(file string, readOnly bool) string {
	q := url.Values{}
	for _, p := range []string{
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "temp_store(MEMORY)",
		"cache_size(-" + strconv.Itoa(sqliteCache) + ")", "journal_size_limit(" + strconv.Itoa(sqliteLog) + ")",
		"wal_autocheckpoint(" + strconv.Itoa(sqliteCheckpoint) + ")",
	} {
		q.Add("_pragma", p)
	}
	q.Set("_dqs", "0") // a misspelt column in double quotes is an error, not a string
	if readOnly {
		q.Add("_pragma", "query_only(1)")
	} else {
		q.Set("_txlock", "immediate")
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: file, RawQuery: q.Encode()}
	return u.String()
}

func (s *Store) openSQLite(ctx context.Context) error {
	file, err := filepath.Abs(filepath.Join(s.cfg.Dir, sqliteFile))
	if err != nil {
		return core.WrapError(core.CodeInvalid, "resolving the store's directory", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return fileError("creating the store's directory", err)
	}
	if err := makePrivate(file); err != nil {
		return fileError("creating the store's file", err)
	}
	if s.write, err = sql.Open("sqlite", sqliteDSN(file, false)); err != nil {
		return WrapError("opening the store", err)
	}
	s.write.SetMaxOpenConns(1)
	if err := s.createLog(ctx); err != nil {
		_ = s.write.Close()
		return openError(err)
	}
	if s.read, err = sql.Open("sqlite", sqliteDSN(file, true)); err != nil {
		_ = s.write.Close()
		return WrapError("opening the store", err)
	}
	s.read.SetMaxOpenConns(sqliteReaders)
	s.read.SetMaxIdleConns(sqliteReaders)
	return nil
}

// createLog creates the log, which a read-only connection cannot. When two processes do so at once in a new database, SQLite
// rejects one of them without waiting.
func (s *Store) createLog(ctx context.Context) error {
	for try := 1; ; try++ {
		err := s.write.PingContext(ctx)
		if codeOf(err) != sqlite3.SQLITE_BUSY || try == sqliteTries || backoff(ctx, try) != nil {
			return err
		}
	}
}

// fileError returns the error of a file of the store, or its folder, that cannot be prepared.
func fileError(doing string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return openError(err)
	}
	return core.WrapError(core.CodeInvalid, doing, err)
}

// makePrivate creates the file for its owner only, and removes the permissions of others from an existing file. It never opens
// an existing file: closing it would release this process's locks on it.
func makePrivate(file string) error {
	made, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, sqliteMode)
	if err == nil {
		return made.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, name := range []string{file, file + "-wal", file + "-shm"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
		}
		if info.Mode().Perm()&^sqliteMode == 0 {
			continue
		}
		if err := os.Chmod(name, sqliteMode); err != nil {
			return err
		}
	}
	return nil
}
