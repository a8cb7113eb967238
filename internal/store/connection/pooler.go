package connection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tutti/internal/core"
)

// poolTimeout bounds the wait for a second connection of a pooler.
const poolTimeout = 5 * time.Second

// UseUnnamedStatements has statements run without a name, unless the URL chose how: a connection pooler in transaction mode shares the names of prepared
// statements between its clients.
func UseUnnamedStatements(cfg *pgx.ConnConfig) {
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
}

// ProbePooler reports whether the server of t is behind a connection pooler, such as PgBouncer: the client then has another process id than
// the server's process. An error, also that of a pooler which does not apply a parameter of the URL, is for PoolerError.
func ProbePooler(ctx context.Context, t *Target) (pooled bool, err error) {
	unnamed := *t
	unnamed.ConnConfig = t.Copy()
	UseUnnamedStatements(unnamed.ConnConfig)
	conn, err := unnamed.Connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(ctx) }() // nothing was written
	var pid uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return false, err
	}
	if pid == conn.PgConn().PID() {
		return false, nil
	}
	if err := checkPool(ctx, conn, unnamed); err != nil {
		return true, err
	}
	return true, checkParameters(ctx, conn, t.RuntimeParams)
}

// checkPool returns an error if a pooler has no second connection to the server while conn is in a transaction.
func checkPool(ctx context.Context, conn *pgx.Conn, t Target) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()             // nothing was written
	if _, err := tx.Exec(ctx, "SELECT 1"); err != nil { // a pooler may take a connection only now
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, poolTimeout)
	defer cancel()
	other, err := t.Connect(waiting)
	if err == nil {
		_, err = other.Exec(waiting, "SELECT 1")
		_ = other.Close(ctx) // nothing was written
	}
	if waiting.Err() != nil && ctx.Err() == nil {
		return &core.Error{
			Code: core.CodeUnavailable, Message: fmt.Sprintf("the connection pooler gave no second connection to the server within %s", poolTimeout),
			Hint: "set its default_pool_size to 2 or more", Err: err,
		}
	}
	return err
}

// checkParameters returns an error if a pooler has not applied one of the parameters of the URL.
func checkParameters(ctx context.Context, conn *pgx.Conn, parameters map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if name == "application_name" {
			continue
		}
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		var applied, wanted string
		err = tx.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&applied)
		if err == nil { // the value in the server's form
			err = tx.QueryRow(ctx, "SELECT set_config($1, $2, true)", name, parameters[name]).Scan(&wanted)
		}
		_ = tx.Rollback(ctx) // nothing was written
		if _, rejected := errors.AsType[*pgconn.PgError](err); rejected || err == nil && applied != wanted {
			return parameterError(name, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parameterError returns the error of a parameter of the URL that a pooler rejects, or does not apply.
func parameterError(name string, cause error) *core.Error {
	return &core.Error{
		Code: core.CodeInvalid, Message: "the connection pooler does not apply the parameter " + name + " of store.url",
		Hint: "remove it from store.url, and set it for the user: ALTER ROLE … SET " + name + " = …", Err: cause,
	}
}

// PoolerError returns the error of a connection that PgBouncer rejected, or a *core.Error of ProbePooler, nil for any other. PgBouncer has one
// SQLSTATE for all.
func PoolerError(err error) *core.Error {
	if known, ok := errors.AsType[*core.Error](err); ok {
		return known
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Code != stateProtocol {
		return nil
	}
	has := func(text string) bool { return strings.Contains(e.Message, text) }
	rejected := &core.Error{Code: core.CodeForbidden, Message: "the connection pooler rejected the connection", Err: err}
	switch _, name, unsupported := strings.Cut(e.Message, "unsupported startup parameter: "); {
	case unsupported:
		return parameterError(name, err)
	case has("authentication failed"), has("auth failed"), has("no such user"):
		rejected.Hint = "check user and password in store.url, and the users of the pooler"
	case has("no such database"):
		rejected.Hint = "check the name at the end of store.url, and the databases of the pooler"
	case has("statement pooling mode"):
		rejected.Code, rejected.Message = core.CodeInvalid, "the connection pooler is in statement mode, which refuses transactions"
		rejected.Hint = "set its pool_mode to transaction or session"
	case has("SSL required"):
		rejected.Hint = "set sslmode=verify-full in store.url"
	default:
		rejected.Code, rejected.Hint = core.CodeUnavailable, "check the log of the pooler, and whether it reaches its server"
	}
	return rejected
}
