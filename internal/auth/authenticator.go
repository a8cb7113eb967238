package auth

import (
	"context"
	"slices"
	"strings"

	"tutti/internal/core"
)

// maxTokenBytes bounds a token; longer ones are rejected unread.
const maxTokenBytes = 16 << 10

// Authenticator authenticates bearer tokens: API keys, JSON Web Tokens and opaque tokens of another server. Scopes defines the scope
// names of all.
type Authenticator struct {
	Scopes
	keys          *Keys
	jwt           *JWT
	introspection *Introspection
}

// New returns an Authenticator with the Scopes of keys. A nil jwt means that JSON Web Tokens are opaque, a nil introspection that opaque
// tokens are rejected.
func New(keys *Keys, jwt *JWT, introspection *Introspection) *Authenticator {
	return &Authenticator{Scopes: keys.cfg.Scopes, keys: keys, jwt: jwt, introspection: introspection}
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
	case a.jwt != nil && (a.introspection == nil || isJWT(token)):
		verified, err := a.jwt.authenticate(ctx, token)
		return a.principal("jwt:"+a.jwt.cfg.Issuer+"|", verified, err)
	case a.introspection != nil:
		verified, err := a.introspection.authenticate(ctx, token)
		return a.principal("introspection:", verified, err)
	default:
		return core.Principal{}, unauthenticated("the token is not an API key", "use an API key, which starts with "+keyPrefix)
	}
}

// principal returns the Principal of a verified token, or err.
func (a *Authenticator) principal(prefix string, verified verifiedToken, err error) (core.Principal, error) {
	if err != nil {
		return core.Principal{}, err
	}
	scopes := verified.scopes
	for _, role := range verified.roles {
		if a.check(role) == nil && !slices.Contains(scopes, role) {
			scopes = append(slices.Clip(scopes), role)
		}
	}
	return a.grant(prefix+verified.subject, verified.subject, scopes), nil
}
