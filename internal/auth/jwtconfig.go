package auth

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"tutti/internal/core"
)

const (
	// DefaultTimeout is the default of JWTConfig.Timeout.
	DefaultTimeout = 5 * time.Second
	// DefaultRefreshInterval is the default of JWTConfig.RefreshEvery.
	DefaultRefreshInterval = 5 * time.Minute
	// DefaultMinRefreshInterval is the default of JWTConfig.RefreshAtLeast.
	DefaultMinRefreshInterval = 5 * time.Second
	// DefaultLeeway is the default of JWTConfig.Leeway.
	DefaultLeeway = 30 * time.Second
)

// JWTConfig configures a JWT. Issuer, Audience and one of JWKSURL and PublicKey are required.
type JWTConfig struct {
	// JWKSURL is the address of the issuer's key set (RFC 7517): https, or http on this machine.
	JWKSURL string
	// PublicKey is PEM: RSA, EC or Ed25519 public keys or certificates, any of which may sign.
	PublicKey []byte
	// Issuer is the required claim iss, Audience the required value of aud.
	Issuer, Audience string
	// Timeout bounds one fetch of the key set. Default DefaultTimeout.
	Timeout time.Duration
	// RefreshInterval is the pause between two fetches, after which a withdrawn key no longer works. Default DefaultRefreshEvery.
	RefreshInterval time.Duration
	// MinRefreshInterval is the minimum pause before a fetch for a token with an unknown key, so that forged tokens do not load the
	// issuer. Default DefaultRefreshAtLeast.
	MinRefreshInterval time.Duration
	// Leeway is how far the issuer's clock may differ when exp, nbf and iat are checked. Default DefaultLeeway.
	Leeway time.Duration
	// Logger logs failed fetches. Default: no logging.
	Logger *slog.Logger
	// Client fetches the key set. Default: one that follows at most three redirects, none from https to http and none to plain
	// http on another machine.
	Client *http.Client
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c JWTConfig) validate() error {
	if c.Issuer == "" || c.Audience == "" {
		return &core.Error{
			Code: core.CodeInvalid, Message: "JSON Web Tokens need an issuer and an audience",
			Hint: "without them every token that the issuer signed for any service would be accepted",
		}
	}
	if (c.JWKSURL == "") == (len(c.PublicKey) == 0) {
		return core.NewError(core.CodeInvalid, "set either the URL of a key set or a public key")
	}
	if c.Timeout < 0 || c.RefreshInterval < 0 || c.MinRefreshInterval < 0 || c.Leeway < 0 {
		return core.NewError(core.CodeInvalid, "times must not be negative")
	}
	if c.JWKSURL == "" {
		return nil
	}
	u, err := url.Parse(c.JWKSURL)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		// The cause is omitted: it would show the URL, which may contain a password.
		return core.NewError(core.CodeInvalid, "the URL of the key set must be an absolute http or https URL")
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the key set would be fetched over plain http from another machine",
			Hint: "use https; an attacker who can impersonate the server can issue any token",
		}
	}
	return nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

func (c JWTConfig) withDefaults() JWTConfig {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.RefreshInterval = cmp.Or(c.RefreshInterval, DefaultRefreshInterval)
	c.MinRefreshInterval = cmp.Or(c.MinRefreshInterval, DefaultMinRefreshInterval)
	c.Leeway = cmp.Or(c.Leeway, DefaultLeeway)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Client == nil {
		c.Client = &http.Client{
			CheckRedirect: rejectDowngrade,
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: c.Timeout}).DialContext,
				TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
			},
		}
	}
	return c
}
