package store

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"tutti/internal/core"
	"tutti/internal/tlsconfig"
)

// target is how to connect to a PostgreSQL database. The files of TLS are read again for each connection.
type target struct {
	*pgx.ConnConfig

	files tlsconfig.Files
	// source is nil where the URL says whether and how connections use TLS.
	source *tlsconfig.Source
}

// urlTLS are the parameters of a URL that files of TLS replace.
var urlTLS = [...]string{"sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword"}

// newTarget parses the URL of a PostgreSQL database, and reads the files of TLS. With any of them each connection uses TLS, and the server's
// certificate and name are verified.
func newTarget(cfg Config) (*target, error) {
	t := &target{files: cfg.TLS}
	address := cfg.URL
	if cfg.TLS != (tlsconfig.Files{Key: cfg.TLS.Key}) {
		var err error
		if address, err = verified(address); err != nil {
			return nil, err
		}
		if t.source, err = tlsconfig.New(cfg.TLS); err != nil {
			reason, hint := cfg.TLS.TLSFailure(err)
			return nil, &core.Error{Code: core.CodeInvalid, Message: reason, Hint: hint, Err: err}
		}
	}
	var err error
	if t.ConnConfig, err = pgx.ParseConfig(address); err != nil {
		return nil, badURL()
	}
	return t, nil
}

// badURL returns an error without the cause, whose text may contain the password.
func badURL() error {
	return core.NewError(core.CodeInvalid, "the store's URL is not that of a PostgreSQL database")
}

// verified returns a URL with which every connection uses TLS and verifies the server. It must not say otherwise.
func verified(address string) (string, error) {
	before, query, _ := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", badURL()
	}
	for _, name := range urlTLS {
		if values.Has(name) {
			return "", &core.Error{
				Code: core.CodeInvalid, Message: "store.url has the parameter " + name + ", but files or a name for TLS are set beside it",
				Hint: "remove the parameter: with store.caFile, store.clientCertFile or store.serverName all connections use TLS and verify the server",
			}
		}
	}
	values.Set("sslmode", "verify-full")
	return before + "?" + values.Encode(), nil
}

// secure sets the TLS settings of one connection.
func (t *target) secure(_ context.Context, cfg *pgx.ConnConfig) error {
	if t.source == nil {
		return nil
	}
	base, err := t.source.Config()
	if err != nil {
		return err
	}
	with := func(host *tls.Config) *tls.Config {
		if host == nil { // a socket of this machine
			return nil
		}
		own := base.Clone()
		own.NextProtos = host.NextProtos
		if own.ServerName == "" {
			own.ServerName = host.ServerName
		}
		return own
	}
	cfg.TLSConfig = with(cfg.TLSConfig)
	for i, other := range cfg.Fallbacks {
		own := *other
		own.TLSConfig = with(other.TLSConfig)
		cfg.Fallbacks[i] = &own
	}
	return nil
}

// connect returns one connection, which the caller must close.
func (t *target) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg := t.Copy()
	if err := t.secure(ctx, cfg); err != nil {
		return nil, t.explain(err)
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	return conn, t.explain(err)
}

// connector returns a connector of a pool. Errors of TLS are *core.Error.
func (t *target) connector(options ...stdlib.OptionOpenDB) driver.Connector {
	return connector{stdlib.GetConnector(*t.ConnConfig, append(options, stdlib.OptionBeforeConnect(t.secure))...), t}
}

type connector struct {
	driver.Connector

	target *target
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return conn, c.target.explain(err)
}

// explain returns an error of TLS as a *core.Error that names the key to change, and any other one unchanged.
func (t *target) explain(err error) error {
	if err == nil {
		return nil
	}
	if reason, hint := t.files.TLSFailure(err); reason != "" {
		return &core.Error{Code: core.CodeUnavailable, Message: "PostgreSQL cannot be used: " + reason, Hint: hint, Err: err}
	}
	if strings.Contains(err.Error(), "server refused TLS connection") { // pgconn has no type for it
		hint := "turn ssl on at the server, or remove sslmode from store.url"
		if t.source != nil {
			hint = "turn ssl on at the server, or remove the files and the name for TLS from store"
		}
		return &core.Error{Code: core.CodeUnavailable, Message: "PostgreSQL cannot be used: it does not speak TLS", Hint: hint, Err: err}
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
	case strings.Contains(refused.Message, "requires a valid client certificate"):
		return &core.Error{
			Code: core.CodeForbidden, Message: "PostgreSQL requires a client certificate", Hint: "set store.clientCertFile and its key", Err: err,
		}
	case strings.Contains(refused.Message, "no encryption"):
		return &core.Error{
			Code: core.CodeForbidden, Message: "PostgreSQL rejected the connection: it takes only connections with TLS from this user, or none",
			Hint: "set store.caFile to a PEM file of the authority of its certificate, or sslmode in store.url; else check its pg_hba.conf", Err: err,
		}
	}
	return err
}
