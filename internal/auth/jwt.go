package auth

import (
	"context"
	"errors"
	"slices"

	"github.com/golang-jwt/jwt/v5"

	"tutti/internal/core"
)

// JWT verifies JSON Web Tokens: signed with RS, PS, ES or EdDSA by a key of the issuer, for the audience, and not expired. It is safe
// for concurrent use.
type JWT struct {
	cfg    JWTConfig
	parser *jwt.Parser
	// fixed holds the keys of a public key file; issuer fetches them instead.
	fixed  keySet
	issuer *issuerKeys
	// uma requests the permissions of tokens; nil if their claims contain them.
	uma *remoteChecks
}

// errNoKey: no key of the issuer matches the token.
var errNoKey = errors.New("no key of the issuer fits the token")

// NewJWT returns a JWT. With a JWKSURL it fetches the keys in the background until Close; it does not wait, and succeeds even when
// the issuer does not answer. CodeInvalid for a bad Config.
func NewJWT(ctx context.Context, cfg JWTConfig) (*JWT, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	j := &JWT{cfg: cfg}
	options := []jwt.ParserOption{
		jwt.WithValidMethods([]string{
			"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
		}),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(j.cfg.Leeway), jwt.WithTimeFunc(j.cfg.Now), jwt.WithStrictDecoding(),
	}
	if !cfg.AnyIssuer {
		options = append(options, jwt.WithIssuer(cfg.Issuer))
	}
	if !cfg.AnyAudience {
		options = append(options, jwt.WithAudience(cfg.Audience))
	}
	j.parser = jwt.NewParser(options...)
	if cfg.JWKSURL == "" {
		if j.fixed, err = parsePEM(cfg.PublicKey); err != nil {
			return nil, err
		}
	}
	if cfg.UMA.TokenURL != "" {
		if j.uma, err = newUMA(j.cfg); err != nil {
			return nil, err
		}
	}
	if cfg.JWKSURL == "" {
		return j, nil
	}
	j.issuer = &issuerKeys{
		url: cfg.JWKSURL, client: j.cfg.Client, files: j.cfg.TLS, log: j.cfg.Logger, now: j.cfg.Now,
		interval: j.cfg.RefreshInterval, minInterval: j.cfg.MinRefreshInterval, timeout: j.cfg.Timeout,
	}
	j.issuer.start(ctx)
	return j, nil
}

// Close ends fetching keys and waits for the goroutines. It may be called again.
func (j *JWT) Close() {
	if j.issuer != nil {
		j.issuer.stop()
	}
	if j.uma != nil {
		j.uma.close()
	}
}

// verifiedToken is the content of a valid token.
type verifiedToken struct {
	subject string
	scopes  []string
	// roles are the roles of a token of Keycloak, with JWTConfig.Roles.
	roles []string
	// permissions are the scopes of a requesting party token for UMA.ClientID, nil for another token.
	permissions []string
}

// authenticate verifies a token. If UMA is configured, it requests the token's permissions, which replace its scopes as in Song, because
// any client may request the claim scope.
func (j *JWT) authenticate(ctx context.Context, token string) (verifiedToken, error) {
	verified, err := j.verify(ctx, token)
	if err != nil || j.uma == nil {
		return verified, err
	}
	verified.scopes = verified.permissions
	if verified.permissions == nil {
		granted, err := j.uma.check(ctx, token)
		if err != nil {
			return verifiedToken{}, err
		}
		verified.scopes = granted.scopes
	}
	return verified, nil
}

// verify verifies a token. An unknown key, or a signature that no known key fits, causes a fetch of the issuer's keys, so that the issuer can
// change its keys at any time, also under an old key id.
func (j *JWT) verify(ctx context.Context, token string) (verifiedToken, error) {
	if j.issuer == nil {
		return j.verifyWith(j.fixed, token)
	}
	set, known, _ := j.issuer.keys()
	if !known {
		j.issuer.refresh(ctx)
		var fault error
		if set, known, fault = j.issuer.keys(); !known {
			return verifiedToken{}, j.issuerUnavailable(fault)
		}
	}
	verified, err := j.verifyWith(set, token)
	if !errors.Is(err, errNoKey) && !errors.Is(err, jwt.ErrTokenSignatureInvalid) {
		return verified, err
	}
	if j.issuer.refresh(ctx) {
		set, _, _ = j.issuer.keys()
		verified, err = j.verifyWith(set, token)
	}
	// While the issuer does not answer, it is unknown whether it has such a key now.
	if _, _, fault := j.issuer.keys(); fault != nil && errors.Is(err, errNoKey) {
		return verifiedToken{}, j.issuerUnavailable(fault)
	}
	return verified, err
}

func (j *JWT) issuerUnavailable(fault error) error {
	return &core.Error{
		Code: core.CodeUnavailable, Message: "tokens cannot be verified: their issuer does not answer",
		RetryAfter: j.cfg.MinRefreshInterval, Err: fault,
	}
}

// verifyWith verifies a token with keys. An error because no key matches has errNoKey in its chain.
func (j *JWT) verifyWith(set keySet, token string) (verifiedToken, error) {
	claims := jwt.MapClaims{}
	anonymous := false
	_, err := j.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical {
			return nil, errors.New("the header has critical extensions") // RFC 7515, section 4.1.11: none is supported
		}
		id, named := t.Header["kid"].(string)
		if _, given := t.Header["kid"]; given && !named {
			return nil, errors.New("the key id is not a string")
		}
		anonymous = id == ""
		var keys jwt.VerificationKeySet
		for _, k := range set.candidates(id, t.Method.Alg()) {
			keys.Keys = append(keys.Keys, k.key)
			anonymous = anonymous || k.id == ""
		}
		if len(keys.Keys) == 0 {
			return nil, errNoKey
		}
		return keys, nil
	})
	if err != nil {
		return verifiedToken{}, tokenError(err, anonymous)
	}
	subject, err := subjectOf(claims)
	if err != nil {
		return verifiedToken{}, err
	}
	return j.verified(subject, claims), nil
}

func (j *JWT) verified(subject string, claims jwt.MapClaims) verifiedToken {
	v := verifiedToken{subject: subject, scopes: scopesOf(claims)}
	client := j.cfg.UMA.ClientID
	if permissions, ok := permissionsOf(claims); ok && client != "" {
		// Another client's owner decides which permissions its tokens have.
		if audience, err := claims.GetAudience(); err == nil && slices.Contains(audience, client) {
			v.permissions = permissions
		}
	}
	if j.cfg.Roles {
		v.roles = rolesOf(claims, j.cfg.Audience, client)
	}
	return v
}

// subjectOf returns the subject of a token: sub, or the client that requested it for itself, which issuers name client_id (RFC 9068,
// section 2.2) or azp. Tokens without a subject would share their sets and other property.
func subjectOf(claims jwt.MapClaims) (string, error) {
	subject, err := claims.GetSubject()
	if err != nil {
		return "", tokenError(err, false)
	}
	if subject != "" {
		return subject, nil
	}
	for _, name := range []string{"client_id", "azp"} {
		if client, ok := claims[name].(string); ok && client != "" {
			return client, nil
		}
	}
	return "", unauthenticated("the token has no subject", "it needs the claim sub, or for a client the claim client_id or azp")
}

// tokenError converts an error of the parser. anonymous is true when the token or a key has no key id: if no known key verifies the
// signature, a new key of the issuer may.
func tokenError(err error, anonymous bool) error {
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
		return says("the token is not valid yet", "check the clocks of the issuer and of this server")
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return says("the token was issued by another issuer", "")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return says("the token is for another service", "ask for a token with this service's audience")
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return says("the token lacks a required claim", "it needs exp, and the iss and aud that auth.jwt requires")
	default:
		return fault
	}
}
