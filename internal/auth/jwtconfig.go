package auth

import (
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
	// DefaultTimeout bounds a fetch of the issuer's keys unless JWTConfig says otherwise.
	DefaultTimeout = 5 * time.Second
	// DefaultRefreshEvery is how often the issuer's keys are fetched unless JWTConfig says otherwise.
	DefaultRefreshEvery = 5 * time.Minute
	// DefaultRefreshAtLeast is the least pause before a fetch for an unknown key unless JWTConfig says otherwise.
	DefaultRefreshAtLeast = 5 * time.Second
	// DefaultLeeway is how far the issuer's clock may differ unless JWTConfig says otherwise.
	DefaultLeeway = 30 * time.Second
)

// JWTConfig says which JSON Web Tokens are taken. Issuer, Audience and one of JWKSURL and PublicKey are required.
type JWTConfig struct {
	// JWKSURL is the address of the issuer's key set (RFC 7517): https, or http on this machine.
	JWKSURL string
	// AllowHTTP takes a JWKSURL of plain http on another machine too: who can answer in its place can make any token.
	AllowHTTP bool
	// PublicKey is PEM: RSA, EC or Ed25519 public keys or certificates, any of which may sign.
	PublicKey []byte
	// Issuer is what the claim iss must be, Audience what aud must name.
	Issuer, Audience string
	// Timeout bounds one fetch of the key set. Default DefaultTimeout.
	Timeout time.Duration
	// RefreshEvery is the pause between two fetches, after which a key that was taken back works no more. Default
	// DefaultRefreshEvery.
	RefreshEvery time.Duration
	// RefreshAtLeast is the least pause before a fetch because of a token whose key is not known, so that made-up tokens
	// do not load the issuer. Default DefaultRefreshAtLeast.
	RefreshAtLeast time.Duration
	// Leeway is how far the issuer's clock may differ when exp, nbf and iat are checked. Default DefaultLeeway.
	Leeway time.Duration
	// Logger tells of fetches that fail. Default: nothing is logged.
	Logger *slog.Logger
	// Client fetches the key set. Default: one that follows at most three redirects, none from https to http and none to
	// plain http on another machine, even where AllowHTTP allows to begin there.
	Client *http.Client
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c JWTConfig) validate() error {
	if c.Issuer == "" || c.Audience == "" {
		return &core.Error{
			Code: core.CodeInvalid, Message: "tokens are not taken without an issuer and an audience",
			Hint: "any token that the issuer ever signed, for whatever service, would be let in",
		}
	}
	if (c.JWKSURL == "") == (len(c.PublicKey) == 0) {
		return core.NewError(core.CodeInvalid, "either the address of a key set or a public key is needed to check tokens")
	}
	if c.Timeout < 0 || c.RefreshEvery < 0 || c.RefreshAtLeast < 0 || c.Leeway < 0 {
		return core.NewError(core.CodeInvalid, "times must not be negative")
	}
	if c.JWKSURL == "" {
		return nil
	}
	u, err := url.Parse(c.JWKSURL)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		// Without the cause: it would show the address with what may be a password in it.
		return core.NewError(core.CodeInvalid, "the address of the key set is not an absolute http or https address")
	}
	if u.Scheme == "http" && !c.AllowHTTP && !isLoopback(u.Hostname()) {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the key set would be fetched without encryption from another machine",
			Hint: "use https: who can answer in its place can make any token",
		}
	}
	return nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

func (c JWTConfig) withDefaults() JWTConfig {
	orElse := func(given, fallback time.Duration) time.Duration {
		if given == 0 {
			return fallback
		}
		return given
	}
	c.Timeout = orElse(c.Timeout, DefaultTimeout)
	c.RefreshEvery = orElse(c.RefreshEvery, DefaultRefreshEvery)
	c.RefreshAtLeast = orElse(c.RefreshAtLeast, DefaultRefreshAtLeast)
	c.Leeway = orElse(c.Leeway, DefaultLeeway)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Client == nil {
		c.Client = &http.Client{
			CheckRedirect: withoutDowngrade,
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: c.Timeout}).DialContext,
				TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
			},
		}
	}
	return c
}
