package tlsconfig

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"tutti/internal/core"
)

// Files names the files of TLS connections to a server. The zero value trusts the system's authorities and shows no certificate.
type Files struct {
	// Key is the configuration key of the connection, such as "index", which errors and hints name; "" for none.
	Key string
	// Subject stands before the key in reasons of Failures, if several connections have the same key.
	Subject string
	// Flags is set if the settings are flags of a command, such as --ca-file.
	Flags bool
	// CAFile is a PEM file of certificate authorities to trust instead of the system's.
	CAFile string
	// ClientCertFile is a PEM file of the client's certificate and the intermediate certificates, ClientKeyFile one of its private key.
	ClientCertFile, ClientKeyFile string
	// ServerName is the name that the server's certificate must be for; "" for the host of its address.
	ServerName string
	// ManyServers is set for connections to servers of several names, which have no ServerName.
	ManyServers bool
	// Failures records which requests over HTTP are not answered; nil records nothing.
	Failures *Failures
}

// readInterval is how long the files are not read again.
const readInterval = time.Second

// Source makes TLS configurations of Files. It is safe for concurrent use.
type Source struct {
	files Files

	mu     sync.Mutex
	readAt time.Time
	ca     []byte
	pair   Pair
	config *tls.Config
	err    error
}

// NewUnread returns a Source that has not read the files: their errors are those of its connections.
func NewUnread(files Files) *Source { return &Source{files: files} }

// New returns a Source. It reads the files; its error is a *core.Error of CodeInvalid that names the key.
func New(files Files) (*Source, error) {
	s := NewUnread(files)
	if _, err := s.Config(); err != nil {
		return nil, err
	}
	return s, nil
}

// Config returns the configuration of the next connection, which must not be modified: the same one while the content of the files is
// the same. They are read at most once a second. Its error is that of New.
func (s *Source) Config() (*tls.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readAt.IsZero() || time.Since(s.readAt) >= readInterval {
		s.err = s.read()
		s.readAt = time.Now()
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.config, nil
}

// read reads the files, and parses them if they have changed.
func (s *Source) read() error {
	f := s.files
	var ca []byte
	var pair Pair
	var err error
	if f.CAFile != "" {
		if ca, err = readFile(f.CAFile); err != nil {
			return f.invalid("caFile", err)
		}
	}
	if f.ClientCertFile != "" || f.ClientKeyFile != "" {
		if pair, err = f.readPair(); err != nil {
			return err
		}
	}
	if s.config != nil && bytes.Equal(ca, s.ca) && pair.Equal(s.pair) {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CAFile != "" {
		if err := checkChain(ca); err != nil {
			return f.invalid("caFile", invalid(f.CAFile+" is not a certificate: "+err.Error(),
				"the file must hold the certificates of the authorities, as PEM"))
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(ca)
	}
	if pair.certFile != "" {
		certificate, err := pair.Certificate()
		if err != nil {
			return f.invalid("clientCertFile", err)
		}
		config.Certificates = []tls.Certificate{*certificate}
	}
	s.ca, s.pair, s.config = ca, pair, config
	return nil
}

func (f Files) readPair() (Pair, error) {
	switch {
	case f.ClientKeyFile == "":
		return Pair{}, f.invalid("clientKeyFile", invalid("is missing", "set the file of the certificate's private key"))
	case f.ClientCertFile == "":
		return Pair{}, f.invalid("clientCertFile", invalid("is missing", "set the file of the certificate"))
	}
	pair, err := ReadPair(f.ClientCertFile, f.ClientKeyFile)
	if err == nil {
		return pair, nil
	}
	if pair.cert == nil {
		return pair, f.invalid("clientCertFile", err)
	}
	return pair, f.invalid("clientKeyFile", err)
}

// invalid returns the error of the file that a key names.
func (f Files) invalid(key string, err error) error {
	return fileError{invalid(f.Name(key)+": "+core.MessageOf(err), core.HintOf(err))}
}

// Name returns the whole name of a key, such as that of caFile.
func (f Files) Name(key string) string {
	switch {
	case f.Flags:
		return "--" + strings.NewReplacer("File", "-file", "Cert", "-cert", "Key", "-key", "Name", "-name").Replace(key)
	case f.Key == "":
		return key
	default:
		return f.Key + "." + key
	}
}

// NewError returns the error of a connection that a setting does not allow, which Failure passes on.
func NewError(reason, hint string) error { return fileError{invalid(reason, hint)} }

// fileError is the error of a setting, which Failure passes on.
type fileError struct{ of *core.Error }

func (e fileError) Error() string { return e.of.Error() }
func (e fileError) Unwrap() error { return e.of }

// DialContext connects to address, host:port, and makes the TLS handshake, with the files as they are at this moment.
func (s *Source) DialContext(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, address)
}

// RoundTripper returns base with the TLS configuration of s. When the files change, connections are opened anew. base must not be used
// afterwards.
func (s *Source) RoundTripper(base *http.Transport) RoundTripper {
	return &roundTripper{source: s, current: base}
}

// RoundTripper is a http.RoundTripper with connections of its own.
type RoundTripper interface {
	http.RoundTripper
	CloseIdleConnections()
}

type roundTripper struct {
	source *Source

	mu      sync.Mutex
	config  *tls.Config // of current
	current *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.roundTrip(req)
	t.source.files.Failures.record(t, req, err)
	return res, err
}

func (t *roundTripper) roundTrip(req *http.Request) (*http.Response, error) {
	transport, err := t.transport()
	if err != nil {
		if req.Body != nil {
			err = errors.Join(err, req.Body.Close())
		}
		return nil, err
	}
	return transport.RoundTrip(req)
}

func (t *roundTripper) transport() (*http.Transport, error) {
	config, err := t.source.Config()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if config != t.config {
		before := t.current
		t.config, t.current = config, before.Clone()
		t.current.TLSClientConfig = config.Clone() // HTTP/2 adds its protocol to it
		before.CloseIdleConnections()
	}
	return t.current, nil
}

// CloseIdleConnections closes the connections without a request in flight.
func (t *roundTripper) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.CloseIdleConnections()
}
