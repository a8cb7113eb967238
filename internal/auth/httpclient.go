package auth

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"tutti/internal/base/hostname"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

const (
	// maxRedirects bounds the redirects of one fetch of keys.
	maxRedirects = 3
	// maxConnections bounds the connections and the requests in flight to a server that checks tokens; further checks wait.
	maxConnections = 16
)

// checkURL returns CodeInvalid unless address is an absolute https URL, or an http URL of this machine or, with allowHTTP, of any
// machine. The message starts with name.
func checkURL(name, address string, allowHTTP bool) error {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		// The cause is omitted: it would show the URL, which may contain a password.
		return core.NewError(core.CodeInvalid, name+" must be an absolute http or https URL")
	}
	if u.Scheme == "http" && !allowHTTP && !hostname.Loopback(u.Hostname()) {
		return &core.Error{
			Code: core.CodeInvalid, Message: name + " is plain http on another machine",
			Hint: "use https; an attacker who can impersonate the server can issue or read tokens",
		}
	}
	return nil
}

// newClient returns a client; CodeInvalid for files that cannot be used.
func newClient(timeout time.Duration, files tlsconfig.Files, redirect func(*http.Request, []*http.Request) error) (*http.Client, error) {
	secure, err := tlsconfig.New(files)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		CheckRedirect: redirect,
		Transport: secure.RoundTripper(&http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: timeout}).DialContext,
			ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
			MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections,
		}),
	}, nil
}

// rejectDowngrade returns a redirect policy that rejects plain http after https and, without allowHTTP, on another machine, and long
// chains of redirects.
func rejectDowngrade(allowHTTP bool) func(*http.Request, []*http.Request) error {
	return func(request *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		if request.URL.Scheme == "https" {
			return nil
		}
		if slices.ContainsFunc(via, func(r *http.Request) bool { return r.URL.Scheme == "https" }) {
			return errors.New("a redirect leads from https to http")
		}
		if !allowHTTP && !hostname.Loopback(request.URL.Hostname()) {
			return errors.New("a redirect leads to another machine without encryption")
		}
		return nil
	}
}

// keepRedirect is a redirect policy that follows none, because the request contains a token: the redirect is the response.
func keepRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
