package check

import (
	"cmp"
	"context"
	"fmt"

	"tutti/internal/auth"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/upstream"
)

const subjectAuth = "auth"

func authProbe(cfg config.Config, look inspectStore) probe {
	if cfg.Auth.Mode == config.ModeNone {
		return func(context.Context) []Finding { return []Finding{noAuthentication(cfg.Server)} }
	}
	return func(ctx context.Context) []Finding {
		var found []Finding
		if cfg.Auth.JWT.Enabled() {
			found = append(found, tokenKeys(ctx, cfg.Auth))
		}
		return append(apiKeys(cfg, look), found...)
	}
}

// noAuthentication returns the finding for auth.mode none.
func noAuthentication(s config.Server) Finding {
	if s.Loopback() {
		return Finding{subjectAuth, StatusOK, "authentication is off; " + s.Listen + " can only be reached from this machine", ""}
	}
	return Finding{
		subjectAuth, StatusWarn, "authentication is off, and " + s.Listen + " can be reached from other machines",
		"set auth.mode: token, or restrict access with a proxy",
	}
}

// apiKeys reports how many API keys are valid. It returns nothing when the store cannot be read: the store's own finding says so.
func apiKeys(cfg config.Config, look inspectStore) []Finding {
	r, err := look()
	system := cfg.Auth.SystemScope + cfg.Auth.WriteSuffix
	switch {
	case err != nil, r.Unreadable, r.Version > r.Newest:
		return nil
	case r.Keys > 0:
		return []Finding{{subjectAuth, StatusOK, count(r.Keys, "API key is", "API keys are") + " valid", ""}}
	case cfg.Auth.JWT.Enabled():
		return []Finding{{subjectAuth, StatusOK, "no API key is valid; only JSON Web Tokens are accepted", ""}}
	default:
		return []Finding{{
			subjectAuth, StatusWarn, "auth.mode is token, but there is no valid API key",
			"create the first one while tutti is stopped: tutti keys create --config FILE --name NAME --scope " + system,
		}}
	}
}

// tokenKeys checks the keys that verify JSON Web Tokens.
func tokenKeys(ctx context.Context, a config.Auth) Finding {
	if a.JWT.JWKSURL != "" {
		return keySetAt(ctx, a.JWT)
	}
	verifier, err := auth.NewJWT(ctx, auth.JWTConfig{
		PublicKey: a.JWT.PublicKey, Issuer: a.JWT.Issuer, Audience: a.JWT.Audience,
	})
	if err != nil {
		return Finding{subjectAuth, StatusFail, "auth.jwt.publicKeyFile: " + core.MessageOf(err), core.HintOf(err)}
	}
	verifier.Close()
	return Finding{subjectAuth, StatusOK, "JSON Web Tokens of " + a.JWT.Issuer + " are checked with the key in " + a.JWT.PublicKeyFile, ""}
}

// keySetAt fetches the keys of an issuer and reports how many can be used.
func keySetAt(ctx context.Context, jwt config.JWT) Finding {
	host := hostOf(jwt.JWKSURL)
	usable, unusable, err := auth.ProbeKeySet(ctx, auth.JWTConfig{JWKSURL: jwt.JWKSURL, Issuer: jwt.Issuer, Audience: jwt.Audience})
	if core.CodeOf(err) == core.CodeUpstream {
		return Finding{
			subjectAuth, StatusFail, host + " " + core.MessageOf(err),
			"check auth.jwt.jwksUrl: use the jwks_uri in the issuer's /.well-known/openid-configuration",
		}
	}
	if err != nil {
		reason, hint := upstream.ConnectionFailure(err)
		return Finding{subjectAuth, StatusFail, host + " does not answer: " + reason, cmp.Or(hint, "check auth.jwt.jwksUrl")}
	}
	if usable == 0 {
		return Finding{
			subjectAuth, StatusFail, fmt.Sprintf("%s lists %s, but none can be used", host, count(unusable, "key", "keys")),
			"have the issuer publish an RSA key of at least 2048 bits, an EC key of P-256, P-384 or P-521, or an Ed25519 key",
		}
	}
	message := host + " lists " + count(usable, "key", "keys") + " that tokens can be signed with"
	if unusable > 0 {
		message += fmt.Sprintf(", and %d that cannot be used", unusable)
	}
	return Finding{subjectAuth, StatusOK, message, ""}
}
