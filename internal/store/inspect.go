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
	sqlite3 "modernc.org/sqlite/lib"

	"tutti/internal/core"
)

// Report is the result of Inspect.
type Report struct {
	// Engine is the database and its version, such as "PostgreSQL 15.4".
	Engine string
	// File is SQLite's file, Exists whether it exists. Both are zero for PostgreSQL.
	File   string
	Exists bool
	// Unreadable is set when a process left SQLite's file behind without closing it, so that it cannot be read without changing
	// it. The following fields are unknown then.
	Unreadable bool
	// Version is that of the tables, 0 when there are none; Newest is the version that Open migrates them to.
	Version, Newest int64
	// Studies and Keys count the studies and the API keys that are neither revoked nor expired.
	Studies, Keys int
	// Analyses is about the stored analyses and their types.
	Analyses AnalysesReport
	// Postgres is nil for SQLite.
	Postgres *PostgresReport
}

// PostgresReport is the part of a Report about a PostgreSQL database.
type PostgresReport struct {
	// Schema is the schema of the tables, "" when the search path names none that exists.
	Schema string
	// CanCreate reports whether the user may create tables there.
	CanCreate bool
	// Missing lists the privileges on existing tables that the user lacks, such as "INSERT on study".
	Missing []string
	// ReadOnly is set when the server accepts no changes, like a standby.
	ReadOnly bool
	// Encoding is the database's encoding, UTF8 by default.
	Encoding string
	// Pooled reports whether the server is behind a connection pooler.
	Pooled bool
	// Durable reports whether a commit is on disk when the server confirms it: fsync and synchronous_commit are on.
	Durable bool
}

// Inspect examines the database of cfg without changing it: it creates no file and no table, and does not disturb processes that
// have the database open. Errors: CodeInvalid for a bad Config or a file that is not a database, CodeForbidden when the database
// rejects the user, CodeNotFound when the PostgreSQL server has no database of that name, CodeUnavailable when it does not answer.
func Inspect(ctx context.Context, cfg Config) (Report, error) {
	if err := cfg.validate(); err != nil {
		return Report{}, err
	}
	if cfg.URL != "" {
		return inspectPostgres(ctx, cfg)
	}
	return inspectSQLite(ctx, filepath.Join(cfg.Dir, sqliteFile))
}

// newest returns the version of the last migration in a folder.
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

func inspectSQLite(ctx context.Context, file string) (Report, error) {
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
		return r, sqliteError(err)
	case info.IsDir():
		return r, core.NewError(core.CodeInvalid, "the path of the store's file is a directory")
	}
	r.Exists = true
	dsn, readable := inspectDSN(file)
	if !readable {
		r.Unreadable = true
		return r, nil
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return r, WrapError("opening the store", err)
	}
	defer func() { _ = db.Close() }() // nothing was written
	db.SetMaxOpenConns(1)
	if err := db.QueryRowContext(ctx, "SELECT 'SQLite ' || sqlite_version()").Scan(&r.Engine); err != nil {
		return r, sqliteError(err)
	}
	var tables int
	const migrated = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '" + goose.DefaultTablename + "'"
	if err := db.QueryRowContext(ctx, migrated).Scan(&tables); err != nil {
		return r, sqliteError(err)
	}
	if tables == 0 {
		return r, nil
	}
	return r, sqliteError(r.count(ctx, db))
}

// inspectDSN returns a read-only DSN of a file. While a process has the file open, its log and the log's index exist and are read
// too. If they were missing, SQLite would create them, perhaps with another owner, so a file without a log is opened as immutable.
// A log without an index cannot be read this way.
func inspectDSN(file string) (dsn string, readable bool) {
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

// count reads the version of the tables and counts their rows.
func (r *Report) count(ctx context.Context, db Conn) error {
	err := db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM "+goose.DefaultTablename).Scan(&r.Version)
	if err != nil || r.Version == 0 || r.Version > r.Newest {
		return err
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM study").Scan(&r.Studies); err != nil {
		return err
	}
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM api_key WHERE revoked_at = 0 AND (expires_at = 0 OR expires_at > $1)",
		Micros(time.Now())).Scan(&r.Keys)
	if err != nil {
		return err
	}
	return r.analyses(ctx, db)
}

// sqliteError wraps an error of SQLite's file.
func sqliteError(err error) error {
	switch code := codeOf(err); {
	case code == sqlite3.SQLITE_NOTADB, code == sqlite3.SQLITE_CORRUPT:
		return &core.Error{
			Code: core.CodeInvalid, Message: "the store's file is damaged or not a SQLite database",
			Hint: "restore it from a backup, or move it away to start with an empty store", Err: err,
		}
	case isDenied(err):
		return &core.Error{Code: core.CodeForbidden, Message: "the store's file cannot be opened", Hint: "make tutti's user its owner", Err: err}
	}
	return WrapError("inspecting the store", err)
}
