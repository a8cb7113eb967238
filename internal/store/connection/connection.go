package connection

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

// Settings say how to connect to a PostgreSQL database.
type Settings struct {
	// URL is that of the database, postgres://user:password@host:5432/database, and may name several hosts.
	URL string
	// URLKey is the key of URL, which errors name.
	URLKey string
	// ReadWrite is set for connections that must take changes: of several hosts those that are standbys or read-only are not used, unless
	// the URL has target_session_attrs.
	ReadWrite bool
	// TLS names the files of TLS; without any the URL says whether and how connections use it.
	TLS tlsconfig.Files
}

// Target makes connections to a PostgreSQL database. The files of TLS are read again for each.
type Target struct {
	*pgx.ConnConfig

	settings Settings
	// source is nil where the URL says whether and how connections use TLS.
	source *tlsconfig.Source
}

// urlTLS are the parameters of a URL that files of TLS replace.
var urlTLS = [...]string{"sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword"}

// New parses the URL of a PostgreSQL database, and reads the files of TLS. With any of them each connection uses TLS, and the server's
// certificate and name are verified. Errors have CodeInvalid.
func New(settings Settings) (*Target, error) {
	t := &Target{settings: settings}
	address, files := settings.URL, settings.TLS
	if files != (tlsconfig.Files{Key: files.Key, Flags: files.Flags}) {
		var err error
		if address, err = t.verified(); err != nil {
			return nil, err
		}
		if t.source, err = tlsconfig.New(files); err != nil {
			reason, hint := files.TLSFailure(err)
			return nil, &core.Error{Code: core.CodeInvalid, Message: reason, Hint: hint, Err: err}
		}
	}
	var err error
	if t.ConnConfig, err = pgx.ParseConfig(address); err != nil {
		return nil, t.badURL()
	}
	if settings.ReadWrite && !strings.Contains(settings.URL, "target_session_attrs") && os.Getenv("PGTARGETSESSIONATTRS") == "" {
		t.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return t, nil
}

// badURL returns an error without the cause, whose text may contain the password.
func (t *Target) badURL() error {
	return core.NewError(core.CodeInvalid, t.settings.URLKey+" is not the URL of a PostgreSQL database")
}

// verified returns the URL with which every connection uses TLS and verifies the server. It must not say otherwise.
func (t *Target) verified() (string, error) {
	before, query, _ := strings.Cut(t.settings.URL, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", t.badURL()
	}
	for _, name := range urlTLS {
		if values.Has(name) {
			key := t.settings.TLS.Name
			return "", &core.Error{
				Code: core.CodeInvalid, Message: t.settings.URLKey + " has the parameter " + name + ", but files or a name for TLS are set beside it",
				Hint: "remove the parameter: with " + key("caFile") + ", " + key("clientCertFile") + " or " + key("serverName") +
					" all connections use TLS and verify the server",
			}
		}
	}
	values.Set("sslmode", "verify-full")
	return before + "?" + values.Encode(), nil
}

// secure sets the TLS settings of one connection.
func (t *Target) secure(_ context.Context, cfg *pgx.ConnConfig) error {
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
	cfg.Fallbacks = slices.Clone(cfg.Fallbacks) // cfg may be a shallow copy
	for i, other := range cfg.Fallbacks {
		own := *other
		own.TLSConfig = with(other.TLSConfig)
		cfg.Fallbacks[i] = &own
	}
	return nil
}

// Connect returns one connection, which the caller must close.
func (t *Target) Connect(ctx context.Context) (*pgx.Conn, error) {
	cfg := t.Copy()
	if err := t.secure(ctx, cfg); err != nil {
		return nil, t.explain(err)
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	return conn, t.explain(err)
}

// Connector returns a connector of a pool. Errors of TLS are *core.Error.
func (t *Target) Connector(options ...stdlib.OptionOpenDB) driver.Connector {
	return connector{stdlib.GetConnector(*t.ConnConfig, append(options, stdlib.OptionBeforeConnect(t.secure))...), t}
}

type connector struct {
	driver.Connector

	target *Target
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return conn, c.target.explain(err)
}

// explain returns an error of TLS, or of a server that takes no changes, as a *core.Error that names the key to change, and any other one unchanged.
func (t *Target) explain(err error) error {
	if err == nil {
		return nil
	}
	key := t.settings.TLS.Name
	if reason, hint := t.settings.TLS.TLSFailure(err); reason != "" {
		return &core.Error{Code: core.CodeUnavailable, Message: "PostgreSQL cannot be used: " + reason, Hint: hint, Err: err}
	}
	if errors.Is(err, pgconn.ErrReadOnlyConnection) {
		return &core.Error{
			Code: core.CodeUnavailable, Message: "PostgreSQL is read-only: it is a standby, or default_transaction_read_only is on",
			Hint: "set " + t.settings.URLKey + " to the primary server, or to all servers separated by commas", Err: err,
		}
	}
	if strings.Contains(err.Error(), "server refused TLS connection") { // pgconn has no type for it
		hint := "turn ssl on at the server, or remove sslmode from " + t.settings.URLKey
		if t.source != nil {
			hint = "turn ssl on at the server, or remove " + key("caFile") + " and the other settings of TLS"
		}
		return &core.Error{Code: core.CodeUnavailable, Message: "PostgreSQL cannot be used: it does not speak TLS", Hint: hint, Err: err}
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
	case strings.Contains(refused.Message, "requires a valid client certificate"):
		return &core.Error{
			Code: core.CodeForbidden, Message: "PostgreSQL requires a client certificate", Hint: "set " + key("clientCertFile") + " and its key", Err: err,
		}
	case strings.Contains(refused.Message, "no encryption"):
		return &core.Error{
			Code: core.CodeForbidden, Message: "PostgreSQL rejected the connection: it takes only connections with TLS from this user, or none",
			Hint: "set " + key("caFile") + " to a PEM file of the authority of its certificate, or sslmode in " + t.settings.URLKey + "; else check its pg_hba.conf",
			Err:  err,
		}
	}
	return err
}
