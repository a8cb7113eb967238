package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"tutti/internal/core"
)

// Report is what Look found.
type Report struct {
	// Engine is the database and its version, such as "PostgreSQL 15.4".
	Engine string
	// File is SQLite's file, Exists whether it is there. Both are the zero value for PostgreSQL.
	File   string
	Exists bool
	// Unread tells that SQLite's file was left behind by a process that ended without closing it, and that it could not be
	// looked into without changing it. What follows is not known then.
	Unread bool
	// Version is that of the tables, 0 where there are none yet; Newest is the one that Open brings them to.
	Version, Newest int64
	// Studies and Keys count the studies, and the API keys that are neither revoked nor expired.
	Studies, Keys int
	// Postgres is nil for SQLite.
	Postgres *PostgresReport
}

// PostgresReport is what Look found of a PostgreSQL database.
type PostgresReport struct {
	// Schema is where the tables are or will be made, "" when the search path names none that exists.
	Schema string
	// Creates reports whether the user may make tables there.
	Creates bool
	// Missing are the privileges on tables that are there which the user lacks, such as "INSERT on study".
	Missing []string
	// ReadOnly tells that the server takes no changes, as a standby does not.
	ReadOnly bool
	// Encoding is the database's, UTF8 unless somebody chose another.
	Encoding string
	// Durable tells that a commit is on disk when the server says so: fsync and synchronous_commit are on.
	Durable bool
}

// Look looks at the database that cfg names and changes nothing: it makes no file and no table, and disturbs no process
// that has the database open. Errors: CodeInvalid for a bad Config or a file that is no database, CodeForbidden when the
// database refuses the user, CodeNotFound when PostgreSQL has no such database, CodeUnavailable when it does not answer.
func Look(ctx context.Context, cfg Config) (Report, error) {
	if err := cfg.validate(); err != nil {
		return Report{}, err
	}
	if cfg.URL != "" {
		return lookAtPostgres(ctx, cfg.URL)
	}
	return lookAtSQLite(ctx, filepath.Join(cfg.Dir, sqliteFile))
}

// newest returns the version of the last migration in folder.
func newest(folder string) (int64, error) {
	names, err := fs.Glob(migrations, folder+"/*.sql")
	if err != nil {
		return 0, core.WrapError(core.CodeInternal, "listing the store's migrations", err)
	}
	var last int64
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, core.WrapError(core.CodeInternal, "listing the store's migrations", err)
		}
		last = max(last, version)
	}
	return last, nil
}

func lookAtSQLite(ctx context.Context, file string) (Report, error) {
	r := Report{File: file}
	var err error
	if r.Newest, err = newest("migrations/sqlite"); err != nil {
		return r, err
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case err != nil:
		return r, core.WrapError(core.CodeForbidden, "looking at the store", err)
	case info.IsDir():
		return r, core.NewError(core.CodeInvalid, "a folder stands in the place of the store's file")
	}
	r.Exists = true
	dsn, readable := lookDSN(file)
	if !readable {
		r.Unread = true
		return r, nil
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return r, Fault("opening the store", err)
	}
	defer func() { _ = db.Close() }() // nothing was written
	db.SetMaxOpenConns(1)
	if err := db.QueryRowContext(ctx, "SELECT 'SQLite ' || sqlite_version()").Scan(&r.Engine); err != nil {
		return r, sqliteFault(err)
	}
	var tables int
	const migrated = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '" + goose.DefaultTablename + "'"
	if err := db.QueryRowContext(ctx, migrated).Scan(&tables); err != nil {
		return r, sqliteFault(err)
	}
	if tables == 0 {
		return r, nil
	}
	return r, sqliteFault(r.count(ctx, db))
}

// lookDSN names a file as one that is only read. While a process has the file open, its log and the log's index are there,
// and are read along with it; were they not, they would be made, perhaps as another user's, and so a file without a log
// is read as one that nobody changes. A log without an index cannot be read so.
func lookDSN(file string) (dsn string, readable bool) {
	absolute, err := filepath.Abs(file)
	if err != nil {
		absolute = file
	}
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(2000)", "query_only(1)"}}
	_, logErr := os.Stat(file + "-wal")
	_, indexErr := os.Stat(file + "-shm")
	switch {
	case logErr != nil:
		q.Set("immutable", "1")
	case indexErr != nil:
		return "", false
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: absolute, RawQuery: q.Encode()}
	return u.String(), true
}

// count fills in what stands in the tables.
func (r *Report) count(ctx context.Context, db Conn) error {
	err := db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM "+goose.DefaultTablename).Scan(&r.Version)
	if err != nil || r.Version == 0 || r.Version > r.Newest {
		return err
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM study").Scan(&r.Studies); err != nil {
		return err
	}
	return db.QueryRowContext(ctx, "SELECT count(*) FROM api_key WHERE revoked_at = 0 AND (expires_at = 0 OR expires_at > $1)",
		Micros(time.Now())).Scan(&r.Keys)
}

// sqliteFault tells what is wrong with the file itself.
func sqliteFault(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
			return &core.Error{
				Code: core.CodeInvalid, Message: "the store's file is damaged, or not one of SQLite",
				Hint: "restore it from a copy, or move it away to begin anew", Err: err,
			}
		case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY:
			return &core.Error{
				Code: core.CodeForbidden, Message: "the store's file cannot be opened", Hint: "give it to tutti's user", Err: err,
			}
		}
	}
	return Fault("looking at the store", err)
}
