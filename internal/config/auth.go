package config

import (
	"bytes"
	"encoding/pem"
	"net/netip"
	"net/url"
	"os"
	"strings"

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
	JWT                JWT
}

// JWT configures the JSON Web Tokens accepted in addition to API keys.
type JWT struct {
	// JWKSURL is the URL of the issuer's key set, PublicKeyFile a PEM file with the only key, and PublicKey the file's content; at
	// most one of the two is set.
	JWKSURL       string
	PublicKeyFile string
	PublicKey     []byte
	// Issuer and Audience are the required iss and aud of a token.
	Issuer   string
	Audience string
}

// Enabled reports whether JSON Web Tokens are accepted.
func (j JWT) Enabled() bool { return j.JWKSURL != "" || j.PublicKeyFile != "" }

func (a *Auth) key() key {
	const scopes = "printable ASCII without spaces, quotes and backslashes"
	return object("auth", "Authentication and authorization.",
		text("mode", &a.Mode, ModeNone, "none: no authentication; token: requests need an API key or a JSON Web Token.").
			oneOf(ModeNone, ModeToken),
		flag("allowInsecure", &a.AllowInsecure, false, "Permits a public address with mode none."),
		text("defaultAccess", &a.DefaultAccess, "",
			"Who can read a catalogue without an access.json. public: anyone, the default with mode none; authenticated: anyone with a "+
				"valid token, the default with mode token; deny: holders of the system's scope.").
			oneOf(string(core.AccessPublic), string(core.AccessAuthenticated), string(core.AccessDeny)),
		text("systemScope", &a.SystemScope, "tutti", "Followed by writeSuffix it is the scope that allows everything.").
			require().matching(scopePattern, scopes),
		text("organizationPrefix", &a.OrganizationPrefix, "", "Prefix of an organization in its scopes.").
			matching(scopePattern, scopes),
		text("writeSuffix", &a.WriteSuffix, ".WRITE", "Suffix of an organization in the scope that allows changes.").
			require().matching(scopePattern, scopes),
		text("readSuffix", &a.ReadSuffix, ".READ", "Suffix of an organization in the scope that allows reading unpublished data.").
			require().matching(scopePattern, scopes),
		object("jwt", "JSON Web Tokens accepted in addition to API keys, with mode token.",
			text("jwksUrl", &a.JWT.JWKSURL, "", "URL of the issuer's key set; https, or http on this machine.").
				matching(urlPattern, "an absolute http or https URL"),
			text("publicKeyFile", &a.JWT.PublicKeyFile, "", "PEM file with the issuer's public key."),
			text("issuer", &a.JWT.Issuer, "", "Required iss of a token."),
			text("audience", &a.JWT.Audience, "", "Required aud of a token.")))
}

// validate reports contradictions, sets defaults, and reads the public key.
func (a *Auth) validate(f *errorList) {
	if a.WriteSuffix != "" && a.ReadSuffix != "" &&
		(strings.HasSuffix(a.WriteSuffix, a.ReadSuffix) || strings.HasSuffix(a.ReadSuffix, a.WriteSuffix)) {
		f.add("auth.readSuffix", "", "use two suffixes where neither ends in the other, such as .READ and .WRITE",
			"%q and writeSuffix %q are ambiguous", a.ReadSuffix, a.WriteSuffix)
	}
	if organization, ok := strings.CutPrefix(a.SystemScope, a.OrganizationPrefix); ok && a.OrganizationPrefix != "" && organization != "" {
		f.add("auth.systemScope", "", "use one that does not start with auth.organizationPrefix",
			"%q would also be the scope of an organization named %q", a.SystemScope, organization)
	}
	if a.Mode == ModeNone && a.DefaultAccess == string(core.AccessAuthenticated) {
		f.add("auth.defaultAccess", "", "set auth.mode: token, or choose public or deny", "with auth.mode none no caller is authenticated")
	}
	a.fillDefaultAccess()
	j := &a.JWT
	if a.Mode == ModeNone {
		for _, k := range []struct{ name, value string }{
			{"jwksUrl", j.JWKSURL}, {"publicKeyFile", j.PublicKeyFile}, {"issuer", j.Issuer}, {"audience", j.Audience},
		} {
			if k.value != "" {
				f.add("auth.jwt."+k.name, "", "set auth.mode: token, or remove it", "has no effect with auth.mode none")
			}
		}
		return
	}
	j.validate(f)
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

func (j *JWT) validate(f *errorList) {
	switch {
	case j.JWKSURL != "" && j.PublicKeyFile != "":
		f.add("auth.jwt.publicKeyFile", "", "keep one of them", "is set in addition to auth.jwt.jwksUrl")
	case !j.Enabled() && (j.Issuer != "" || j.Audience != ""):
		f.add("auth.jwt", "", "set the issuer's keys with jwksUrl or publicKeyFile", "has an issuer or an audience, but no keys")
	}
	if j.Enabled() && j.Issuer == "" {
		f.add("auth.jwt.issuer", "", "set the iss of the tokens", "is missing; without it tokens of every issuer with the same key would be accepted")
	}
	if j.Enabled() && j.Audience == "" {
		f.add("auth.jwt.audience", "", "set the aud of the tokens", "is missing; without it tokens for other services would be accepted")
	}
	j.validateURL(f)
	j.readPublicKey(f)
}

func (j *JWT) validateURL(f *errorList) {
	const at = "auth.jwt.jwksUrl"
	u, err := url.Parse(j.JWKSURL)
	switch {
	case j.JWKSURL == "":
	case err != nil || !absoluteHTTP(j.JWKSURL):
		f.add(at, "", "such as https://id.example.org/oauth/jwks", "%q is not an absolute http or https URL", maskUser(j.JWKSURL))
	case u.User != nil:
		f.add(at, "", "published keys need none", "the URL contains credentials")
	case u.Scheme == "http" && !loopbackHost(u.Hostname()):
		f.add(at, "", "use https", "%q is not encrypted: an attacker on the network could replace the keys", j.JWKSURL)
	}
}

// readPublicKey reads the file and checks that it is PEM and public. The type of the key is checked by package auth.
func (j *JWT) readPublicKey(f *errorList) {
	if j.PublicKeyFile == "" {
		return
	}
	const at = "auth.jwt.publicKeyFile"
	data, err := os.ReadFile(j.PublicKeyFile)
	if err != nil {
		f.add(at, "", "", "%s cannot be read: %s", j.PublicKeyFile, reason(err))
		return
	}
	switch block, _ := pem.Decode(data); {
	case block == nil:
		f.add(at, "", "it must start with -----BEGIN PUBLIC KEY----- or -----BEGIN CERTIFICATE-----", "%s is not PEM", j.PublicKeyFile)
	case strings.Contains(block.Type, "PRIVATE"):
		f.add(at, "", "use only the public key, and keep the private key off this machine", "%s contains a private key", j.PublicKeyFile)
	default:
		j.PublicKey = bytes.TrimSpace(data)
	}
}

// loopbackHost reports whether a host is this machine. Names other than localhost are not, whatever they resolve to.
func loopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
