package auth

import (
	"context"
	"strings"

	"tutti/internal/core"
)

// maxTokenBytes bounds a token; longer ones are rejected unread.
const maxTokenBytes = 16 << 10

// Authenticator authenticates bearer tokens: API keys and JSON Web Tokens. Scopes defines the scope names of both.
type Authenticator struct {
	Scopes
	keys *Keys
	jwt  *JWT
}

// New returns an Authenticator with the Scopes of keys. A nil jwt means that only API keys are accepted.
func New(keys *Keys, jwt *JWT) *Authenticator {
	return &Authenticator{Scopes: keys.cfg.Scopes, keys: keys, jwt: jwt}
}

// Authenticate returns the Principal of a token. CodeUnauthenticated, with a message that is safe to show, for an invalid token,
// CodeUnavailable when it cannot be checked now. The result must not be changed.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (core.Principal, error) {
	switch {
	case token == "":
		return core.Principal{}, unauthenticated("the token is empty", "")
	case len(token) > maxTokenBytes:
		return core.Principal{}, unauthenticated("the token is too long", "")
	case strings.HasPrefix(token, keyPrefix):
		return a.keys.Authenticate(ctx, token)
	case a.jwt == nil:
		return core.Principal{}, unauthenticated("the token is not an API key", "use an API key, which starts with "+keyPrefix)
	}
	verified, err := a.jwt.verify(ctx, token)
	if err != nil {
		return core.Principal{}, err
	}
	return a.grant("jwt:"+a.jwt.cfg.Issuer+"|"+verified.subject, verified.subject, verified.scopes), nil
}
