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
	// sqliteFile is the name of the database in the data folder.
	sqliteFile = "tutti.db"
	// sqliteReaders is how many connections read SQLite side by side.
	sqliteReaders = 4
	// sqliteCache is how many KiB of pages each connection keeps.
	sqliteCache = 16 << 10
	// sqliteLog is how many bytes the log keeps on disk once it was emptied.
	sqliteLog = 64 << 20
	// sqliteMode is for the owner alone: the database holds the hashes of API keys. SQLite gives its log the same.
	sqliteMode = 0o600
	// sqliteTries is how often a new database is prepared when another process does the same.
	sqliteTries = 8
)

// sqliteDSN names file with what each of its connections needs: a write-ahead log that is synced at every commit.
func sqliteDSN(file string, readOnly bool) string {
	q := url.Values{}
	for _, p := range []string{
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "temp_store(MEMORY)",
		"cache_size(-" + strconv.Itoa(sqliteCache) + ")", "journal_size_limit(" + strconv.Itoa(sqliteLog) + ")",
	} {
		q.Add("_pragma", p)
	}
	q.Set("_dqs", "0") // a misspelt column in double quotes is no text
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
		return core.WrapError(core.CodeInvalid, "finding the folder of the store", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return core.WrapError(core.CodeInvalid, "making the folder of the store", err)
	}
	if err := private(file); err != nil {
		return core.WrapError(core.CodeInvalid, "making the file of the store", err)
	}
	if s.write, err = sql.Open("sqlite", sqliteDSN(file, false)); err != nil {
		return Fault("opening the store", err)
	}
	s.write.SetMaxOpenConns(1)
	if err := s.makeLog(ctx); err != nil {
		_ = s.write.Close()
		return openFault(err)
	}
	if s.read, err = sql.Open("sqlite", sqliteDSN(file, true)); err != nil {
		_ = s.write.Close()
		return Fault("opening the store", err)
	}
	s.read.SetMaxOpenConns(sqliteReaders)
	s.read.SetMaxIdleConns(sqliteReaders)
	return nil
}

// makeLog makes the log, which a reader may not. Of two processes that do so at once in a new database one is turned away
// without waiting.
func (s *Store) makeLog(ctx context.Context) error {
	for try := 1; ; try++ {
		err := s.write.PingContext(ctx)
		if codeOf(err) != sqlite3.SQLITE_BUSY || try == sqliteTries || !pause(ctx, try) {
			return err
		}
	}
}

// private makes the file for the owner alone, and takes from others what they may do to one that is there. It never opens
// a file that is there: closing it would end this process's locks on it.
func private(file string) error {
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
