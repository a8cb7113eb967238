package config

import (
	"bytes"
	"encoding/pem"
	"net/url"
	"os"
	"strings"

	"tutti/internal/base/hostname"
	"tutti/internal/base/setting"
	"tutti/internal/core"
)

// Values of Auth.Mode.
const (
	// ModeNone turns authentication off.
	ModeNone = "none"
	// ModeToken requires an API key or a JSON Web Token.
	ModeToken = "token"
)

// scopePattern matches a part of a scope (RFC 6749, section 3.3): scopes are separated by spaces.
const scopePattern = `^[!#-\[\]-~]+$`

// Auth configures authentication and authorization (CONTRACT section 6).
type Auth struct {
	// Mode is ModeNone or ModeToken.
	Mode string
	// AllowInsecure permits a public address without authentication.
	AllowInsecure bool
	// DefaultAccess is a core.DefaultAccess: who can read a catalogue without an access.json. It is public by default with ModeNone,
	// authenticated with ModeToken.
	DefaultAccess string
	// SystemScope and WriteSuffix form the scope that allows everything.
	SystemScope string
	// OrganizationPrefix precedes an organization in its scopes, WriteSuffix or ReadSuffix follows it. Neither suffix may end in the
	// other.
	OrganizationPrefix string
	WriteSuffix        string
	ReadSuffix         string
	// AllowHTTP permits plain http to other machines for the URLs of JWT, Introspection and UMA.
	AllowHTTP     bool
	JWT           JWT
	Introspection Introspection
	UMA           UMA
}

// JWT configures the JSON Web Tokens accepted in addition to API keys.
type JWT struct {
	// JWKSURL is the URL of the issuer's keys, PublicKeyFile a PEM file with the only key, and PublicKey the file's content; at most
	// one of the two is set.
	JWKSURL       setting.URL
	PublicKeyFile string
	PublicKey     []byte
	// Issuer and Audience are the required iss and aud of a token, unless AnyIssuer and AnyAudience accept any.
	Issuer, Audience       string
	AnyIssuer, AnyAudience bool
	// Roles makes roles of Keycloak's tokens scopes.
	Roles bool
	// TLS is for JWKSURL.
	TLS ClientTLS
}

// Enabled reports whether JSON Web Tokens are accepted.
func (j JWT) Enabled() bool { return j.JWKSURL != "" || j.PublicKeyFile != "" }

// Introspection configures the server that checks opaque tokens.
type Introspection struct {
	// URL is empty when opaque tokens are rejected.
	URL          setting.URL
	ClientID     string
	ClientSecret setting.Secret
	// TokenParameter is the name of the token's parameter.
	TokenParameter string
	TLS            ClientTLS
}

// UMA configures the exchange of JSON Web Tokens for permissions at Keycloak; both are empty for none.
type UMA struct {
	// TokenURL is the token endpoint of the realm, ClientID the client whose resources the permissions name.
	TokenURL setting.URL
	ClientID string
	TLS      ClientTLS
}

func (a *Auth) key() setting.Key {
	const scopes = "printable ASCII without spaces, quotes and backslashes"
	return setting.Object("auth", "Authentication and authorization.",
		setting.Text("mode", &a.Mode, ModeNone, "none: no authentication; token: requests need an API key or a JSON Web Token.").
			OneOf(ModeNone, ModeToken),
		setting.Flag("allowInsecure", &a.AllowInsecure, false, "Permits a public address with mode none."),
		setting.Text("defaultAccess", &a.DefaultAccess, "",
			"Who can read a catalogue without an access.json. public: anyone, the default with mode none; authenticated: anyone with a "+
				"valid token, the default with mode token; deny: holders of the system's scope.").
			OneOf(string(core.AccessPublic), string(core.AccessAuthenticated), string(core.AccessDeny)),
		setting.Text("systemScope", &a.SystemScope, "tutti", "Followed by writeSuffix it is the scope that allows everything.").
			Require().Matching(scopePattern, scopes),
		setting.Text("organizationPrefix", &a.OrganizationPrefix, "", "Prefix of an organization in its scopes.").
			Matching(scopePattern, scopes),
		setting.Text("writeSuffix", &a.WriteSuffix, ".WRITE", "Suffix of an organization in the scope that allows changes.").
			Require().Matching(scopePattern, scopes),
		setting.Text("readSuffix", &a.ReadSuffix, ".READ", "Suffix of an organization in the scope that allows reading unpublished data.").
			Require().Matching(scopePattern, scopes),
		setting.Flag("allowHttp", &a.AllowHTTP, false,
			"Permits plain http to other machines for the URLs of jwt, introspection and uma: only within a private network, because whoever can answer in their place can make any token."),
		a.JWT.key(), a.Introspection.key(), a.UMA.key())
}

func (j *JWT) key() setting.Key {
	return setting.Object("jwt", "JSON Web Tokens accepted in addition to API keys, with mode token.", append([]setting.Key{
		setting.Address("jwksUrl", &j.JWKSURL,
			"URL of the issuer's keys, a JSON Web Key Set or PEM; https, or http on this machine or with allowHttp.").
			Matching(urlPattern, "an absolute http or https URL"),
		setting.Text("publicKeyFile", &j.PublicKeyFile, "", "PEM file with the issuer's public key."),
		setting.Text("issuer", &j.Issuer, "", "Required iss of a token; missing is an error without anyIssuer."),
		setting.Text("audience", &j.Audience, "", "Required aud of a token; missing is an error without anyAudience."),
		setting.Flag("anyIssuer", &j.AnyIssuer, false, "Accepts tokens with any iss or none that the issuer's keys signed, as Song does."),
		setting.Flag("anyAudience", &j.AnyAudience, false,
			"Accepts tokens with any aud or none, as Song does: also those that the issuer signed for other services. Ego's tokens have an empty aud, Keycloak's often account."),
		setting.Flag("roles", &j.Roles, false,
			"Makes roles scopes if they have the form of a scope: those in realm_access, and in resource_access those of the client audience or uma.clientId."),
	}, j.TLS.keys()...)...)
}

func (i *Introspection) key() setting.Key {
	return setting.Object("introspection", "Server that checks opaque tokens, with mode token. A token that it accepts is not checked again for 30 seconds.", append([]setting.Key{
		setting.Address("url", &i.URL, "URL that tokens are sent to, as in RFC 7662 or Ego's check_api_key; https, or http on this machine or with allowHttp.").
			Matching(urlPattern, "an absolute http or https URL"),
		setting.Text("clientId", &i.ClientID, "", "User for basic authentication."),
		setting.SecretText("clientSecret", &i.ClientSecret, "Password for basic authentication."),
		setting.Text("tokenParameter", &i.TokenParameter, "token",
			"Parameter of the token: token sends a form as in RFC 7662; another, such as apiKey of Ego and Keycloak's API keys, a multipart form.").
			Require().Matching(`^[A-Za-z0-9._-]+$`, "letters, digits, dots, underscores and hyphens"),
	}, i.TLS.keys()...)...)
}

func (u *UMA) key() setting.Key {
	return setting.Object("uma", "Exchange of JSON Web Tokens for permissions at Keycloak, with mode token: these, each a resource's name, a dot and a scope, are then the only scopes of a token.", append([]setting.Key{
		setting.Address("tokenUrl", &u.TokenURL, "Token endpoint of the realm, {host}/realms/{realm}/protocol/openid-connect/token; https, or http on this machine or with allowHttp.").
			Matching(urlPattern, "an absolute http or https URL"),
		setting.Text("clientId", &u.ClientID, "", "Client whose resources the permissions name."),
	}, u.TLS.keys()...)...)
}

// validate reports contradictions, sets defaults, and reads the public key.
func (a *Auth) validate(f *setting.ErrorList) {
	if a.WriteSuffix != "" && a.ReadSuffix != "" &&
		(strings.HasSuffix(a.WriteSuffix, a.ReadSuffix) || strings.HasSuffix(a.ReadSuffix, a.WriteSuffix)) {
		f.Add("auth.readSuffix", "", "use two suffixes where neither ends in the other, such as .READ and .WRITE",
			"%q and writeSuffix %q are ambiguous", a.ReadSuffix, a.WriteSuffix)
	}
	if organization, ok := strings.CutPrefix(a.SystemScope, a.OrganizationPrefix); ok && a.OrganizationPrefix != "" && organization != "" {
		f.Add("auth.systemScope", "", "use one that does not start with auth.organizationPrefix",
			"%q would also be the scope of an organization named %q", a.SystemScope, organization)
	}
	if a.Mode == ModeNone && a.DefaultAccess == string(core.AccessAuthenticated) {
		f.Add("auth.defaultAccess", "", "set auth.mode: token, or choose public or deny", "with auth.mode none no caller is authenticated")
	}
	a.fillDefaultAccess()
	j := &a.JWT
	if a.Mode == ModeNone {
		for _, k := range []struct{ name, value string }{
			{"jwt.jwksUrl", j.JWKSURL.Reveal()},
			{"jwt.publicKeyFile", j.PublicKeyFile},
			{"jwt.issuer", j.Issuer},
			{"jwt.audience", j.Audience},
			{"introspection.url", a.Introspection.URL.Reveal()},
			{"uma.tokenUrl", a.UMA.TokenURL.Reveal()},
		} {
			if k.value != "" {
				f.Add("auth."+k.name, "", "set auth.mode: token, or remove it", "has no effect with auth.mode none")
			}
		}
		return
	}
	j.validate(f)
	a.validateURL(f, "auth.jwt.jwksUrl", j.JWKSURL.Reveal(), "https://id.example.org/oauth/jwks", "an attacker on the network could replace the keys")
	a.validateIntrospection(f)
	a.validateUMA(f)
}

func (a *Auth) validateIntrospection(f *setting.ErrorList) {
	i := a.Introspection
	if i.URL == "" && (i.ClientID != "" || i.ClientSecret != "") {
		f.Add("auth.introspection.url", "", "set it, or remove the credentials", "is missing")
	}
	if (i.ClientID == "") != (i.ClientSecret == "") {
		f.Add("auth.introspection", "", "set clientId and clientSecret, or neither", "has only one of clientId and clientSecret")
	}
	i.TLS.validateFor("auth.introspection", "url", i.URL.Reveal(), f)
	a.validateURL(f, "auth.introspection.url", i.URL.Reveal(), "https://id.example.org/oauth/introspect", "an attacker on the network could read and accept tokens")
}

func (a *Auth) validateUMA(f *setting.ErrorList) {
	u := a.UMA
	switch {
	case u == UMA{}:
		return
	case u.TokenURL == "":
		f.Add("auth.uma.tokenUrl", "", "such as https://id.example.org/realms/NAME/protocol/openid-connect/token", "is missing")
	case u.ClientID == "":
		f.Add("auth.uma.clientId", "", "set the client whose resources the permissions name", "is missing")
	case !a.JWT.Enabled():
		f.Add("auth.uma", "", "set the issuer's keys with auth.jwt.jwksUrl or publicKeyFile", "exchanges JSON Web Tokens, but none are accepted")
	}
	u.TLS.validate("auth.uma", f)
	a.validateURL(f, "auth.uma.tokenUrl", u.TokenURL.Reveal(), "https://id.example.org/realms/NAME/protocol/openid-connect/token", "an attacker on the network could read tokens and grant permissions")
}

// fillDefaultAccess sets DefaultAccess when it is not set.
func (a *Auth) fillDefaultAccess() {
	switch {
	case a.DefaultAccess != "":
	case a.Mode == ModeToken:
		a.DefaultAccess = string(core.AccessAuthenticated)
	default:
		a.DefaultAccess = string(core.AccessPublic)
	}
}

func (j *JWT) validate(f *setting.ErrorList) {
	switch {
	case j.JWKSURL != "" && j.PublicKeyFile != "":
		f.Add("auth.jwt.publicKeyFile", "", "keep one of them", "is set in addition to auth.jwt.jwksUrl")
	case !j.Enabled() && (j.Issuer != "" || j.Audience != ""):
		f.Add("auth.jwt", "", "set the issuer's keys with jwksUrl or publicKeyFile", "has an issuer or an audience, but no keys")
	}
	j.validateClaim(f, "issuer", "iss", j.Issuer, "anyIssuer", j.AnyIssuer, "tokens of every issuer with the same key")
	j.validateClaim(f, "audience", "aud", j.Audience, "anyAudience", j.AnyAudience, "tokens for other services")
	j.TLS.validateFor("auth.jwt", "jwksUrl", j.JWKSURL.Reveal(), f)
	j.readPublicKey(f)
}

// validateClaim reports a claim that is neither required nor explicitly unrestricted, or both.
func (j *JWT) validateClaim(f *setting.ErrorList, name, claim, value, freeName string, free bool, accepted string) {
	switch {
	case value != "" && free:
		f.Add("auth.jwt."+freeName, "", "keep one of them", "is set in addition to auth.jwt.%s", name)
	case j.Enabled() && value == "" && !free:
		f.Add("auth.jwt."+name, "", "set the "+claim+" of the tokens", "is missing; without it %s would be accepted", accepted)
	}
}

// validateURL reports a URL that is not absolute, contains credentials, or is plain http to another machine without AllowHTTP.
func (a *Auth) validateURL(f *setting.ErrorList, at, address, example, risk string) {
	u, err := url.Parse(address)
	switch {
	case address == "":
	case err != nil || !absoluteHTTP(address):
		f.Add(at, "", "such as "+example, "%q is not an absolute http or https URL", setting.MaskUser(address))
	case u.User != nil:
		f.Add(at, "", "remove them", "the URL contains credentials")
	case u.Scheme == "http" && !a.AllowHTTP && !hostname.Loopback(u.Hostname()):
		f.Add(at, "", "use https, or within a private network auth.allowHttp: true", "%q is not encrypted: %s", address, risk)
	}
}

// readPublicKey reads the file and checks that it is PEM and public. The type of the key is checked by package auth.
func (j *JWT) readPublicKey(f *setting.ErrorList) {
	if j.PublicKeyFile == "" {
		return
	}
	const at = "auth.jwt.publicKeyFile"
	data, err := os.ReadFile(j.PublicKeyFile)
	if err != nil {
		f.Add(at, "", "", "%s cannot be read: %s", j.PublicKeyFile, setting.Reason(err))
		return
	}
	switch block, _ := pem.Decode(data); {
	case block == nil:
		f.Add(at, "", "it must start with -----BEGIN PUBLIC KEY----- or -----BEGIN CERTIFICATE-----", "%s is not PEM", j.PublicKeyFile)
	case strings.Contains(block.Type, "PRIVATE"):
		f.Add(at, "", "use only the public key, and keep the private key off this machine", "%s contains a private key", j.PublicKeyFile)
	default:
		j.PublicKey = bytes.TrimSpace(data)
	}
}
