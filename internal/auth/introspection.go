package auth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

// defaultTokenParameter is the parameter of RFC 7662, section 2.1.
const defaultTokenParameter = "token"

const aboutIntrospection = "introspection"

// IntrospectionConfig configures an Introspection. URL is required.
type IntrospectionConfig struct {
	// URL is the address that tokens are sent to: https, or http on this machine.
	URL string
	// AllowHTTP permits http to other machines: within a private network.
	AllowHTTP bool
	// ClientID and ClientSecret are the credentials for basic authentication. Default: none.
	ClientID, ClientSecret string
	// TokenParameter is the name of the token's parameter. With token, the default, the request is a form (RFC 7662); with another, such
	// as apiKey of Ego and Keycloak's plugin for API keys, it is multipart, as Song sends it.
	TokenParameter string
	// Timeout bounds one request. Default DefaultTimeout.
	Timeout time.Duration
	TLS     tlsconfig.Files
	// Logger logs outages. Default: no logging.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c IntrospectionConfig) withDefaults() IntrospectionConfig {
	c.TokenParameter = cmp.Or(c.TokenParameter, defaultTokenParameter)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Introspection checks opaque tokens at the server that issued them: by RFC 7662, or as Song checks API keys of Ego and Keycloak. An
// accepted token is not checked again for CheckedFor. It is safe for concurrent use.
type Introspection struct {
	cfg    IntrospectionConfig
	checks *remoteChecks
}

// NewIntrospection returns an Introspection. CodeInvalid for a bad Config.
func NewIntrospection(cfg IntrospectionConfig) (*Introspection, error) {
	if err := checkURL("the URL of the introspection", cfg.URL, cfg.AllowHTTP); err != nil {
		return nil, err
	}
	if cfg.Timeout < 0 {
		return nil, core.NewError(core.CodeInvalid, "times must not be negative")
	}
	i := &Introspection{cfg: cfg.withDefaults()}
	client, err := newClient(i.cfg.Timeout, cfg.TLS, keepRedirect)
	if err != nil {
		return nil, err
	}
	i.checks = &remoteChecks{
		about: aboutIntrospection, credentials: cfg.TLS.Name("clientId") + " and clientSecret", address: cfg.TLS.Name("url"), request: i.request, decide: introspected,
		client: client, files: cfg.TLS, timeout: i.cfg.Timeout, now: i.cfg.Now, log: i.cfg.Logger, cache: newTokenCache(),
		requests: semaphore.NewWeighted(maxConnections),
	}
	return i, nil
}

// Close waits for the requests in flight. No other call may follow.
func (i *Introspection) Close() { i.checks.close() }

func (i *Introspection) authenticate(ctx context.Context, token string) (verifiedToken, error) {
	verified, err := i.checks.check(ctx, token)
	if err == nil && verified.subject == "" {
		sum := sha256.Sum256([]byte(token))
		verified.subject = "token " + hex.EncodeToString(sum[:8])
	}
	return verified, err
}

func (i *Introspection) request(ctx context.Context, token string) (*http.Request, error) {
	body, contentType, err := i.body(token)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.cfg.URL, body)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", "application/json")
	if i.cfg.ClientID != "" {
		request.SetBasicAuth(i.cfg.ClientID, i.cfg.ClientSecret)
	}
	return request, nil
}

// body returns the body of a request and its type.
func (i *Introspection) body(token string) (io.Reader, string, error) {
	if i.cfg.TokenParameter == defaultTokenParameter {
		return strings.NewReader(url.Values{defaultTokenParameter: {token}}.Encode()), "application/x-www-form-urlencoded", nil
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if err := form.WriteField(i.cfg.TokenParameter, token); err != nil {
		return nil, "", fmt.Errorf("writing a form: %w", err)
	}
	if err := form.Close(); err != nil {
		return nil, "", fmt.Errorf("writing a form: %w", err)
	}
	return &body, form.FormDataContentType(), nil
}

// introspected parses the response about a token. Ego and Keycloak's plugin accept a token with status 207. The member exp has three
// meanings (seconds left, milliseconds and seconds since 1970), so only zero and less are read: the token has expired.
func introspected(status int, body []byte) (verifiedToken, error) {
	if rejected(status) {
		return verifiedToken{}, errRejected(status)
	}
	if status != http.StatusOK && status != http.StatusMultiStatus {
		return verifiedToken{}, badStatus(status)
	}
	var answer map[string]any
	if err := json.Unmarshal(body, &answer); err != nil {
		return verifiedToken{}, notUnderstood(err)
	}
	if answer == nil {
		return verifiedToken{}, notUnderstood(errors.New("the response is not an object"))
	}
	active, hasActive := answer["active"]
	valid, hasValid := answer["valid"]
	revoked, hasRevoked := answer["revoked"]
	expiry, hasExpiry := answer["exp"].(float64)
	switch {
	case answer["error"] != nil,
		hasActive && active != true,
		hasValid && valid != true,
		hasRevoked && revoked != false,
		hasExpiry && expiry <= 0,
		answer["scope"] == nil && !hasActive: // only RFC 7662 permits a token without scopes
		return verifiedToken{}, errRejected(status)
	}
	verified := verifiedToken{scopes: scopeList(answer["scope"])}
	for _, name := range []string{"sub", "user_id", "username", "client_id"} {
		if subject, ok := answer[name].(string); ok && subject != "" {
			verified.subject = subject
			break
		}
	}
	return verified, nil
}

// Probe sends a random token to the server, which must reject it. CodeUpstream, with a message that follows the server's name, for
// another response; other errors are those of the connection.
func (i *Introspection) Probe(ctx context.Context) error { return i.checks.probe(ctx) }

// isJWT reports whether a token has the form of a JSON Web Token: three parts, the first a JSON object.
func isJWT(token string) bool {
	header, _, ok := strings.Cut(token, ".")
	if !ok || strings.Count(token, ".") != 2 {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(header)
	return err == nil && json.Valid(text) && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))
}
