package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"tutti/internal/core"
	"tutti/internal/store/connection"
)

// createTablePattern matches the CREATE TABLE statements of the migrations.
const createTablePattern = `(?m)^CREATE TABLE (\w+)`

func inspectPostgres(ctx context.Context, c Config) (Report, error) {
	r := Report{Postgres: &PostgresReport{}}
	var err error
	if r.Newest, err = newest("migrations/postgres"); err != nil {
		return r, err
	}
	to, err := c.target()
	if err != nil {
		return r, err
	}
	if r.Postgres.Pooled, err = connection.ProbePooler(ctx, to); err != nil {
		return r, connectError(err)
	}
	connection.UseUnnamedStatements(to.ConnConfig)
	db := sql.OpenDB(to.Connector())
	defer func() { _ = db.Close() }() // nothing was written
	db.SetMaxOpenConns(1)
	if err := db.PingContext(ctx); err != nil {
		return r, connectError(err)
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return r, connectError(err)
	}
	defer func() { _ = tx.Rollback() }() // read-only
	if err := r.server(ctx, tx); err != nil {
		return r, WrapError("inspecting the store", err)
	}
	there, err := r.tables(ctx, tx)
	if err != nil {
		return r, WrapError("inspecting the store", err)
	}
	if there && len(r.Postgres.Missing) == 0 {
		err = r.count(ctx, tx)
	}
	return r, WrapError("inspecting the store", err)
}

// server reads the properties of the server, the database and the user.
func (r *Report) server(ctx context.Context, tx *sql.Tx) error {
	var version string
	var schema sql.NullString
	p := r.Postgres
	err := tx.QueryRowContext(ctx, `SELECT current_setting('server_version'), current_schema(),
		coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
		pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',
		current_setting('server_encoding'),
		current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off'`).
		Scan(&version, &schema, &p.CanCreate, &p.ReadOnly, &p.Encoding, &p.Durable)
	r.Engine, p.Schema = "PostgreSQL "+version, schema.String
	return err
}

// tables reports whether tutti's tables exist, and collects the privileges on them that the user lacks.
func (r *Report) tables(ctx context.Context, tx *sql.Tx) (there bool, err error) {
	names, err := tableNames()
	if err != nil {
		return false, err
	}
	err = tx.QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", goose.DefaultTablename).Scan(&there)
	if err != nil || !there {
		return there, err
	}
	for _, table := range append(names, goose.DefaultTablename) {
		for _, privilege := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
			var lacks sql.NullBool // null when the table does not exist yet
			err := tx.QueryRowContext(ctx, "SELECT NOT has_table_privilege(to_regclass($1), $2)", table, privilege).Scan(&lacks)
			if err != nil {
				return there, err
			}
			if lacks.Bool {
				r.Postgres.Missing = append(r.Postgres.Missing, privilege+" on "+table)
			}
		}
	}
	return there, nil
}

// tableNames returns the tables that the migrations create.
func tableNames() ([]string, error) {
	files, err := fs.Glob(migrations, "migrations/postgres/*.sql")
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "listing the store's migrations", err)
	}
	made := regexp.MustCompile(createTablePattern)
	var names []string
	for _, file := range files {
		text, err := fs.ReadFile(migrations, file)
		if err != nil {
			return nil, core.WrapError(core.CodeInternal, "reading the store's migrations", err)
		}
		for _, match := range made.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names, nil
}

// connectError wraps an error of connecting to PostgreSQL, with the reason for a rejected connection.
func connectError(err error) error {
	if pooler := connection.PoolerError(err); pooler != nil {
		return pooler
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return core.WrapError(core.CodeUnavailable, "the database does not answer", err)
	}
	switch e.Code {
	case "28P01", "28000": // invalid_password, invalid_authorization_specification
		return &core.Error{
			Code: core.CodeForbidden, Message: "the database rejected the user or the password",
			Hint: "check user and password in store.url, and pg_hba.conf of the server", Err: err,
		}
	case "3D000": // invalid_catalog_name
		return &core.Error{
			Code: core.CodeNotFound, Message: "the server has no such database",
			Hint: "create it (CREATE DATABASE), or check the name at the end of store.url", Err: err,
		}
	case "42501": // insufficient_privilege
		return &core.Error{
			Code: core.CodeForbidden, Message: "the user may not connect to the database",
			Hint: "grant the user the privilege CONNECT on the database", Err: err,
		}
	case "53300": // too_many_connections
		return &core.Error{
			Code: core.CodeUnavailable, Message: "the server has no free connection",
			Hint: "raise its max_connections, or close other connections", Err: err,
		}
	}
	return core.WrapError(core.CodeUnavailable, fmt.Sprintf("the database rejected the connection (SQLSTATE %s)", e.Code), err)
}
