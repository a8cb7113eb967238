package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"tutti/internal/core"
	"tutti/internal/store/prepared"
)

// Tx is a transaction. After a failed statement it can only be rolled back, on both databases.
type Tx struct {
	Conn
	postgres bool
}

// inTransaction marks the context of a change.
type inTransaction struct{}

// runChange runs change and returns a panic as an error, so that the database never stays in a transaction.
func runChange(ctx context.Context, tx *Tx, change func(context.Context, *Tx) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = core.WrapError(core.CodeInternal, "an internal error occurred", fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	return change(context.WithValue(ctx, inTransaction{}, true), tx)
}

// errTxAborted is the error of statements in a SQLite transaction after one failed, as in PostgreSQL (SQLSTATE 25P02).
var errTxAborted = errors.New("an earlier statement of the transaction failed")

// groupTx is the Conn of one SQLite transaction in a group that shares the writer's connection and database transaction. It never
// interrupts a running statement, which would roll back the whole group. It runs no statement after a failed one, which may have
// ended the group's transaction, or after its own transaction has ended.
type groupTx struct {
	conn   *prepared.Writer
	failed atomic.Bool
	ended  atomic.Bool
}

var _ Conn = (*groupTx)(nil)

// check returns the reason why no statement may run, nil when one may.
func (s *groupTx) check(ctx context.Context) error {
	switch {
	case s.ended.Load():
		return sql.ErrTxDone
	case s.failed.Load():
		return errTxAborted
	}
	return ctx.Err()
}

// recordError records that a statement failed.
func (s *groupTx) recordError(err error) {
	if err != nil {
		s.failed.Store(true)
	}
}

// ExecContext runs a statement that returns no rows.
func (s *groupTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	result, err := s.conn.ExecContext(context.WithoutCancel(ctx), query, args...)
	s.recordError(err)
	return result, err
}

// QueryContext runs a statement that returns rows.
func (s *groupTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	rows, err := s.conn.QueryContext(context.WithoutCancel(ctx), query, args...)
	s.recordError(err)
	return rows, err
}

// QueryRowContext runs a statement that returns one row at most.
func (s *groupTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s.check(ctx) != nil {
		ended, end := context.WithCancel(ctx)
		end()
		return s.conn.Conn.QueryRowContext(ended, query, args...) // does not run
	}
	row := s.conn.QueryRowContext(context.WithoutCancel(ctx), query, args...)
	s.recordError(row.Err())
	return row
}

// end ends the transaction for its change, and returns the reason to roll back although the change returned no error.
func (s *groupTx) end() error {
	s.ended.Store(true)
	if s.failed.Load() {
		return core.WrapError(core.CodeInternal, "a statement of the transaction failed", errTxAborted)
	}
	return nil
}
