package store

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"tutti/internal/core"
)

// sqliteCache is how many KiB of pages each connection keeps.
const sqliteCache = 16 << 10

// sqliteDSN names file with what each of its connections needs: a write-ahead log that is synced at every commit.
func sqliteDSN(file string, readOnly bool) string {
	q := url.Values{}
	for _, p := range []string{
		"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(10000)", "foreign_keys(1)",
		"cache_size(-" + strconv.Itoa(sqliteCache) + ")", "temp_store(MEMORY)",
	} {
		q.Add("_pragma", p)
	}
	if readOnly {
		q.Add("_pragma", "query_only(1)")
	} else {
		q.Set("_txlock", "immediate")
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: file, RawQuery: q.Encode()}
	return u.String()
}

func (s *Store) openSQLite(ctx context.Context, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return core.WrapError(core.CodeInvalid, "making the folder of the store", err)
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return core.WrapError(core.CodeInvalid, "finding the folder of the store", err)
	}
	if s.write, err = sql.Open("sqlite", sqliteDSN(absolute, false)); err != nil {
		return Fault("opening the store", err)
	}
	s.write.SetMaxOpenConns(1)
	if err := s.write.PingContext(ctx); err != nil { // makes the file, which a reader may not
		_ = s.write.Close()
		return Fault("opening the store", err)
	}
	if s.read, err = sql.Open("sqlite", sqliteDSN(absolute, true)); err != nil {
		_ = s.write.Close()
		return Fault("opening the store", err)
	}
	s.read.SetMaxOpenConns(sqliteReaders)
	s.read.SetMaxIdleConns(sqliteReaders)
	return nil
}
