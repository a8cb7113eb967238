package connection

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

const (
	// tokenTimeout limits a request for a token, maxTokenBytes its response.
	tokenTimeout  = 10 * time.Second
	maxTokenBytes = 1 << 20
	// renewAfter is the part of its life after which a token is not used for another connection.
	renewAfter = 0.75
)

// OAuth says where tokens come from, by a grant of client credentials (RFC 6749, section 4.4).
type OAuth struct {
	// TokenURL is the URL of the token endpoint.
	TokenURL string
	ClientID string
	// ClientSecret is called for each token; its errors are *core.Error.
	ClientSecret func() (string, error)
	// Scope is the requested scope; "" for none.
	Scope string
	// TLS names the files of connections to the token endpoint; its key is that of the whole OAuth.
	TLS tlsconfig.Files
}

// tokens fetches tokens. One is used for several connections, until three quarters of its life are over.
type tokens struct {
	cfg    OAuth
	client *http.Client

	mu      sync.Mutex
	current string
	renew   time.Time // when current is not used any more
	expires time.Time // when current ends, as far as is known
}

func newTokens(cfg OAuth) (*tokens, error) {
	if cfg.TokenURL == "" || cfg.ClientID == "" || cfg.ClientSecret == nil {
		return nil, core.NewError(core.CodeInvalid, cfg.TLS.Key+" needs a token URL, a client id and a client secret")
	}
	source, err := tlsconfig.New(cfg.TLS)
	if err != nil {
		return nil, err
	}
	return &tokens{cfg: cfg, client: &http.Client{
		Timeout:       tokenTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the request has a secret
		Transport: source.RoundTripper(&http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: tokenTimeout}).DialContext, ForceAttemptHTTP2: true,
			DisableKeepAlives: true, // a token lasts longer than an idle connection
		}),
	}}, nil
}

// token returns a token for a new connection.
func (t *tokens) token(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != "" && time.Now().Before(t.renew) {
		return t.current, nil
	}
	token, life, err := t.fetch(ctx)
	if err != nil {
		if t.current != "" && time.Now().Before(t.expires) {
			return t.current, nil // the brokers take it until it ends
		}
		return "", err
	}
	now := time.Now()
	t.current, t.renew, t.expires = token, now.Add(time.Duration(renewAfter*float64(life))), now.Add(life)
	return token, nil
}

// refused drops the token that the brokers refuse, and returns why, with a hint.
func (t *tokens) refused() (message, hint string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	expires, known := expiry(t.current)
	t.current = ""
	if known && time.Now().After(expires) {
		return "the Kafka brokers refuse the token, which has expired", "check the clocks of this machine and of " + t.key("tokenUrl") + ", and the lifetime of its tokens"
	}
	return "the Kafka brokers refuse the token", fmt.Sprintf("check that %s is the issuer that the brokers trust, that %s has the audience that they expect, and the clocks",
		t.key("tokenUrl"), t.key("scope"))
}

// expiry returns when a JSON Web Token ends; known is false for other tokens.
func expiry(token string) (at time.Time, known bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Exp == 0 {
		return time.Time{}, false
	}
	return time.Unix(int64(claims.Exp), 0), true
}

// fetch requests a token. life is zero if the server does not say how long it lasts.
func (t *tokens) fetch(ctx context.Context) (token string, life time.Duration, err error) {
	secret, err := t.cfg.ClientSecret()
	if err != nil {
		return "", 0, err
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if t.cfg.Scope != "" {
		form.Set("scope", t.cfg.Scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.cfg.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, t.failure("is not a URL", "such as https://idp.example.org/token", nil)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(t.cfg.ClientID), url.QueryEscape(secret)) // RFC 6749, section 2.3.1
	res, err := t.client.Do(req)
	if err != nil {
		if file, ok := errors.AsType[*core.Error](err); ok {
			return "", 0, file
		}
		reason, hint := t.cfg.TLS.Failure(err)
		return "", 0, t.failure("does not answer: "+reason, hint, err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Token     string      `json:"access_token"`
		ExpiresIn json.Number `json:"expires_in"`
		Error     string      `json:"error"`
	}
	malformed := json.NewDecoder(io.LimitReader(res.Body, maxTokenBytes)).Decode(&answer)
	switch {
	case answer.Error == "invalid_scope":
		return "", 0, t.failure("refuses the scope", "check "+t.key("scope"), nil)
	case res.StatusCode == http.StatusUnauthorized, answer.Error == "invalid_client", answer.Error == "unauthorized_client":
		return "", 0, t.failure("refuses the client", fmt.Sprintf("check %s and %s", t.key("clientId"), t.key("clientSecret")), nil)
	case res.StatusCode != http.StatusOK:
		return "", 0, t.failure(fmt.Sprintf("answered with status %d", res.StatusCode), "check that it is the URL of a token endpoint, and its log", nil)
	case malformed != nil, answer.Token == "":
		return "", 0, t.failure("answered without a token", "check that it is the URL of a token endpoint", malformed)
	}
	if seconds, err := answer.ExpiresIn.Float64(); err == nil {
		life = time.Duration(seconds * float64(time.Second))
	}
	return answer.Token, life, nil
}

// failure returns the error of a request for a token.
func (t *tokens) failure(what, hint string, cause error) error {
	if e, ok := errors.AsType[*url.Error](cause); ok {
		cause = e.Err // without the URL
	}
	return &core.Error{Code: core.CodeUnavailable, Message: "the server of " + t.key("tokenUrl") + " " + what, Hint: hint, Err: cause}
}

// key returns the whole name of a key.
func (t *tokens) key(name string) string { return keyOf(t.cfg.TLS.Key, name) }
