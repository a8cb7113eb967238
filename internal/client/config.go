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

// DefaultServer is the server that is asked unless Config says otherwise.
const DefaultServer = "http://127.0.0.1:8080"

const (
	defaultTimeout  = 30 * time.Second
	defaultSilence  = 60 * time.Second
	defaultPatience = 10 * time.Minute
	defaultPoll     = time.Second
)

// Config says which server a Client asks and how. The zero value is the default.
type Config struct {
	// Server is the server's address, base path included, such as https://portal.example/tutti. Default DefaultServer.
	Server string
	// Token is an API key or a JWT, sent as a bearer token to Server alone; "" sends none.
	Token string
	// UserAgent names the program to the server. Default "tutti".
	UserAgent string
	// HTTP makes the calls; its own rule for redirects is not used. Default: a client of http.DefaultTransport.
	HTTP *http.Client
	// CAFile is a PEM file of authorities to trust beside the system's; "" for none. It must be "" beside HTTP.
	CAFile string
	// Timeout bounds each call but WatchJob, RetryAll and ExportDeadLetters. Default 30 s.
	Timeout time.Duration
	// Silence is how long a stream of events may say nothing, keep-alives included, before it counts as broken.
	// Default 60 s.
	Silence time.Duration
	// Patience is how long WatchJob goes on without any answer of a server that answered before. Default 10 minutes.
	Patience time.Duration
	// Poll is the pause between two looks at a job where the server has no stream of events. Default 1 s.
	Poll time.Duration
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
	if c.Silence <= 0 {
		c.Silence = defaultSilence
	}
	if c.Patience <= 0 {
		c.Patience = defaultPatience
	}
	if c.Poll <= 0 {
		c.Poll = defaultPoll
	}
	return c
}

// validate names the first fault of c, as CodeInvalid. It never shows the token.
func (c Config) validate() error {
	for _, char := range c.Token {
		if char <= ' ' || char > '~' {
			return &core.Error{
				Code: core.CodeInvalid, Message: "the token holds characters that a header cannot carry",
				Hint: "a token is printable ASCII without spaces",
			}
		}
	}
	if c.CAFile != "" && c.HTTP != nil {
		return core.NewError(core.CodeInvalid, "a CA file has no effect beside a client of HTTP")
	}
	return nil
}

// trusting returns an HTTP client that trusts the authorities in a PEM file beside the system's; CodeInvalid names the file.
func trusting(file string) (*http.Client, error) {
	const hint = "give a PEM file of certificate authorities"
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, &core.Error{Code: core.CodeInvalid, Message: "the CA file cannot be read", Hint: hint, Err: err}
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, &core.Error{Code: core.CodeInvalid, Message: "the CA file " + file + " holds no certificate", Hint: hint}
	}
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	}}, nil
}

// baseOf returns the server's URL without a final slash, as CodeInvalid where it is none.
func baseOf(server string) (*url.URL, error) {
	refused := func(fault, hint string) error {
		return &core.Error{Code: core.CodeInvalid, Message: "the server's address " + fault, Hint: hint}
	}
	const example = "such as " + DefaultServer
	base, err := url.Parse(server)
	switch {
	case err != nil || base.Scheme != "http" && base.Scheme != "https":
		return nil, refused(fmt.Sprintf("%q is not an http or https URL", withoutUser(server)), example)
	case base.User != nil:
		return nil, refused("holds a user or a password", "what proves who asks is the token")
	case base.Hostname() == "":
		return nil, refused(fmt.Sprintf("%q names no host", server), example)
	case base.RawQuery != "" || base.Fragment != "" || base.ForceQuery:
		return nil, refused(fmt.Sprintf("%q has a query or a fragment", server), example)
	}
	base.RawPath = strings.TrimRight(base.EscapedPath(), "/")
	if base.Path, err = url.PathUnescape(base.RawPath); err != nil {
		return nil, refused(fmt.Sprintf("%q has a malformed path", server), example)
	}
	return base, nil
}

// withoutUser hides what stands before an @, which may be a password.
func withoutUser(server string) string {
	if at := strings.LastIndexByte(server, '@'); at >= 0 {
		return "…" + server[at:]
	}
	return server
}
