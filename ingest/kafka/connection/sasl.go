package connection

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"tutti/internal/core"
)

// Mechanisms of SASL.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
	OAuthBearer = "OAUTHBEARER"
)

// SASL are credentials for brokers.
type SASL struct {
	// Mechanism is one of the constants, "" for none.
	Mechanism string
	// Username and Password are for PLAIN and SCRAM. Password is called for each authentication; its errors are *core.Error.
	Username string
	Password func() (string, error)
	// OAuth is for OAUTHBEARER.
	OAuth OAuth
}

func (s SASL) validate(key string) error {
	switch s.Mechanism {
	case "", OAuthBearer:
		return nil
	case Plain, ScramSHA256, ScramSHA512:
		if s.Username == "" || s.Password == nil {
			return core.NewError(core.CodeInvalid, keyOf(key, "sasl")+" needs a username and a password")
		}
		return nil
	default:
		return core.NewError(core.CodeInvalid, fmt.Sprintf("%s: %q is not a known mechanism", keyOf(key, "sasl.mechanism"), s.Mechanism))
	}
}

// mechanism returns the mechanism of a client, nil for none.
func (c *Connection) mechanism() sasl.Mechanism {
	s := c.cfg.SASL
	scramAuth := func(context.Context) (scram.Auth, error) {
		password, err := s.Password()
		return scram.Auth{User: s.Username, Pass: password}, err
	}
	switch s.Mechanism {
	case Plain:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := s.Password()
			return plain.Auth{User: s.Username, Pass: password}, err
		})
	case ScramSHA256:
		return scram.Sha256(scramAuth)
	case ScramSHA512:
		return scram.Sha512(scramAuth)
	case OAuthBearer:
		return bearer{c.tokens, oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, err := c.tokens.token(ctx)
			return oauth.Auth{Token: token}, err
		})}
	}
	return nil
}

// bearer is OAUTHBEARER with an error that says that the brokers refuse the token.
type bearer struct {
	tokens *tokens
	sasl.Mechanism
}

// Authenticate implements sasl.Mechanism.
func (b bearer) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	session, first, err := b.Mechanism.Authenticate(ctx, host)
	return bearerSession{b.tokens, session}, first, err
}

type bearerSession struct {
	tokens *tokens
	sasl.Session
}

// Challenge implements sasl.Session. Data after the token is the broker's reason to refuse it (RFC 7628, section 3.2.2).
func (s bearerSession) Challenge(response []byte) (done bool, next []byte, err error) {
	if len(response) == 0 {
		return s.Session.Challenge(response)
	}
	message, hint := s.tokens.refused()
	return false, nil, &core.Error{Code: core.CodeUnavailable, Message: message, Hint: hint}
}
