package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"tutti/internal/core"
)

// uniqueViolation is PostgreSQL's SQLSTATE for a value that is there already.
const uniqueViolation = "23505"

// Fault gives err as a core.Error, nil for nil: CodeNotFound for a row that is not there, CodeConflict for a value that
// must be unique and is there already, CodeInternal for a statement that the database does not accept, CodeUnavailable
// for everything else that a database says. doing is what was being done, in the gerund. An error that is a core.Error is given as it is.
func Fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return core.WrapError(core.CodeNotFound, doing+": there is none", err)
	case isUnique(err):
		return core.WrapError(core.CodeConflict, doing+": it is there already", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return core.WrapError(core.CodeUnavailable, doing+": the store did not answer in time", err)
	case isStatement(err):
		return core.WrapError(core.CodeInternal, doing, err)
	}
	return core.WrapError(core.CodeUnavailable, doing+": the store does not answer", err)
}

func isUnique(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == uniqueViolation
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// isStatement tells whether the database answered, and found the statement or its values at fault.
func isStatement(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code[:2] {
		case "22", "23", "42": // bad data, a broken rule, bad syntax
			return true
		}
		return false
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_RANGE:
			return true
		}
	}
	return false
}
