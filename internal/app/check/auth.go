package check

import (
	"cmp"
	"context"
	"fmt"

	"tutti/internal/auth"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tlsconfig"
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
		if cfg.Auth.Introspection.URL != "" {
			found = append(found, introspection(ctx, cfg.Auth))
		}
		if cfg.Auth.UMA.TokenURL != "" {
			found = append(found, permissions(ctx, cfg.Auth))
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
	case cfg.Auth.Introspection.URL != "":
		return []Finding{{subjectAuth, StatusOK, "no API key of tutti is valid; only tokens of other servers are accepted", ""}}
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
		return keySetAt(ctx, a)
	}
	verifier, err := auth.NewJWT(ctx, jwtConfig(a))
	if err != nil {
		return Finding{subjectAuth, StatusFail, "auth.jwt.publicKeyFile: " + core.MessageOf(err), core.HintOf(err)}
	}
	verifier.Close()
	of := cmp.Or(a.JWT.Issuer, "any issuer")
	return Finding{subjectAuth, StatusOK, "JSON Web Tokens of " + of + " are checked with the key in " + a.JWT.PublicKeyFile, ""}
}

func jwtConfig(a config.Auth) auth.JWTConfig {
	return auth.JWTConfig{
		JWKSURL: a.JWT.JWKSURL, PublicKey: a.JWT.PublicKey, AllowHTTP: a.AllowHTTP, Issuer: a.JWT.Issuer, Audience: a.JWT.Audience,
		AnyIssuer: a.JWT.AnyIssuer, AnyAudience: a.JWT.AnyAudience, UMA: auth.UMAConfig(a.UMA),
	}
}

// keySetAt fetches the keys of an issuer and reports how many can be used.
func keySetAt(ctx context.Context, a config.Auth) Finding {
	host := hostOf(a.JWT.JWKSURL)
	usable, unusable, err := auth.ProbeKeySet(ctx, jwtConfig(a))
	if core.CodeOf(err) == core.CodeUpstream {
		return Finding{
			subjectAuth, StatusFail, host + " " + core.MessageOf(err),
			"check auth.jwt.jwksUrl: use the jwks_uri in the issuer's /.well-known/openid-configuration",
		}
	}
	if err != nil {
		return noAnswer(host, "auth.jwt.jwksUrl", err)
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

// noAnswer returns the finding for a server without a response, at the address in key.
func noAnswer(host, key string, err error) Finding {
	reason, hint := tlsconfig.Failure(err)
	return Finding{subjectAuth, StatusFail, host + " does not answer: " + reason, cmp.Or(hint, "check "+key)}
}

// introspection sends a random token to the server that checks opaque tokens.
func introspection(ctx context.Context, a config.Auth) Finding {
	i, host := a.Introspection, hostOf(a.Introspection.URL)
	checker, err := auth.NewIntrospection(auth.IntrospectionConfig{
		URL: i.URL, AllowHTTP: a.AllowHTTP, ClientID: i.ClientID, ClientSecret: i.ClientSecret.Reveal(), TokenParameter: i.TokenParameter,
	})
	if err != nil {
		return Finding{subjectAuth, StatusFail, "auth.introspection: " + core.MessageOf(err), core.HintOf(err)}
	}
	defer checker.Close()
	good := host + " rejects a random token, as it must"
	if i.ClientID != "" {
		good += "; it may reject every token if clientId or clientSecret is wrong"
	}
	return probed(checker.Probe(ctx), host, "auth.introspection.url", good)
}

// permissions sends a random token to the server that exchanges tokens for permissions.
func permissions(ctx context.Context, a config.Auth) Finding {
	host := hostOf(a.UMA.TokenURL)
	err := auth.ProbeUMA(ctx, jwtConfig(a))
	return probed(err, host, "auth.uma.tokenUrl", host+" rejects the exchange of a random token for permissions, as it must")
}

// probed returns the finding of a probe with a random token, at the address in key.
func probed(err error, host, key, good string) Finding {
	switch {
	case err == nil:
		return Finding{subjectAuth, StatusOK, good, ""}
	case core.CodeOf(err) == core.CodeUpstream:
		return Finding{subjectAuth, StatusFail, host + " " + core.MessageOf(err), "check " + key}
	default:
		return noAnswer(host, key, err)
	}
}
