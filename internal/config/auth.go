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
	// ModeNone: nobody has to show a token.
	ModeNone = "none"
	// ModeToken: who asks shows an API key or a JSON Web Token.
	ModeToken = "token"
)

// scopePattern is what a part of a scope may be made of (RFC 6749, section 3.3): scopes stand between spaces.
const scopePattern = `^[!#-\[\]-~]+$`

// Auth says who may do what (CONTRACT section 6).
type Auth struct {
	// Mode is ModeNone or ModeToken.
	Mode string
	// AllowInsecure permits a public address although nobody has to show a token.
	AllowInsecure bool
	// DefaultAccess is a core.DefaultAccess: who reads a catalogue without an access.json. It is public by default with ModeNone,
	// authenticated with ModeToken.
	DefaultAccess string
	// SystemScope and WriteSuffix are the scope of those who may do everything.
	SystemScope string
	// OrganizationPrefix stands before an organization in its scopes, WriteSuffix or ReadSuffix behind it. Neither suffix
	// ends in the other.
	OrganizationPrefix string
	WriteSuffix        string
	ReadSuffix         string
	JWT                JWT
}

// JWT says which JSON Web Tokens are taken, beside API keys.
type JWT struct {
	// JWKSURL is where the issuer publishes its keys, PublicKeyFile a PEM file with the one key, and PublicKey what that
	// holds; at most one of the two is given.
	JWKSURL       string
	PublicKeyFile string
	PublicKey     []byte
	// Issuer and Audience are what a token's iss and aud must say.
	Issuer   string
	Audience string
}

// Enabled reports whether JSON Web Tokens are taken at all.
func (j JWT) Enabled() bool { return j.JWKSURL != "" || j.PublicKeyFile != "" }

func (a *Auth) key() key {
	const scopes = "printable ASCII without spaces, quotes and backslashes"
	return object("auth", "Who may do what.",
		text("mode", &a.Mode, ModeNone, "none: nobody has to show a token; token: an API key or a JSON Web Token.").
			oneOf(ModeNone, ModeToken),
		flag("allowInsecure", &a.AllowInsecure, false, "Permits a public address with mode none."),
		text("defaultAccess", &a.DefaultAccess, "",
			"Who reads a catalogue without an access.json. public: anyone, the default with mode none; authenticated: anyone with a "+
				"valid token, the default with mode token; deny: holders of the system's scope.").
			oneOf(string(core.AccessPublic), string(core.AccessAuthenticated), string(core.AccessDeny)),
		text("systemScope", &a.SystemScope, "tutti", "With writeSuffix behind it the scope of those who may do everything.").
			needed().matching(scopePattern, scopes),
		text("organizationPrefix", &a.OrganizationPrefix, "", "What stands before an organization in its scopes.").
			matching(scopePattern, scopes),
		text("writeSuffix", &a.WriteSuffix, ".WRITE", "What stands behind an organization in the scope of those who may change it.").
			needed().matching(scopePattern, scopes),
		text("readSuffix", &a.ReadSuffix, ".READ", "What stands behind an organization in the scope of those who may read what it has not published.").
			needed().matching(scopePattern, scopes),
		object("jwt", "JSON Web Tokens that are taken beside API keys, with mode token.",
			text("jwksUrl", &a.JWT.JWKSURL, "", "Where the issuer publishes its keys; https, or http on this machine.").
				matching(urlPattern, "an absolute http or https URL"),
			text("publicKeyFile", &a.JWT.PublicKeyFile, "", "PEM file with the issuer's public key."),
			text("issuer", &a.JWT.Issuer, "", "What a token's iss must be."),
			text("audience", &a.JWT.Audience, "", "What a token's aud must hold.")))
}

// validate notes contradictions, sets defaults, and reads the public key.
func (a *Auth) validate(f *faults) {
	if a.WriteSuffix != "" && a.ReadSuffix != "" &&
		(strings.HasSuffix(a.WriteSuffix, a.ReadSuffix) || strings.HasSuffix(a.ReadSuffix, a.WriteSuffix)) {
		f.add("auth.readSuffix", "", "give two of which neither ends in the other, such as .READ and .WRITE",
			"%q cannot be told from writeSuffix %q", a.ReadSuffix, a.WriteSuffix)
	}
	if organization, ok := strings.CutPrefix(a.SystemScope, a.OrganizationPrefix); ok && a.OrganizationPrefix != "" && organization != "" {
		f.add("auth.systemScope", "", "give one that does not begin with auth.organizationPrefix",
			"%q would also be the scope of an organization that is called %q", a.SystemScope, organization)
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

// fillDefaultAccess sets DefaultAccess where it was not given.
func (a *Auth) fillDefaultAccess() {
	switch {
	case a.DefaultAccess != "":
	case a.Mode == ModeToken:
		a.DefaultAccess = string(core.AccessAuthenticated)
	default:
		a.DefaultAccess = string(core.AccessPublic)
	}
}

func (j *JWT) validate(f *faults) {
	switch {
	case j.JWKSURL != "" && j.PublicKeyFile != "":
		f.add("auth.jwt.publicKeyFile", "", "keep one of them", "is given, and so is auth.jwt.jwksUrl")
	case !j.Enabled() && (j.Issuer != "" || j.Audience != ""):
		f.add("auth.jwt", "", "give the issuer's keys with jwksUrl or publicKeyFile", "has an issuer or an audience, but no key that signs")
	}
	if j.Enabled() && j.Issuer == "" {
		f.add("auth.jwt.issuer", "", "give the iss of the tokens", "is missing, a key alone would take the tokens of every issuer that shares it")
	}
	if j.Enabled() && j.Audience == "" {
		f.add("auth.jwt.audience", "", "give the aud of the tokens", "is missing, without it tokens that were made for another service would be taken")
	}
	j.validateURL(f)
	j.readPublicKey(f)
}

func (j *JWT) validateURL(f *faults) {
	const at = "auth.jwt.jwksUrl"
	u, err := url.Parse(j.JWKSURL)
	switch {
	case j.JWKSURL == "":
	case err != nil || !absoluteHTTP(j.JWKSURL):
		f.add(at, "", "such as https://id.example.org/oauth/jwks", "%q is not an absolute http or https URL", maskUser(j.JWKSURL))
	case u.User != nil:
		f.add(at, "", "keys that are published need none", "the URL holds credentials")
	case u.Scheme == "http" && !loopbackHost(u.Hostname()):
		f.add(at, "", "use https", "%q is not encrypted: whoever stands between could put keys of its own there", j.JWKSURL)
	}
}

// readPublicKey reads the file and looks whether it is PEM and public. What kind of key it is, who checks tokens will see.
func (j *JWT) readPublicKey(f *faults) {
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
		f.add(at, "", "it begins with -----BEGIN PUBLIC KEY----- or -----BEGIN CERTIFICATE-----", "%s is not PEM", j.PublicKeyFile)
	case strings.Contains(block.Type, "PRIVATE"):
		f.add(at, "", "give the public key alone, and keep the private one from this machine", "%s holds a private key", j.PublicKeyFile)
	default:
		j.PublicKey = bytes.TrimSpace(data)
	}
}

// loopbackHost reports whether a host is this machine. A name other than localhost is not: who knows what it resolves to.
func loopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
