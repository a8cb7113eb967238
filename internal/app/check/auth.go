package check

import (
	"context"
	"errors"
	"fmt"

	"tutti/internal/auth"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/upstream"
)

const subjectAuth = "auth"

func authProbe(cfg config.Config, look looked) probe {
	if cfg.Auth.Mode == config.ModeNone {
		return func(context.Context) []Finding { return []Finding{openToAll(cfg.Server)} }
	}
	return func(ctx context.Context) []Finding {
		var found []Finding
		if cfg.Auth.JWT.Enabled() {
			found = append(found, tokenKeys(ctx, cfg.Auth))
		}
		return append(apiKeys(cfg, look), found...)
	}
}

// openToAll judges that nobody has to show a token.
func openToAll(s config.Server) Finding {
	if s.Loopback() {
		return Finding{subjectAuth, StatusOK, "nobody has to show a token; " + s.Listen + " can be reached from this machine alone", ""}
	}
	return Finding{
		subjectAuth, StatusWarn, "nobody has to show a token, and " + s.Listen + " can be reached from other machines",
		"set auth.mode: token, or have a proxy keep others out",
	}
}

// apiKeys tells how many API keys there are. Where the store does not say, its own finding is enough.
func apiKeys(cfg config.Config, look looked) []Finding {
	r, err := look()
	system := cfg.Auth.SystemScope + cfg.Auth.WriteSuffix
	switch {
	case err != nil, r.Unreadable, r.Version > r.Newest:
		return nil
	case r.Keys > 0:
		return []Finding{{subjectAuth, StatusOK, count(r.Keys, "API key is", "API keys are") + " valid", ""}}
	case cfg.Auth.JWT.Enabled():
		return []Finding{{subjectAuth, StatusOK, "no API key is valid; JSON Web Tokens alone are taken", ""}}
	default:
		return []Finding{{
			subjectAuth, StatusWarn, "a token must be shown, but there is no valid API key",
			"make the first one while tutti is stopped: tutti keys create --config FILE --name NAME --scope " + system,
		}}
	}
}

// tokenKeys looks at the keys that JSON Web Tokens are signed with.
func tokenKeys(ctx context.Context, a config.Auth) Finding {
	if a.JWT.JWKSURL != "" {
		return keySetAt(ctx, a.JWT.JWKSURL)
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

// keySetAt fetches the keys of an issuer and tells how many can be used.
func keySetAt(ctx context.Context, address string) Finding {
	host := hostOf(address)
	keys, err := fetchKeySet(ctx, address)
	if status, ok := errors.AsType[*keySetStatusError](err); ok {
		return Finding{
			subjectAuth, StatusFail, fmt.Sprintf("%s answered with status %d instead of a key set", host, status.status),
			"check auth.jwt.jwksUrl: it is the jwks_uri that the issuer's /.well-known/openid-configuration names",
		}
	}
	if errors.Is(err, errNoKeySet) {
		return Finding{
			subjectAuth, StatusFail, host + " answered, but not with a JSON Web Key Set",
			"check auth.jwt.jwksUrl: it is the jwks_uri that the issuer's /.well-known/openid-configuration names",
		}
	}
	if err != nil {
		reason, hint := upstream.ConnectionFailure(err)
		if hint == "" {
			hint = "check auth.jwt.jwksUrl"
		}
		return Finding{subjectAuth, StatusFail, host + " does not answer: " + reason, hint}
	}
	usable := 0
	for _, k := range keys {
		if k.usable() {
			usable++
		}
	}
	if usable == 0 {
		return Finding{
			subjectAuth, StatusFail, fmt.Sprintf("%s lists %s, of which none can be used", host, count(len(keys), "key", "keys")),
			"have the issuer publish an RSA key of at least 2048 bits, an EC key of P-256, P-384 or P-521, or an Ed25519 key",
		}
	}
	message := host + " lists " + count(usable, "key", "keys") + " that tokens can be signed with"
	if rest := len(keys) - usable; rest > 0 {
		message += fmt.Sprintf(", and %d that cannot be used", rest)
	}
	return Finding{subjectAuth, StatusOK, message, ""}
}
