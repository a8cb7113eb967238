package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"tutti/internal/core"
)

// Tx is a transaction. As soon as one of its statements fails it can only be undone, on both databases.
type Tx struct {
	Conn
	postgres bool
}

// inTransaction marks the context that a change gets.
type inTransaction struct{}

// guard runs change and makes an error of a panic, so that the database is never left inside a transaction.
func guard(ctx context.Context, tx *Tx, change func(context.Context, *Tx) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = core.WrapError(core.CodeInternal, "an internal error occurred", fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	return change(context.WithValue(ctx, inTransaction{}, true), tx)
}

// errUndone is what a transaction of SQLite gives after a statement failed, as PostgreSQL does (SQLSTATE 25P02).
var errUndone = errors.New("a statement of the transaction has failed before")

// shared is the Conn of one of SQLite's transactions, which share the writer's connection, and its transaction, with
// others. So no statement is interrupted once it runs, which would undo the others' work as well, and none runs after one
// failed, which can have ended the whole, or after the transaction is over.
type shared struct {
	conn   *statements
	failed atomic.Bool
	over   atomic.Bool
}

var _ Conn = (*shared)(nil)

// may returns why no statement may run.
func (s *shared) may(ctx context.Context) error {
	switch {
	case s.over.Load():
		return sql.ErrTxDone
	case s.failed.Load():
		return errUndone
	}
	return ctx.Err()
}

// note remembers that a statement failed.
func (s *shared) note(err error) {
	if err != nil {
		s.failed.Store(true)
	}
}

// ExecContext runs a statement that returns no rows.
func (s *shared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := s.may(ctx); err != nil {
		return nil, err
	}
	result, err := s.conn.ExecContext(context.WithoutCancel(ctx), query, args...)
	s.note(err)
	return result, err
}

// QueryContext runs a statement that returns rows.
func (s *shared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := s.may(ctx); err != nil {
		return nil, err
	}
	rows, err := s.conn.QueryContext(context.WithoutCancel(ctx), query, args...)
	s.note(err)
	return rows, err
}

// QueryRowContext runs a statement that returns one row at most.
func (s *shared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s.may(ctx) != nil {
		ended, end := context.WithCancel(ctx)
		end()
		return s.conn.conn.QueryRowContext(ended, query, args...) // runs nothing
	}
	row := s.conn.QueryRowContext(context.WithoutCancel(ctx), query, args...)
	s.note(row.Err())
	return row
}

// end ends the transaction for its change, and returns why it must be undone although the change gave no error.
func (s *shared) end() error {
	s.over.Store(true)
	if s.failed.Load() {
		return core.WrapError(core.CodeInternal, "a statement of the transaction failed", errUndone)
	}
	return nil
}
