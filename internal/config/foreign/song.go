package foreign

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"tutti/internal/base/hostname"
	"tutti/internal/base/setting"
)

// The variables of the authentication of Song, a Spring program (doc.go), without underscores.
const (
	songServerPrefix = "AUTHSERVER"
	songJWTPrefix    = "SPRINGSECURITYOAUTH2RESOURCESERVERJWT"
	songOlderKey     = "AUTHJWTPUBLICKEYURL"
	songProfiles     = "SPRINGPROFILESACTIVE"
)

// songEnvironment copies the environment of a Song's authentication into keys that are not set in root.
type songEnvironment struct {
	root *setting.Node
	// variables are keyed by their name without underscores.
	variables map[string]setting.EnvVariable
	// applied lists the copied keys with their variables, urls the paths of the copied URLs.
	applied, warnings []string
	urls              map[string]bool
	found             *setting.ErrorList
}

// modeToken is the mode of auth that requires tokens.
const modeToken = "token"

// Song copies the variables of a Song's authentication into keys that root does not set. It reports an error for AUTH_SERVER_PROVIDER if the
// provider is unknown or its variables are incomplete, because tutti would then accept other tokens than Song. Invalid values are found when
// root is decoded.
func Song(root *setting.Node, environ []string, found *setting.ErrorList) Result {
	s := &songEnvironment{root: root, variables: map[string]setting.EnvVariable{}, urls: map[string]bool{}, found: found}
	if !s.collect(environ) || !s.enable() {
		return Result{Warnings: s.warnings}
	}
	s.scopes()
	s.tokenKeys()
	s.permissions()
	s.introspection()
	s.plainHTTP()
	return Result{Warnings: s.warnings, Notes: s.notes()}
}

// collect fills s.variables, and reports whether one of them configures Song's authentication.
func (s *songEnvironment) collect(environ []string) bool {
	found := false
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		value = strings.TrimSpace(value)
		known := withoutUnderscores(springName(name))
		server := strings.HasPrefix(known, songServerPrefix) || strings.HasPrefix(known, songJWTPrefix) || known == songOlderKey
		if ok && value != "" && (server || known == songProfiles) {
			keepFirst(s.variables, known, setting.EnvVariable{Name: name, Value: value})
			found = found || server
		}
	}
	return found
}

// enable sets auth.mode: token when Song requires tokens: with its profile secure, which the profile jwt of older versions includes. It
// reports whether tutti requires tokens.
func (s *songEnvironment) enable() bool {
	profiles, _ := takeFrom(s.variables, songProfiles)
	if mode := s.root.Member("auth").Member("mode"); mode != nil {
		return mode.Text == modeToken
	}
	active := setting.SplitList(profiles.Value)
	if !slices.Contains(active, "secure") && !slices.Contains(active, "jwt") {
		s.warn("AUTH_SERVER_… and SPRING_SECURITY_… are ignored: without the profile secure in SPRING_PROFILES_ACTIVE Song requires no tokens; " +
			"set auth.mode: token to use them")
		return false
	}
	s.apply(profiles, modeToken, "auth", "mode")
	return true
}

func (s *songEnvironment) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// apply sets a key from a variable, unless the variable or the value is missing, and records it when the key was not set.
func (s *songEnvironment) apply(v setting.EnvVariable, text string, path ...string) bool {
	if v.Name == "" || text == "" || !s.root.Fill(v, text, path...) {
		return false
	}
	s.applied = append(s.applied, strings.Join(path, ".")+" from "+v.Name)
	return true
}

func (s *songEnvironment) applyURL(v setting.EnvVariable, text string, path ...string) bool {
	applied := s.apply(v, text, path...)
	s.urls[strings.Join(path, ".")] = applied
	return applied
}

func (s *songEnvironment) server(name string) setting.EnvVariable {
	v, _ := takeFrom(s.variables, songServerPrefix+name)
	return v
}

// scopes copies the names of scopes. Song's system scope is one name; tutti's consists of auth.systemScope and auth.writeSuffix.
func (s *songEnvironment) scopes() {
	prefix, suffix, system := s.server("SCOPESTUDYPREFIX"), s.server("SCOPESTUDYSUFFIX"), s.server("SCOPESYSTEM")
	s.apply(prefix, prefix.Value, "auth", "organizationPrefix")
	s.apply(suffix, suffix.Value, "auth", "writeSuffix")
	ending := ".WRITE"
	if own := s.root.Member("auth").Member("writeSuffix"); own != nil {
		ending = own.Text
	}
	if system.Name == "" {
		return
	}
	if name, ok := strings.CutSuffix(system.Value, ending); ok && name != "" {
		s.apply(system, name, "auth", "systemScope")
	} else {
		s.warn("%s is ignored: %q does not end in auth.writeSuffix, %q; the scope that allows everything is auth.systemScope followed by it",
			system.Name, system.Value, ending)
	}
}

// tokenKeys copies the address of the keys that verify JSON Web Tokens. Song accepts any issuer and audience.
func (s *songEnvironment) tokenKeys() {
	set, _ := takeFrom(s.variables, songJWTPrefix+"JWKSETURI")
	location, _ := takeFrom(s.variables, songJWTPrefix+"PUBLICKEYLOCATION")
	older, _ := takeFrom(s.variables, songOlderKey)
	location = firstOf(location, older)
	jwt := s.root.Member("auth").Member("jwt")
	if jwt.Member("jwksUrl") != nil || jwt.Member("publicKeyFile") != nil {
		return
	}
	from, scheme := location, ""
	if u, err := url.Parse(location.Value); err == nil {
		scheme = strings.ToLower(u.Scheme)
	}
	applied := false
	switch {
	case set.Name != "": // wins over a location, as in Spring
		from = set
		applied = s.applyURL(set, set.Value, "auth", "jwt", "jwksUrl")
	case scheme == "http" || scheme == "https":
		applied = s.applyURL(location, location.Value, "auth", "jwt", "jwksUrl")
	case scheme == "file" || scheme == "":
		path := strings.TrimPrefix(location.Value, "file:")
		applied = s.apply(location, strings.TrimPrefix(path, "//"), "auth", "jwt", "publicKeyFile")
	default:
		s.warn("%s is ignored: the URL scheme %s is not supported; set auth.jwt.jwksUrl or auth.jwt.publicKeyFile", location.Name, scheme)
	}
	if !applied {
		return
	}
	unrestricted := false
	for name, flag := range map[string]string{"issuer": "anyIssuer", "audience": "anyAudience"} {
		if s.root.Member("auth").Member("jwt").Member(name) == nil {
			unrestricted = s.root.Fill(from, "true", "auth", "jwt", flag) || unrestricted
		}
	}
	if unrestricted {
		s.warn("tokens with any issuer or audience are accepted, as Song does: set auth.jwt.issuer and auth.jwt.audience to restrict them")
	}
}

// permissions copies the settings with which a token's permissions are requested from Keycloak, if that is the provider.
func (s *songEnvironment) permissions() {
	provider, host, realm := s.server("PROVIDER"), s.server("KEYCLOAKHOST"), s.server("KEYCLOAKREALM")
	client := s.variables[songServerPrefix+"CLIENTID"]
	switch {
	case s.root.Member("auth").Member("uma").Member("tokenUrl") != nil:
	case provider.Name == "" || strings.EqualFold(provider.Value, "ego"):
	case !strings.EqualFold(provider.Value, "keycloak"):
		s.found.Add(provider.Name, "", "use ego or keycloak", "%q is not a provider of Song", provider.Value)
	case host.Name == "" || realm.Name == "" || client.Name == "":
		s.found.Add(provider.Name, "", "set AUTH_SERVER_KEYCLOAK_HOST, AUTH_SERVER_KEYCLOAK_REALM and AUTH_SERVER_CLIENTID, or auth.uma",
			"is keycloak, but the host, the realm or the client is missing")
	default:
		s.applyURL(host, strings.TrimRight(host.Value, "/")+"/realms/"+url.PathEscape(realm.Value)+"/protocol/openid-connect/token",
			"auth", "uma", "tokenUrl")
		s.apply(client, client.Value, "auth", "uma", "clientId")
	}
}

// introspection copies the server that checks API keys. Older versions of Song name its address AUTH_SERVER_URL.
func (s *songEnvironment) introspection() {
	address, older := s.server("INTROSPECTIONURI"), s.server("URL")
	parameter, client, secret := s.server("TOKENNAME"), s.server("CLIENTID"), s.server("CLIENTSECRET")
	address = firstOf(address, older)
	if !s.applyURL(address, address.Value, "auth", "introspection", "url") {
		return
	}
	own := s.root.Member("auth").Member("introspection")
	switch {
	case own.Member("clientId") != nil || own.Member("clientSecret") != nil || own.Member("clientSecretFile") != nil:
	case client.Name != "" && secret.Name != "":
		s.apply(client, client.Value, "auth", "introspection", "clientId")
		s.apply(secret, secret.Value, "auth", "introspection", "clientSecret")
	case client.Name != "" || secret.Name != "":
		s.warn("%s is ignored: only one of AUTH_SERVER_CLIENTID and AUTH_SERVER_CLIENTSECRET is set", firstOf(client, secret).Name)
	}
	if parameter.Name == "" {
		s.root.Fill(address, "apiKey", "auth", "introspection", "tokenParameter")
	}
	s.apply(parameter, parameter.Value, "auth", "introspection", "tokenParameter")
}

// plainHTTP permits plain http when all plain http URLs come from Song's variables and their hosts are in a private network. Otherwise
// validation rejects these URLs.
func (s *songEnvironment) plainHTTP() {
	auth := s.root.Member("auth")
	var source setting.EnvVariable
	for _, path := range [][2]string{{"jwt", "jwksUrl"}, {"introspection", "url"}, {"uma", "tokenUrl"}} {
		node := auth.Member(path[0]).Member(path[1])
		if node == nil {
			continue
		}
		u, err := url.Parse(node.Text)
		if err != nil || u.Scheme != "http" || hostname.Loopback(u.Hostname()) {
			continue
		}
		if !s.urls["auth."+path[0]+"."+path[1]] || !privateHost(u.Hostname()) {
			return
		}
		source = setting.EnvVariable{Name: strings.TrimPrefix(node.Source, "variable ")}
	}
	if source.Name != "" && s.root.Fill(source, "true", "auth", "allowHttp") {
		s.warn("tokens are checked over plain http within a private network, because of %s: use https if others can access that network", source.Name)
	}
}

// privateHost reports whether a host is only known within a private network: a private address, a name without a dot as Docker and
// Kubernetes use, or one in a domain that is never public.
func privateHost(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap()
		return addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	_, domain, dotted := strings.Cut(host, ".")
	if !dotted {
		return host != ""
	}
	last := domain[strings.LastIndex(domain, ".")+1:]
	return slices.Contains([]string{"internal", "local", "svc", "localhost"}, last)
}

// notes lists what was copied, and the unused variables.
func (s *songEnvironment) notes() (notes []string) {
	if len(s.applied) > 0 {
		notes = append(notes, "configured by environment variables of Song: "+strings.Join(s.applied, ", "))
	}
	var names []string
	for _, v := range s.variables {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	if len(names) > 0 {
		notes = append(notes, "these variables of Song are ignored: "+strings.Join(names, ", "))
	}
	return notes
}
