package natsconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
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
		if err := CheckCredentials(s.CredentialsFile); err != nil {
			return nil, err
		}
		opts = append(opts, nats.UserCredentials(s.CredentialsFile)) // reads the file for each connection
	}
	if s.NKeyFile != "" {
		nkey, err := s.nkey()
		if err != nil {
			return nil, err
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

// nkey is an option with the nkey; the server knows its public key, which stays that of the file's first content.
func (s Security) nkey() (nats.Option, error) {
	option, err := nats.NkeyOptionFromSeed(s.NKeyFile)
	if err == nil {
		return option, nil
	}
	message := s.NKeyFile + " does not contain the seed of an nkey"
	if _, unreadable := os.ReadFile(s.NKeyFile); unreadable != nil {
		message = unreadableFile(s.NKeyFile, unreadable)
	}
	return nil, &core.Error{
		Code: core.CodeInvalid, Message: securityKey + ".nkeyFile: " + message, Hint: "set it to a file with the seed of a user's nkey", Err: err,
	}
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

// unusable returns the error of a file, or a variable, of the credentials that cannot be used; nil for none.
func (s Security) unusable() (err error) {
	switch {
	case s.CredentialsFile != "":
		err = CheckCredentials(s.CredentialsFile)
	case s.NKeyFile != "":
		_, err = s.nkey()
	case s.Password != nil:
		_, err = s.Password()
	}
	return err
}

// unusableServer begins a message about the TLS of a server.
const unusableServer = "the server cannot be used: "

// failure returns what is wrong with the security of a connection that failed with err, with a hint; message is empty for any other error.
func (s Security) failure(err error) (message, hint string) {
	if unusable := s.unusable(); unusable != nil {
		return core.MessageOf(unusable), core.HintOf(unusable)
	}
	if refused(err) {
		return "the server does not accept the credentials", "check " + s.key()
	}
	if errors.Is(err, nats.ErrSecureConnWanted) {
		return "the server does not speak TLS", "remove the files of TLS from " + securityKey + ", or set its url to servers with TLS"
	}
	if reason, hint := s.TLS.TLSFailure(err); reason != "" {
		return unusableServer + reason, hint
	}
	if s.closedAfterTLS(err) {
		does := "refuses the client certificate"
		if s.TLS.ClientCertFile == "" {
			does = "requires a client certificate"
		}
		return "the server closed the connection after the TLS handshake, as one does that " + does,
			"set " + securityKey + ".clientCertFile to a certificate that the server accepts, and its key"
	}
	return "", ""
}

// closedAfterTLS reports whether the server closed the connection after the TLS handshake, and its alert, which says why, was not read: the
// library writes twice before it reads, and the second write fails when the server has already closed the connection.
func (s Security) closedAfterTLS(err error) bool {
	reason, _ := s.TLS.TLSFailure(err)
	return reason == "" && (errors.Is(err, nats.ErrTLS) || strings.Contains(err.Error(), "after TLS handshake"))
}

// refused reports whether the server refused the user. It says that credentials have expired in other words when they expire while the
// connection is open.
func refused(err error) bool {
	for _, known := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, known) {
			return true
		}
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "authentication expired") || strings.Contains(text, "authentication revoked")
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

// noteFailure keeps why the connection is not restored, and logs a new reason. It reports whether err is a known one.
func (c *Conn) noteFailure(err error) bool {
	message, hint := c.cfg.failure(err)
	if message == "" {
		return false
	}
	e := &core.Error{Code: core.CodeUnavailable, Message: message, Hint: hint, RetryAfter: retryWhenDown, Err: err}
	if before := c.failed.Swap(e); before == nil || before.Message != message {
		c.Log.Warn("the queue is not connected", "err", core.DisplayOf(e))
	}
	return true
}

// watchFailures notes why attempts to reconnect fail, until the connection is closed. The library reports those that the server refuses and
// those to connect, but not those of TLS.
func (c *Conn) watchFailures(changes <-chan nats.Status) {
	for range changes {
		if err := c.NC.LastError(); err != nil && !c.NC.IsConnected() {
			c.noteFailure(err)
		}
		if c.NC.IsConnected() { // since the error was read
			c.failed.Store(nil)
		}
	}
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
