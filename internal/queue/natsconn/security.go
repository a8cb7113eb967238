package natsconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"tutti/internal/core"
	"tutti/internal/tlsconfig"
)

// securityKey is the configuration key of the queue.
const securityKey = "queue"

// Security says how connections to external servers are secured, and who connects. The zero value is for servers that ask for nothing.
type Security struct {
	// CredentialsFile is a .creds file, NKeyFile a file with the seed of an nkey; "" for none.
	CredentialsFile, NKeyFile string
	// Username and Password are credentials without a file. Password is called for each connection; its errors are *core.Error.
	Username string
	Password func() (string, error)
	// TLS names the files of TLS connections.
	TLS tlsconfig.Files
}

// options returns the options of a connection. It reads all files; an error is a *core.Error that names the key.
func (s Security) options() ([]nats.Option, error) {
	var opts []nats.Option
	if s.CredentialsFile != "" {
		opts = append(opts, nats.UserCredentials(s.CredentialsFile)) // reads the file for each connection
	}
	if s.NKeyFile != "" {
		nkey, err := nats.NkeyOptionFromSeed(s.NKeyFile)
		if err != nil {
			return nil, &core.Error{Code: core.CodeInvalid, Message: securityKey + ".nkeyFile: " + s.NKeyFile + " does not contain the seed of an nkey", Err: err}
		}
		opts = append(opts, nkey)
	}
	if s.Username != "" && s.Password != nil {
		if _, err := s.Password(); err != nil {
			return nil, err
		}
		opts = append(opts, nats.UserInfoHandler(func() (user, password string) {
			password, _ = s.Password() // the server refuses an empty one, and failure says why
			return s.Username, password
		}))
	}
	if s.TLS == (tlsconfig.Files{Key: s.TLS.Key}) {
		return opts, nil
	}
	source, err := tlsconfig.New(s.TLS)
	if err != nil {
		return nil, err
	}
	return append(opts, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.TLS.ServerName}), reread(source, s.TLS)), nil
}

// reread is an option with which the files of TLS are read for each connection.
func reread(source *tlsconfig.Source, files tlsconfig.Files) nats.Option {
	return func(o *nats.Options) error {
		if files.CAFile != "" {
			o.RootCAsCB = func() (*x509.CertPool, error) {
				config, err := source.Config()
				if err != nil {
					return nil, err
				}
				return config.RootCAs, nil
			}
		}
		if files.ClientCertFile != "" {
			o.TLSCertCB = func() (tls.Certificate, error) {
				config, err := source.Config()
				if err != nil {
					return tls.Certificate{}, err
				}
				return config.Certificates[0], nil
			}
		}
		return nil
	}
}

// failure returns what is wrong with the security of a connection that failed with err, with a hint; message is empty for any other error.
func (s Security) failure(err error) (message, hint string) {
	if s.Password != nil {
		if _, unreadable := s.Password(); unreadable != nil {
			return core.MessageOf(unreadable), core.HintOf(unreadable)
		}
	}
	for _, refused := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, refused) {
			return "the server does not accept the credentials", "check " + s.key()
		}
	}
	if errors.Is(err, nats.ErrSecureConnWanted) {
		return "the server does not speak TLS", "remove the files of TLS from " + securityKey + ", or set its url to servers with TLS"
	}
	if reason, hint := s.TLS.TLSFailure(err); reason != "" {
		return "the server cannot be used: " + reason, hint
	}
	if errors.Is(err, nats.ErrTLS) || strings.Contains(err.Error(), "after TLS handshake") { // before the alert that says why
		does := "refuses the client certificate"
		if s.TLS.ClientCertFile == "" {
			does = "requires a client certificate"
		}
		return "the server closed the connection after the TLS handshake, as one does that " + does,
			"set " + securityKey + ".clientCertFile to a certificate that the server accepts, and its key"
	}
	return "", ""
}

// key returns the key of the credentials that are used.
func (s Security) key() string {
	switch {
	case s.NKeyFile != "":
		return securityKey + ".nkeyFile"
	case s.Username != "":
		return securityKey + ".username and " + securityKey + ".password"
	case s.CredentialsFile != "":
		return securityKey + ".credentialsFile"
	}
	return securityKey + ".credentialsFile, or the user and password in " + securityKey + ".url"
}

// denial is a request or a subscription that the server refused.
type denial struct {
	err error
	at  time.Time
}

// deniedFor is how long Denied reports a refusal after the last one.
const deniedFor = 2 * time.Minute

// Denied returns what the server has refused last, within the last minutes: the call got no answer. It is a *core.Error, nil for nothing.
func (c *Conn) Denied() error {
	d := c.denied.Load()
	if d == nil || time.Since(d.at) > deniedFor {
		return nil
	}
	what := d.what()
	if what == "" {
		return nil
	}
	return &core.Error{Code: core.CodeForbidden, Message: what, Hint: hintRights, Err: d.err}
}

// explain returns err, of a call that was not answered, with the reason.
func (d denial) explain(err error) error {
	what := d.what()
	if what == "" {
		return err
	}
	doing, _, _ := strings.Cut(core.MessageOf(err), ": ")
	return &core.Error{Code: core.CodeForbidden, Message: doing + ": " + what, Err: errors.Join(d.err, err), Hint: hintRights}
}

// what says what was refused, "" for an error that does not say.
func (d denial) what() string {
	_, what, found := strings.Cut(d.err.Error(), "Permissions Violation for ")
	if !found {
		return ""
	}
	verb, subject, _ := strings.Cut(what, " to ")
	verb = map[string]string{"Publish": "publish", "Subscription": "subscribe"}[verb]
	return "the server does not let this user " + verb + " to " + subject
}
