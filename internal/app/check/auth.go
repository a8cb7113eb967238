package check

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"tutti/internal/app/settings"
	"tutti/internal/auth"
	"tutti/internal/base/tlsconfig"
	"tutti/internal/config"
	"tutti/internal/core"
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
	verifier, err := auth.NewJWT(ctx, settings.JWT(a))
	if err != nil {
		return Finding{subjectAuth, StatusFail, "auth.jwt.publicKeyFile: " + core.MessageOf(err), core.HintOf(err)}
	}
	verifier.Close()
	of := cmp.Or(a.JWT.Issuer, "any issuer")
	return Finding{subjectAuth, StatusOK, "JSON Web Tokens of " + of + " are checked with the key in " + a.JWT.PublicKeyFile, ""}
}

// keySetAt fetches the keys of an issuer and reports how many can be used.
func keySetAt(ctx context.Context, a config.Auth) Finding {
	cfg, host := settings.JWT(a), hostOf(a.JWT.JWKSURL.Reveal())
	usable, unusable, err := auth.ProbeKeySet(ctx, cfg)
	if core.CodeOf(err) == core.CodeUpstream {
		return Finding{
			subjectAuth, StatusFail, host + " " + core.MessageOf(err),
			"check auth.jwt.jwksUrl: use the jwks_uri in the issuer's /.well-known/openid-configuration",
		}
	}
	if core.CodeOf(err) == core.CodeInvalid {
		return invalidAuth("auth.jwt", err)
	}
	if err != nil {
		return noAnswer(host, "auth.jwt.jwksUrl", cfg.TLS, err)
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
func noAnswer(host, key string, files tlsconfig.Files, err error) Finding {
	reason, hint := files.Failure(err)
	return Finding{subjectAuth, StatusFail, host + " does not answer: " + reason, cmp.Or(hint, "check "+key)}
}

// invalidAuth returns the finding for settings below key with which tutti does not start.
func invalidAuth(key string, err error) Finding {
	message := core.MessageOf(err)
	if !strings.HasPrefix(message, "auth.") {
		message = key + ": " + message
	}
	return Finding{subjectAuth, StatusFail, message, core.HintOf(err)}
}

// introspection sends a random token to the server that checks opaque tokens.
func introspection(ctx context.Context, a config.Auth) Finding {
	cfg, host := settings.Introspection(a), hostOf(a.Introspection.URL.Reveal())
	checker, err := auth.NewIntrospection(cfg)
	if err != nil {
		return invalidAuth("auth.introspection", err)
	}
	defer checker.Close()
	good := host + " rejects a random token, as it must"
	if cfg.ClientID != "" {
		good += "; it may reject every token if clientId or clientSecret is wrong"
	}
	return probed(checker.Probe(ctx), host, "auth.introspection.url", cfg.TLS, good)
}

// permissions sends a random token to the server that exchanges tokens for permissions.
func permissions(ctx context.Context, a config.Auth) Finding {
	host := hostOf(a.UMA.TokenURL.Reveal())
	cfg := settings.JWT(a)
	err := auth.ProbeUMA(ctx, cfg)
	return probed(err, host, "auth.uma.tokenUrl", cfg.UMA.TLS, host+" rejects the exchange of a random token for permissions, as it must")
}

// probed returns the finding of a probe with a random token, at the address in key.
func probed(err error, host, key string, files tlsconfig.Files, good string) Finding {
	switch {
	case err == nil:
		return Finding{subjectAuth, StatusOK, good, ""}
	case core.CodeOf(err) == core.CodeUpstream:
		return Finding{subjectAuth, StatusFail, host + " " + core.MessageOf(err), cmp.Or(core.HintOf(err), "check "+key)}
	case core.CodeOf(err) == core.CodeInvalid:
		return invalidAuth(key, err)
	default:
		return noAnswer(host, key, files, err)
	}
}
