package settings

import (
	"tutti/internal/auth"
	"tutti/internal/config"
)

// JWT returns the settings of JSON Web Tokens.
func JWT(a config.Auth) auth.JWTConfig {
	return auth.JWTConfig{
		TLS: a.JWT.TLS.Files("auth.jwt"), Roles: a.JWT.Roles,
		JWKSURL: a.JWT.JWKSURL.Reveal(), PublicKey: a.JWT.PublicKey, AllowHTTP: a.AllowHTTP, Issuer: a.JWT.Issuer, Audience: a.JWT.Audience,
		AnyIssuer: a.JWT.AnyIssuer, AnyAudience: a.JWT.AnyAudience, UMA: auth.UMAConfig{TokenURL: a.UMA.TokenURL.Reveal(), ClientID: a.UMA.ClientID, TLS: a.UMA.TLS.Files("auth.uma")},
	}
}

// Introspection returns the settings of the server that checks opaque tokens.
func Introspection(a config.Auth) auth.IntrospectionConfig {
	i := a.Introspection
	return auth.IntrospectionConfig{
		URL: i.URL.Reveal(), AllowHTTP: a.AllowHTTP, ClientID: i.ClientID, ClientSecret: i.ClientSecret.Reveal(), TokenParameter: i.TokenParameter,
		TLS: i.TLS.Files("auth.introspection"),
	}
}

// Scopes returns the format of scopes.
func Scopes(c config.Auth) auth.Scopes {
	return auth.Scopes{
		System: c.SystemScope, OrganizationPrefix: c.OrganizationPrefix, WriteSuffix: c.WriteSuffix, ReadSuffix: c.ReadSuffix,
	}
}
