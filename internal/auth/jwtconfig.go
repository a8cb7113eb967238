package auth

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

const (
	// DefaultTimeout is the default of JWTConfig.Timeout.
	DefaultTimeout = 5 * time.Second
	// DefaultRefreshInterval is the default of JWTConfig.RefreshInterval.
	DefaultRefreshInterval = 5 * time.Minute
	// DefaultMinRefreshInterval is the default of JWTConfig.MinRefreshInterval.
	DefaultMinRefreshInterval = 5 * time.Second
	// DefaultLeeway is the default of JWTConfig.Leeway.
	DefaultLeeway = 30 * time.Second
)

// JWTConfig configures a JWT. Issuer, Audience and one of JWKSURL and PublicKey are required.
type JWTConfig struct {
	// JWKSURL is the address of the issuer's keys, a JSON Web Key Set (RFC 7517) or PEM: https, or http on this machine.
	JWKSURL string
	// AllowHTTP permits http to other machines for JWKSURL and UMA, which is safe only within a private network.
	AllowHTTP bool
	// PublicKey is PEM: RSA, EC or Ed25519 public keys or certificates, any of which may sign.
	PublicKey []byte
	// Issuer is the required claim iss, Audience the required value of aud.
	Issuer, Audience string
	// AnyIssuer and AnyAudience accept tokens with any iss or aud, or none; Issuer and Audience are then ignored.
	AnyIssuer, AnyAudience bool
	// Roles adds roles to the scopes of a token, those with the form of a scope: the roles in realm_access, and those in
	// resource_access of the client Audience or UMA.ClientID.
	Roles bool
	// UMA requests the scopes of a token from Keycloak. Default: they are claims of the token.
	UMA UMAConfig
	// Timeout bounds one fetch of the keys, and one exchange with UMA. Default DefaultTimeout.
	Timeout time.Duration
	// RefreshInterval is the pause between two fetches, after which a withdrawn key no longer works. Default DefaultRefreshInterval.
	RefreshInterval time.Duration
	// MinRefreshInterval is the minimum pause before a fetch for a token that no known key has signed, so that forged tokens do not load the
	// issuer. Default DefaultMinRefreshInterval.
	MinRefreshInterval time.Duration
	// Leeway is how far the issuer's clock may differ when exp, nbf and iat are checked. Default DefaultLeeway.
	Leeway time.Duration
	// Logger logs failed fetches. Default: no logging.
	Logger *slog.Logger
	// TLS is for connections to JWKSURL.
	TLS tlsconfig.Files
	// Client fetches the keys. Default: one that follows at most three redirects, none from https to http and, without AllowHTTP, none
	// to plain http on another machine.
	Client *http.Client
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c JWTConfig) validate() error {
	if (c.Issuer == "") != c.AnyIssuer || (c.Audience == "") != c.AnyAudience {
		return &core.Error{
			Code: core.CodeInvalid, Message: "JSON Web Tokens need an issuer and an audience, or the settings that allow any",
			Hint: "without them every token that the issuer signed for any service would be accepted",
		}
	}
	if (c.JWKSURL == "") == (len(c.PublicKey) == 0) {
		return core.NewError(core.CodeInvalid, "set either the URL of a key set or a public key")
	}
	if c.Timeout < 0 || c.RefreshInterval < 0 || c.MinRefreshInterval < 0 || c.Leeway < 0 {
		return core.NewError(core.CodeInvalid, "times must not be negative")
	}
	if c.JWKSURL != "" {
		if err := checkURL("the URL of the key set", c.JWKSURL, c.AllowHTTP); err != nil {
			return err
		}
	}
	return c.UMA.validate(c.AllowHTTP)
}

func (c JWTConfig) withDefaults() (JWTConfig, error) {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.RefreshInterval = cmp.Or(c.RefreshInterval, DefaultRefreshInterval)
	c.MinRefreshInterval = cmp.Or(c.MinRefreshInterval, DefaultMinRefreshInterval)
	c.Leeway = cmp.Or(c.Leeway, DefaultLeeway)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	var err error
	if c.Client == nil && c.JWKSURL != "" {
		c.Client, err = newClient(c.Timeout, c.TLS, rejectDowngrade(c.AllowHTTP))
	}
	return c, err
}
