package auth

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"tutti/internal/core"
)

// JWT checks JSON Web Tokens: signed with RS, PS, ES or EdDSA by a key of the issuer, for the audience, and not expired.
// Its methods may be called from several goroutines at once.
type JWT struct {
	cfg    JWTConfig
	parser *jwt.Parser
	// One of the two says which keys the issuer has.
	fixed  keySet
	issuer *issuerKeys
}

// errNoKey: no key of the issuer is the one that the token names.
var errNoKey = errors.New("no key of the issuer fits the token")

// NewJWT makes a JWT. With a JWKSURL it begins to fetch the keys in the background, until Close; it does not wait, and
// succeeds also while the issuer does not answer. CodeInvalid for a bad Config.
func NewJWT(ctx context.Context, cfg JWTConfig) (*JWT, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	j := &JWT{cfg: cfg.withDefaults()}
	j.parser = jwt.NewParser(
		jwt.WithValidMethods([]string{
			"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
		}),
		jwt.WithIssuer(cfg.Issuer), jwt.WithAudience(cfg.Audience), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithLeeway(j.cfg.Leeway), jwt.WithTimeFunc(j.cfg.Now), jwt.WithStrictDecoding(),
	)
	if cfg.JWKSURL == "" {
		var err error
		j.fixed, err = parsePEM(cfg.PublicKey)
		return j, err
	}
	j.issuer = &issuerKeys{
		url: cfg.JWKSURL, client: j.cfg.Client, log: j.cfg.Logger, now: j.cfg.Now,
		every: j.cfg.RefreshEvery, atLeast: j.cfg.RefreshAtLeast, timeout: j.cfg.Timeout,
	}
	j.issuer.start(ctx)
	return j, nil
}

// Close ends the fetching of keys and waits for its end. It may be called again.
func (j *JWT) Close() {
	if j.issuer != nil {
		j.issuer.stop()
	}
}

// verifiedToken is what a token says that the issuer has signed.
type verifiedToken struct {
	subject string
	scopes  []string
}

// verify checks a token. A key that is not known has the issuer asked, so that it can change its keys at any time.
func (j *JWT) verify(ctx context.Context, token string) (verifiedToken, error) {
	if j.issuer == nil {
		return j.verifyWith(j.fixed, token)
	}
	set, known, _ := j.issuer.keys()
	if !known {
		j.issuer.refresh(ctx)
		var fault error
		if set, known, fault = j.issuer.keys(); !known {
			return verifiedToken{}, j.notNow(fault)
		}
	}
	verified, err := j.verifyWith(set, token)
	if !errors.Is(err, errNoKey) {
		return verified, err
	}
	if j.issuer.refresh(ctx) {
		set, _, _ = j.issuer.keys()
		verified, err = j.verifyWith(set, token)
	}
	// Whether the issuer has such a key meanwhile cannot be told while it does not answer.
	if _, _, fault := j.issuer.keys(); fault != nil && errors.Is(err, errNoKey) {
		return verifiedToken{}, j.notNow(fault)
	}
	return verified, err
}

func (j *JWT) notNow(fault error) error {
	return &core.Error{
		Code: core.CodeUnavailable, Message: "tokens cannot be checked now: their issuer does not answer",
		RetryAfter: j.cfg.RefreshAtLeast, Err: fault,
	}
}

// verifyWith checks a token against keys. What is wrong because no key fits has errNoKey in its chain.
func (j *JWT) verifyWith(set keySet, token string) (verifiedToken, error) {
	claims := jwt.MapClaims{}
	anonymous := false
	_, err := j.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical {
			return nil, errors.New("the header has critical extensions") // RFC 7515, section 4.1.11: none is understood
		}
		id, named := t.Header["kid"].(string)
		if _, given := t.Header["kid"]; given && !named {
			return nil, errors.New("the key id is not a string")
		}
		anonymous = id == ""
		var keys jwt.VerificationKeySet
		for _, k := range set.candidates(id, t.Method.Alg()) {
			keys.Keys = append(keys.Keys, k.key)
		}
		if len(keys.Keys) == 0 {
			return nil, errNoKey
		}
		return keys, nil
	})
	if err != nil {
		return verifiedToken{}, tokenFault(err, anonymous)
	}
	subject, err := subjectOf(claims)
	if err != nil {
		return verifiedToken{}, err
	}
	return verifiedToken{subject: subject, scopes: scopesOf(claims)}, nil
}

// subjectOf returns whom a token is for: without sub the client that got it for itself, which issuers name client_id (RFC
// 9068, section 2.2) or azp. All tokens without a name would own the same things.
func subjectOf(claims jwt.MapClaims) (string, error) {
	subject, err := claims.GetSubject()
	if err != nil {
		return "", tokenFault(err, false)
	}
	if subject != "" {
		return subject, nil
	}
	for _, name := range []string{"client_id", "azp"} {
		if client, ok := claims[name].(string); ok && client != "" {
			return client, nil
		}
	}
	return "", unauthenticated("the token does not say whom it is for", "it needs the claim sub, or for a client client_id or azp")
}

// tokenFault says in plain words what is wrong with a token. anonymous is true for one that names no key: when none of the
// known ones has signed it, a new one may have.
func tokenFault(err error, anonymous bool) error {
	fault := core.WrapError(core.CodeUnauthenticated, "the token is not valid", err)
	says := func(message, hint string) error {
		fault.Message, fault.Hint = message, hint
		return fault
	}
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return says("the token is neither an API key nor a JSON Web Token", "")
	case errors.Is(err, errNoKey):
		return says("the token is signed with a key that its issuer does not have", "ask for a new token")
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		if anonymous {
			fault.Err = errors.Join(err, errNoKey)
		}
		return says("the signature of the token is not valid", "tokens are signed with RS, PS, ES or EdDSA by the configured issuer")
	case errors.Is(err, jwt.ErrTokenExpired):
		return says("the token has expired", "ask for a new token")
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return says("the token is not valid yet", "see that the clocks of the issuer and of this server are right")
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return says("the token is of another issuer", "")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return says("the token is for another service", "ask for a token with this service's audience")
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return says("the token lacks a claim that is needed", "iss, aud and exp must be there")
	default:
		return fault
	}
}

// scopesOf returns the scopes of the claims scope, scp and context.scope, each a list or a string with spaces between
// (RFC 8693, section 4.2; the others are those of Microsoft and of Ego). What is neither grants nothing.
func scopesOf(claims jwt.MapClaims) []string {
	var scopes []string
	add := func(claim any) {
		switch v := claim.(type) {
		case string:
			scopes = append(scopes, strings.FieldsFunc(v, func(c rune) bool { return c == ' ' })...)
		case []any:
			for _, one := range v {
				if s, ok := one.(string); ok && s != "" {
					scopes = append(scopes, s)
				}
			}
		}
	}
	add(claims["scope"])
	add(claims["scp"])
	if nested, ok := claims["context"].(map[string]any); ok {
		add(nested["scope"])
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}
