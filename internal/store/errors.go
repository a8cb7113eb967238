package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"tutti/internal/core"
)

// SQLSTATEs of PostgreSQL (its manual, appendix A). The first two characters name a class.
const (
	stateUnique        = "23505"
	stateSerialization = "40001"
	stateDeadlock      = "40P01"
	stateDiskFull      = "53100"
	stateNoDatabase    = "3D000"
	stateTableExists   = "42P07"
	stateLogin         = "28"
	stateNotAText      = "22021" // bytes that are not UTF-8, or a zero byte
	stateNotAJSONText  = "22P05"
)

// Fault returns err as a core.Error, nil for nil: CodeNotFound for a row that is not there, CodeConflict for a value that
// must be unique and is there already, CodeInvalid for a text that PostgreSQL cannot keep, CodeTooLarge for a value over
// the database's limit, CodeInternal for a statement that the database does not accept and for a damaged database,
// CodeUnavailable for everything else that a database says. doing is what was being done, in the gerund. An error that is
// a core.Error is given as it is.
func Fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err
	}
	state, code := stateOf(err), codeOf(err)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return core.WrapError(core.CodeNotFound, doing+": there is none", err)
	case isUnique(err):
		return core.WrapError(core.CodeConflict, doing+": it is there already", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return core.WrapError(core.CodeUnavailable, doing+": the store did not answer in time", err)
	case state == stateNotAText, state == stateNotAJSONText:
		return core.WrapError(core.CodeInvalid, doing+": a text holds bytes that the store cannot keep", err)
	case code == sqlite3.SQLITE_TOOBIG:
		return core.WrapError(core.CodeTooLarge, doing+": a value is too large for the store", err)
	case code == sqlite3.SQLITE_CORRUPT, code == sqlite3.SQLITE_NOTADB:
		return core.WrapError(core.CodeInternal, doing+": the store is damaged", err)
	case isStatement(state, code), errors.Is(err, pgx.ErrTxCommitRollback), errors.Is(err, errUndone):
		return core.WrapError(core.CodeInternal, doing, err)
	case code == sqlite3.SQLITE_FULL, state == stateDiskFull:
		return core.WrapError(core.CodeUnavailable, doing+": the store's disk is full", err)
	case code == sqlite3.SQLITE_BUSY, isCollision(err):
		return core.WrapError(core.CodeUnavailable, doing+": another transaction was in the way for too long", err)
	}
	return core.WrapError(core.CodeUnavailable, doing+": the store does not answer", err)
}

// openFault is Fault for a database that could not be opened at all.
func openFault(err error) error {
	const doing = "opening the store"
	state := stateOf(err)
	switch codeOf(err) {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return &core.Error{
			Code: core.CodeConflict, Message: doing + ": its file is damaged, or not a database",
			Hint: "restore a copy of the store, or move the file " + sqliteFile + " away to begin anew", Err: err,
		}
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return &core.Error{
			Code: core.CodeInvalid, Message: doing + ": its file cannot be written",
			Hint: "let tutti's user write the data folder and what is in it", Err: err,
		}
	}
	if state == stateNoDatabase || len(state) == 5 && state[:2] == stateLogin {
		return &core.Error{
			Code: core.CodeUnavailable, Message: doing + ": PostgreSQL refuses the connection",
			Hint: "check the user, the password and the database of the store's URL", Err: err,
		}
	}
	return Fault(doing, err)
}

// closedFault is the error of a transaction on a Store that was closed.
func closedFault() error { return core.NewError(core.CodeUnavailable, "the store is closed") }

// stateOf returns PostgreSQL's SQLSTATE, "" for an error that is not its own.
func stateOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// codeOf returns SQLite's primary result code, 0 for an error that is not its own.
func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// isUnwritten reports whether SQLite could not write a file.
func isUnwritten(err error) bool {
	code := codeOf(err)
	return code == sqlite3.SQLITE_FULL || code == sqlite3.SQLITE_IOERR
}

func isUnique(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return stateOf(err) == stateUnique
}

// isCollision reports whether PostgreSQL undid a transaction because of another one.
func isCollision(err error) bool {
	state := stateOf(err)
	return state == stateSerialization || state == stateDeadlock
}

// isStatement reports whether the database answered, and found the statement or its values at fault.
func isStatement(state string, code int) bool {
	switch code {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_RANGE,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_SCHEMA:
		return true
	}
	// Bad data, a broken rule, a statement after a failed one, bad syntax.
	return len(state) == 5 && slices.Contains([]string{"22", "23", "25", "42"}, state[:2])
}
