package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxStatements bounds the prepared statements. Preparing costs several times as much as running a small statement. None is
// evicted, since rows may still be read from it; further texts are prepared at each call.
const maxStatements = 256

// statements runs statements on SQLite's one writing connection and keeps them prepared. It must be used by one goroutine.
type statements struct {
	conn *sql.Conn
	// exec and query are separate: running a statement again resets it, even while its rows are being read.
	exec, query map[string]*sql.Stmt
}

func newStatements(conn *sql.Conn) *statements {
	return &statements{conn: conn, exec: map[string]*sql.Stmt{}, query: map[string]*sql.Stmt{}}
}

var _ Conn = (*statements)(nil)

// prepared returns the prepared statement of a text, nil when it is not prepared.
func (s *statements) prepared(ctx context.Context, kept map[string]*sql.Stmt, query string) *sql.Stmt {
	if stmt, ok := kept[query]; ok {
		return stmt
	}
	if len(kept) >= maxStatements {
		return nil
	}
	stmt, err := s.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil // running the text returns the error
	}
	kept[query] = stmt
	return stmt
}

// close closes the prepared statements, which would keep the connection and its log open.
func (s *statements) close() {
	for _, kept := range []map[string]*sql.Stmt{s.exec, s.query} {
		for _, stmt := range kept {
			_ = stmt.Close() // the connection is closed next
		}
	}
	_ = s.conn.Close() // what was committed is synced
}

// ExecContext runs a statement that returns no rows.
func (s *statements) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if stmt := s.prepared(ctx, s.exec, query); stmt != nil {
		return stmt.ExecContext(ctx, args...)
	}
	return s.conn.ExecContext(ctx, query, args...)
}

// QueryContext runs a statement that returns rows.
func (s *statements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	// SQLite detects only when binding arguments that rows of the same statement are still being read.
	if len(args) > 0 {
		if stmt := s.prepared(ctx, s.query, query); stmt != nil {
			if rows, err := stmt.QueryContext(ctx, args...); !isBusyStatement(err) {
				return rows, err
			}
		}
	}
	return s.conn.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a statement that returns one row at most.
func (s *statements) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if len(args) > 0 {
		if stmt := s.prepared(ctx, s.query, query); stmt != nil {
			if row := stmt.QueryRowContext(ctx, args...); !isBusyStatement(row.Err()) {
				return row
			}
		}
	}
	return s.conn.QueryRowContext(ctx, query, args...)
}

// isBusyStatement reports whether a prepared statement did not run because its rows are still being read.
func isBusyStatement(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_MISUSE
}

// preparedReader reads SQLite with prepared statements. It is safe for concurrent use.
type preparedReader struct {
	db   *sql.DB
	mu   sync.RWMutex
	kept map[string]*sql.Stmt
}

func newPreparedReader(db *sql.DB) *preparedReader {
	return &preparedReader{db: db, kept: map[string]*sql.Stmt{}}
}

var _ Conn = (*preparedReader)(nil)

// prepared returns the prepared statement of a text, nil when it is not prepared.
func (r *preparedReader) prepared(ctx context.Context, query string) *sql.Stmt {
	r.mu.RLock()
	stmt, ok := r.kept[query]
	full := len(r.kept) >= maxStatements
	r.mu.RUnlock()
	if ok || full {
		return stmt
	}
	stmt, err := r.db.PrepareContext(ctx, query)
	if err != nil {
		return nil // running the text returns the error
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if first, ok := r.kept[query]; ok {
		_ = stmt.Close() // not in use
		return first
	}
	r.kept[query] = stmt
	return stmt
}

// ExecContext fails in the database: the connection is read-only.
func (r *preparedReader) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return r.db.ExecContext(ctx, query, args...)
}

// QueryContext runs a statement that returns rows.
func (r *preparedReader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if stmt := r.prepared(ctx, query); stmt != nil {
		return stmt.QueryContext(ctx, args...)
	}
	return r.db.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a statement that returns one row at most.
func (r *preparedReader) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if stmt := r.prepared(ctx, query); stmt != nil {
		return stmt.QueryRowContext(ctx, args...)
	}
	return r.db.QueryRowContext(ctx, query, args...)
}
