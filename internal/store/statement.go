package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxStatements is how many texts of statements are kept prepared. Preparing costs several times what a small statement
// does. Nothing is put out again, as rows may still be read from it; a text that finds no place is prepared at each call.
const maxStatements = 256

// statements runs statements on SQLite's one connection that writes, and keeps them prepared. It is for one goroutine.
type statements struct {
	conn *sql.Conn
	// exec and query are apart: running a statement again resets it, also when somebody still reads its rows.
	exec, query map[string]*sql.Stmt
}

func newStatements(conn *sql.Conn) *statements {
	return &statements{conn: conn, exec: map[string]*sql.Stmt{}, query: map[string]*sql.Stmt{}}
}

var _ Conn = (*statements)(nil)

// prepared returns the statement of a text, nil when it is not kept.
func (s *statements) prepared(ctx context.Context, kept map[string]*sql.Stmt, query string) *sql.Stmt {
	if stmt, ok := kept[query]; ok {
		return stmt
	}
	if len(kept) >= maxStatements {
		return nil
	}
	stmt, err := s.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil // whoever runs the text now gets the error
	}
	kept[query] = stmt
	return stmt
}

// close ends what was prepared: the connection would stay open behind it, and with it the log.
func (s *statements) close() {
	for _, kept := range []map[string]*sql.Stmt{s.exec, s.query} {
		for _, stmt := range kept {
			_ = stmt.Close() // the connection goes as well
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
	// Binding arguments is what notices that rows of the same statement are still read.
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

// isBusyStatement reports whether a prepared statement was not run because its rows are still read.
func isBusyStatement(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_MISUSE
}

// reader reads SQLite and keeps statements prepared, for any number of goroutines.
type reader struct {
	db   *sql.DB
	mu   sync.RWMutex
	kept map[string]*sql.Stmt
}

func newReader(db *sql.DB) *reader { return &reader{db: db, kept: map[string]*sql.Stmt{}} }

var _ Conn = (*reader)(nil)

// prepared returns the statement of a text, nil when it is not kept.
func (r *reader) prepared(ctx context.Context, query string) *sql.Stmt {
	r.mu.RLock()
	stmt, ok := r.kept[query]
	full := len(r.kept) >= maxStatements
	r.mu.RUnlock()
	if ok || full {
		return stmt
	}
	stmt, err := r.db.PrepareContext(ctx, query)
	if err != nil {
		return nil // whoever runs the text now gets the error
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if first, ok := r.kept[query]; ok {
		_ = stmt.Close() // nobody has it
		return first
	}
	r.kept[query] = stmt
	return stmt
}

// ExecContext is refused by the database: what reads changes nothing.
func (r *reader) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return r.db.ExecContext(ctx, query, args...)
}

// QueryContext runs a statement that returns rows.
func (r *reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if stmt := r.prepared(ctx, query); stmt != nil {
		return stmt.QueryContext(ctx, args...)
	}
	return r.db.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a statement that returns one row at most.
func (r *reader) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if stmt := r.prepared(ctx, query); stmt != nil {
		return stmt.QueryRowContext(ctx, args...)
	}
	return r.db.QueryRowContext(ctx, query, args...)
}
