package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"tutti/internal/core"
	"tutti/internal/store/connection"
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
	stateReadOnly      = "25006"
	stateNotAText      = "22021" // invalid UTF-8, or a zero byte
	stateNotAJSONText  = "22P05"
)

// WrapError returns err as a core.Error, nil for nil: CodeNotFound for a missing row, CodeConflict for a violated unique
// constraint, CodeInvalid for text that PostgreSQL cannot store, CodeTooLarge for a value over the database's limit, CodeInternal
// for a rejected statement or a damaged database, CodeUnavailable for every other error of the database. doing names the
// operation in the gerund, such as "opening the store". A core.Error is returned unchanged.
func WrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err
	}
	state, code := connection.State(err), codeOf(err)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return core.WrapError(core.CodeNotFound, doing+": not found", err)
	case isUnique(err):
		return core.WrapError(core.CodeConflict, doing+": it already exists", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return core.WrapError(core.CodeUnavailable, doing+": the store did not answer in time", err)
	case state == stateNotAText, state == stateNotAJSONText:
		return core.WrapError(core.CodeInvalid, doing+": text must be UTF-8 without zero bytes", err)
	case state == stateReadOnly:
		return &core.Error{
			Code: core.CodeUnavailable, Message: doing + ": PostgreSQL takes no changes: it is a standby, or read-only",
			Hint: "set store.url to the primary server, or to all servers separated by commas", Err: err,
		}
	case code == sqlite3.SQLITE_TOOBIG:
		return core.WrapError(core.CodeTooLarge, doing+": a value is too large for the store", err)
	case code == sqlite3.SQLITE_CORRUPT, code == sqlite3.SQLITE_NOTADB:
		return core.WrapError(core.CodeInternal, doing+": the store is damaged", err)
	case isStatementError(state, code), errors.Is(err, pgx.ErrTxCommitRollback), errors.Is(err, errTxAborted):
		return core.WrapError(core.CodeInternal, doing, err)
	case code == sqlite3.SQLITE_FULL, state == stateDiskFull:
		return core.WrapError(core.CodeUnavailable, doing+": the store's disk is full", err)
	case code == sqlite3.SQLITE_BUSY, isCollision(err):
		return core.WrapError(core.CodeUnavailable, doing+": another transaction held a lock for too long", err)
	}
	return core.WrapError(core.CodeUnavailable, doing+": the store is not available", err)
}

// openError wraps an error of opening the database.
func openError(err error) error {
	const doing = "opening the store"
	if pooler := connection.PoolerError(err); pooler != nil {
		pooler.Message = doing + ": " + pooler.Message
		return pooler
	}
	state, code := connection.State(err), codeOf(err)
	switch {
	case code == sqlite3.SQLITE_NOTADB, code == sqlite3.SQLITE_CORRUPT:
		return &core.Error{
			Code: core.CodeConflict, Message: doing + ": its file is damaged, or not a database",
			Hint: "restore a backup of the store, or move the file " + sqliteFile + " away to start with an empty store", Err: err,
		}
	case isDenied(err):
		return &core.Error{
			Code: core.CodeInvalid, Message: doing + ": its file cannot be written",
			Hint: "tutti's user needs write access to the data directory and its files", Err: err,
		}
	}
	if state == stateNoDatabase || len(state) == 5 && state[:2] == stateLogin {
		return &core.Error{
			Code: core.CodeForbidden, Message: doing + ": PostgreSQL rejected the connection",
			Hint: "check the user, the password and the database in store.url", Err: err,
		}
	}
	if state == connection.StateStarting {
		return core.WrapError(core.CodeUnavailable, doing+": PostgreSQL is starting, stopping or recovering", err)
	}
	return WrapError(doing, err)
}

// closedError returns the error of transactions on a closed Store.
func closedError() error { return core.NewError(core.CodeUnavailable, "the store is closed") }

// codeOf returns SQLite's primary result code, 0 for other errors.
func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// isDenied reports whether SQLite, or the process, may not use a file or its folder.
func isDenied(err error) bool {
	code := codeOf(err)
	return code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY || code == sqlite3.SQLITE_PERM || errors.Is(err, fs.ErrPermission)
}

// isWriteFailure reports whether SQLite could not write a file.
func isWriteFailure(err error) bool {
	code := codeOf(err)
	return code == sqlite3.SQLITE_FULL || code == sqlite3.SQLITE_IOERR
}

func isUnique(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return connection.State(err) == stateUnique
}

// isCollision reports whether PostgreSQL rolled a transaction back because of another one.
func isCollision(err error) bool {
	state := connection.State(err)
	return state == stateSerialization || state == stateDeadlock
}

// isStatementError reports whether the database answered and rejected the statement or its values.
func isStatementError(state string, code int) bool {
	switch code {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_RANGE,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_SCHEMA:
		return true
	}
	// Data exceptions, constraint violations, invalid transaction state, syntax errors.
	return len(state) == 5 && slices.Contains([]string{"22", "23", "25", "42"}, state[:2])
}
