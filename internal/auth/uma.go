package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/sync/semaphore"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
)

// UMAConfig configures the exchange of a token for its permissions at Keycloak, with a UMA grant, as Song does for its provider keycloak.
// The zero value is off.
type UMAConfig struct {
	// TokenURL is the token endpoint of the realm, {host}/realms/{realm}/protocol/openid-connect/token: https, or http on this machine.
	TokenURL string
	// ClientID is the client whose resources are named like the permissions.
	ClientID string
	TLS      tlsconfig.Files
}

func (c UMAConfig) validate(allowHTTP bool) error {
	switch {
	case c.TokenURL == "" && c.ClientID == "":
		return nil
	case c.TokenURL == "" || c.ClientID == "":
		return core.NewError(core.CodeInvalid, "the exchange of tokens for permissions needs a URL and a client")
	default:
		return checkURL("the URL of the token endpoint", c.TokenURL, allowHTTP)
	}
}

func newUMA(cfg JWTConfig) (*remoteChecks, error) {
	client, err := newClient(cfg.Timeout, cfg.UMA.TLS, keepRedirect)
	if err != nil {
		return nil, err
	}
	form := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:uma-ticket"}, "audience": {cfg.UMA.ClientID}, "response_mode": {"permissions"},
	}.Encode()
	return &remoteChecks{
		about: "uma", credentials: cfg.UMA.TLS.Name("clientId"), address: cfg.UMA.TLS.Name("tokenUrl"), decide: permitted,
		request: func(ctx context.Context, token string) (*http.Request, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, cfg.UMA.TokenURL, strings.NewReader(form))
			if err != nil {
				return nil, fmt.Errorf("making a request: %w", err)
			}
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.Header.Set("Accept", "application/json")
			request.Header.Set("Authorization", "Bearer "+token)
			return request, nil
		},
		client: client, files: cfg.UMA.TLS, timeout: cfg.Timeout, now: cfg.Now, log: cfg.Logger, cache: newTokenCache(),
		requests: semaphore.NewWeighted(maxConnections),
	}, nil
}

// ProbeUMA sends a random token to cfg.UMA, which must reject it. Errors are those of Introspection.Probe.
func ProbeUMA(ctx context.Context, cfg JWTConfig) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	checks, err := newUMA(cfg)
	if err != nil {
		return err
	}
	defer checks.close()
	return checks.probe(ctx)
}

// permitted returns the scopes of a response with permissions: none with status 403 and the error access_denied.
func permitted(status int, body []byte) (verifiedToken, error) {
	if status == http.StatusForbidden {
		var answer struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(body, &answer) == nil && answer.Error == "access_denied" {
			return verifiedToken{}, nil
		}
	}
	if rejected(status) {
		return verifiedToken{}, errRejected(status)
	}
	if status != http.StatusOK {
		return verifiedToken{}, badStatus(status)
	}
	var permissions []any
	if err := json.Unmarshal(body, &permissions); err != nil {
		return verifiedToken{}, notUnderstood(err)
	}
	return verifiedToken{scopes: permissionScopes(permissions)}, nil
}
