package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"tutti/internal/core"
)

// DefaultServer is the default of Config.Server.
const DefaultServer = "http://127.0.0.1:8080"

const (
	defaultTimeout      = 30 * time.Second
	defaultIdleTimeout  = 60 * time.Second
	defaultMaxOutage    = 10 * time.Minute
	defaultPollInterval = time.Second
)

// Config configures a Client. The zero value is the default.
type Config struct {
	// Server is the server's URL, including the base path, such as https://portal.example/tutti. Default DefaultServer.
	Server string
	// Token is an API key or a JWT, sent as a bearer token only to Server; "" for none.
	Token string
	// UserAgent is the User-Agent header. Default "tutti".
	UserAgent string
	// HTTP sends the requests; its CheckRedirect is not used. Default: a client with http.DefaultTransport.
	HTTP *http.Client
	// CAFile is a PEM file with additional certificate authorities to trust; "" for none. It must be "" when HTTP is set.
	CAFile string
	// Timeout bounds each call except WatchJob, RetryAll and ExportDeadLetters. Default 30 s.
	Timeout time.Duration
	// IdleTimeout bounds the time without data, including keep-alives, after which a stream of events counts as broken. Default 60 s.
	IdleTimeout time.Duration
	// MaxOutage is how long WatchJob retries when a server that answered before no longer does. Default 10 minutes.
	MaxOutage time.Duration
	// PollInterval is the interval at which a job is polled when the server has no stream of events. Default 1 s.
	PollInterval time.Duration
}

func (c Config) withDefaults() Config {
	c.Token = strings.TrimSpace(c.Token)
	if c.Server == "" {
		c.Server = DefaultServer
	}
	if c.UserAgent == "" {
		c.UserAgent = "tutti"
	}
	if c.HTTP == nil && c.CAFile == "" {
		c.HTTP = &http.Client{}
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = defaultIdleTimeout
	}
	if c.MaxOutage <= 0 {
		c.MaxOutage = defaultMaxOutage
	}
	if c.PollInterval <= 0 {
		c.PollInterval = defaultPollInterval
	}
	return c
}

// validate returns the first error of c, CodeInvalid. The error does not contain the token.
func (c Config) validate() error {
	for _, char := range c.Token {
		if char <= ' ' || char > '~' {
			return &core.Error{
				Code: core.CodeInvalid, Message: "the token contains characters that are invalid in a header",
				Hint: "a token must be printable ASCII without spaces",
			}
		}
	}
	if c.CAFile != "" && c.HTTP != nil {
		return core.NewError(core.CodeInvalid, "a CA file cannot be combined with an HTTP client")
	}
	return nil
}

// newHTTPClient returns an HTTP client that also trusts the authorities in a PEM file; CodeInvalid for an invalid file.
func newHTTPClient(file string) (*http.Client, error) {
	const hint = "use a PEM file of certificate authorities"
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, &core.Error{Code: core.CodeInvalid, Message: "the CA file cannot be read", Hint: hint, Err: err}
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, &core.Error{Code: core.CodeInvalid, Message: "the CA file " + file + " contains no certificate", Hint: hint}
	}
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	}}, nil
}

// parseServer returns the server's URL without a final slash, CodeInvalid for an invalid URL.
func parseServer(server string) (*url.URL, error) {
	refused := func(fault, hint string) error {
		return &core.Error{Code: core.CodeInvalid, Message: "the server's address " + fault, Hint: hint}
	}
	const example = "such as " + DefaultServer
	base, err := url.Parse(server)
	switch {
	case err != nil || base.Scheme != "http" && base.Scheme != "https":
		return nil, refused(fmt.Sprintf("%q is not an http or https URL", maskUser(server)), example)
	case base.User != nil:
		return nil, refused("contains a user or a password", "use a token instead")
	case base.Hostname() == "":
		return nil, refused(fmt.Sprintf("%q has no host", server), example)
	case base.RawQuery != "" || base.Fragment != "" || base.ForceQuery:
		return nil, refused(fmt.Sprintf("%q has a query or a fragment", server), example)
	}
	base.RawPath = strings.TrimRight(base.EscapedPath(), "/")
	if base.Path, err = url.PathUnescape(base.RawPath); err != nil {
		return nil, refused(fmt.Sprintf("%q has a malformed path", server), example)
	}
	return base, nil
}

// maskUser masks the part before an @, which may contain a password.
func maskUser(server string) string {
	if at := strings.LastIndexByte(server, '@'); at >= 0 {
		return "…" + server[at:]
	}
	return server
}
