// Package prepared keeps the statements of SQLite prepared. Of tutti it must import nothing.
package prepared

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

// Writer runs statements on SQLite's one writing connection and keeps them prepared. It must be used by one goroutine.
type Writer struct {
	// Conn is the connection, for what must not be prepared.
	Conn *sql.Conn
	// exec and query are separate: running a statement again resets it, even while its rows are being read.
	exec, query map[string]*sql.Stmt
}

// NewWriter returns a Writer that closes conn with itself.
func NewWriter(conn *sql.Conn) *Writer {
	return &Writer{Conn: conn, exec: map[string]*sql.Stmt{}, query: map[string]*sql.Stmt{}}
}

// prepared returns the prepared statement of a text, nil when it is not prepared.
func (s *Writer) prepared(ctx context.Context, kept map[string]*sql.Stmt, query string) *sql.Stmt {
	if stmt, ok := kept[query]; ok {
		return stmt
	}
	if len(kept) >= maxStatements {
		return nil
	}
	stmt, err := s.Conn.PrepareContext(ctx, query)
	if err != nil {
		return nil // running the text returns the error
	}
	kept[query] = stmt
	return stmt
}

// Close closes the connection and its prepared statements, which would keep the connection and its log open.
func (s *Writer) Close() {
	for _, kept := range []map[string]*sql.Stmt{s.exec, s.query} {
		for _, stmt := range kept {
			_ = stmt.Close() // the connection is closed next
		}
	}
	_ = s.Conn.Close() // what was committed is synced
}

// ExecContext runs a statement that returns no rows.
func (s *Writer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if stmt := s.prepared(ctx, s.exec, query); stmt != nil {
		return stmt.ExecContext(ctx, args...)
	}
	return s.Conn.ExecContext(ctx, query, args...)
}

// QueryContext runs a statement that returns rows.
func (s *Writer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	// SQLite detects only when binding arguments that rows of the same statement are still being read.
	if len(args) > 0 {
		if stmt := s.prepared(ctx, s.query, query); stmt != nil {
			if rows, err := stmt.QueryContext(ctx, args...); !isBusyStatement(err) {
				return rows, err
			}
		}
	}
	return s.Conn.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a statement that returns one row at most.
func (s *Writer) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if len(args) > 0 {
		if stmt := s.prepared(ctx, s.query, query); stmt != nil {
			if row := stmt.QueryRowContext(ctx, args...); !isBusyStatement(row.Err()) {
				return row
			}
		}
	}
	return s.Conn.QueryRowContext(ctx, query, args...)
}

// isBusyStatement reports whether a prepared statement did not run because its rows are still being read.
func isBusyStatement(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_MISUSE
}

// Reader reads SQLite with prepared statements. It is safe for concurrent use.
type Reader struct {
	db   *sql.DB
	mu   sync.RWMutex
	kept map[string]*sql.Stmt
}

// NewReader returns a Reader of db.
func NewReader(db *sql.DB) *Reader {
	return &Reader{db: db, kept: map[string]*sql.Stmt{}}
}

// prepared returns the prepared statement of a text, nil when it is not prepared.
func (r *Reader) prepared(ctx context.Context, query string) *sql.Stmt {
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
func (r *Reader) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return r.db.ExecContext(ctx, query, args...)
}

// QueryContext runs a statement that returns rows.
func (r *Reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if stmt := r.prepared(ctx, query); stmt != nil {
		return stmt.QueryContext(ctx, args...)
	}
	return r.db.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a statement that returns one row at most.
func (r *Reader) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if stmt := r.prepared(ctx, query); stmt != nil {
		return stmt.QueryRowContext(ctx, args...)
	}
	return r.db.QueryRowContext(ctx, query, args...)
}
