package config

import (
	"bytes"
	"encoding/pem"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"tutti/internal/config/setting"
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
		setting.Object("jwt", "JSON Web Tokens accepted in addition to API keys, with mode token.",
			setting.Text("jwksUrl", &a.JWT.JWKSURL, "", "URL of the issuer's key set; https, or http on this machine.").
				Matching(urlPattern, "an absolute http or https URL"),
			setting.Text("publicKeyFile", &a.JWT.PublicKeyFile, "", "PEM file with the issuer's public key."),
			setting.Text("issuer", &a.JWT.Issuer, "", "Required iss of a token."),
			setting.Text("audience", &a.JWT.Audience, "", "Required aud of a token.")))
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
			{"jwksUrl", j.JWKSURL}, {"publicKeyFile", j.PublicKeyFile}, {"issuer", j.Issuer}, {"audience", j.Audience},
		} {
			if k.value != "" {
				f.Add("auth.jwt."+k.name, "", "set auth.mode: token, or remove it", "has no effect with auth.mode none")
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

func (j *JWT) validate(f *setting.ErrorList) {
	switch {
	case j.JWKSURL != "" && j.PublicKeyFile != "":
		f.Add("auth.jwt.publicKeyFile", "", "keep one of them", "is set in addition to auth.jwt.jwksUrl")
	case !j.Enabled() && (j.Issuer != "" || j.Audience != ""):
		f.Add("auth.jwt", "", "set the issuer's keys with jwksUrl or publicKeyFile", "has an issuer or an audience, but no keys")
	}
	if j.Enabled() && j.Issuer == "" {
		f.Add("auth.jwt.issuer", "", "set the iss of the tokens", "is missing; without it tokens of every issuer with the same key would be accepted")
	}
	if j.Enabled() && j.Audience == "" {
		f.Add("auth.jwt.audience", "", "set the aud of the tokens", "is missing; without it tokens for other services would be accepted")
	}
	j.validateURL(f)
	j.readPublicKey(f)
}

func (j *JWT) validateURL(f *setting.ErrorList) {
	const at = "auth.jwt.jwksUrl"
	u, err := url.Parse(j.JWKSURL)
	switch {
	case j.JWKSURL == "":
	case err != nil || !absoluteHTTP(j.JWKSURL):
		f.Add(at, "", "such as https://id.example.org/oauth/jwks", "%q is not an absolute http or https URL", setting.MaskUser(j.JWKSURL))
	case u.User != nil:
		f.Add(at, "", "published keys need none", "the URL contains credentials")
	case u.Scheme == "http" && !loopbackHost(u.Hostname()):
		f.Add(at, "", "use https", "%q is not encrypted: an attacker on the network could replace the keys", j.JWKSURL)
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

// loopbackHost reports whether a host is this machine. Names other than localhost are not, whatever they resolve to.
func loopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
