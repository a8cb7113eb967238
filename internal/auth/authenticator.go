package auth

import (
	"context"
	"strings"

	"tutti/internal/core"
)

// maxTokenBytes is the longest token that is looked at.
const maxTokenBytes = 16 << 10

// Authenticator tells who a bearer token belongs to, an API key or a JSON Web Token, and how the scopes of both are called.
type Authenticator struct {
	Scopes
	keys *Keys
	jwt  *JWT
}

// New makes an Authenticator. jwt is nil where API keys alone are taken. Scopes are called as in keys.
func New(keys *Keys, jwt *JWT) *Authenticator {
	return &Authenticator{Scopes: keys.cfg.Scopes, keys: keys, jwt: jwt}
}

// Authenticate returns whom a token belongs to. CodeUnauthenticated, with a message that is safe to show, for a token that
// proves nothing, and CodeUnavailable when it cannot be checked now. What it returns must not be changed.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (core.Principal, error) {
	switch {
	case token == "":
		return core.Principal{}, unauthenticated("the token is empty", "")
	case len(token) > maxTokenBytes:
		return core.Principal{}, unauthenticated("the token is too long", "")
	case strings.HasPrefix(token, keyPrefix):
		return a.keys.Authenticate(ctx, token)
	case a.jwt == nil:
		return core.Principal{}, unauthenticated("the token is not an API key", "API keys alone are taken here: they begin with "+keyPrefix)
	}
	verified, err := a.jwt.verify(ctx, token)
	if err != nil {
		return core.Principal{}, err
	}
	return a.grant("jwt:"+a.jwt.cfg.Issuer+"|"+verified.subject, verified.subject, verified.scopes), nil
}
