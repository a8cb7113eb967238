package foreign_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/base/setting"
	"tutti/internal/config"
)

const (
	// songEgo is the environment of a Song with Ego, in a private network.
	songEgo = `
SPRING_PROFILES_ACTIVE=prod,secure
AUTH_SERVER_URL=http://ego-api:8080/o/check_api_key/
AUTH_SERVER_TOKENNAME=apiKey
AUTH_SERVER_CLIENTID=song
AUTH_SERVER_CLIENTSECRET=s3cret
AUTH_SERVER_SCOPE_STUDY_PREFIX=PROGRAMDATA-
AUTH_SERVER_SCOPE_STUDY_SUFFIX=.WRITE
AUTH_SERVER_SCOPE_SYSTEM=song.WRITE
AUTH_CONNECTION_MAXRETRIES=5
SPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_PUBLIC_KEY_LOCATION=http://ego-api:8080/oauth/token/public_key`
	// songKeycloak is the environment of a Song with Keycloak.
	songKeycloak = `
SPRING_PROFILES_ACTIVE=prod,secure,score-client-cred
AUTH_SERVER_PROVIDER=keycloak
AUTH_SERVER_INTROSPECTIONURI=https://id.example.org/realms/r/apikey/check_api_key
AUTH_SERVER_CLIENTID=song
AUTH_SERVER_CLIENTSECRET=s3cret
AUTH_SERVER_KEYCLOAK_HOST=https://id.example.org/
AUTH_SERVER_KEYCLOAK_REALM=r
AUTH_SERVER_SCOPE_STUDY_PREFIX=STUDY.
AUTH_SERVER_SCOPE_STUDY_SUFFIX=.WRITE
AUTH_SERVER_SCOPE_SYSTEM=song.WRITE
SPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_JWK_SET_URI=https://id.example.org/realms/r/protocol/openid-connect/certs`

	songAnyToken  = "tokens with any issuer or audience are accepted, as Song does: set auth.jwt.issuer and auth.jwt.audience to restrict them"
	songPlainHTTP = "tokens are checked over plain http within a private network"
	songTaken     = "configured by environment variables of Song: "
	songInsecure  = "AUTH_SERVER_… and SPRING_SECURITY_… are ignored: without the profile secure"
	songKey       = "SPRING_PROFILES_ACTIVE=secure\nSPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_"
)

func TestSongMigration(t *testing.T) {
	for name, tt := range map[string]struct {
		environ, file string
		want          string // the equivalent file
		warnings      []string
	}{
		"Ego": {
			environ: songEgo,
			want: `auth: {mode: token, allowHttp: true, systemScope: song, organizationPrefix: PROGRAMDATA-,
  jwt: {jwksUrl: "http://ego-api:8080/oauth/token/public_key", anyIssuer: true, anyAudience: true},
  introspection: {url: "http://ego-api:8080/o/check_api_key/", clientId: song, clientSecret: s3cret, tokenParameter: apiKey}}`,
			warnings: []string{songAnyToken, songPlainHTTP, songTaken + "auth.mode from SPRING_PROFILES_ACTIVE, auth.organizationPrefix from AUTH_SERVER_SCOPE_STUDY_PREFIX"},
		},
		"Keycloak": {
			environ: songKeycloak,
			want: `auth: {mode: token, systemScope: song, organizationPrefix: STUDY.,
  jwt: {jwksUrl: "https://id.example.org/realms/r/protocol/openid-connect/certs", anyIssuer: true, anyAudience: true},
  introspection: {url: "https://id.example.org/realms/r/apikey/check_api_key", clientId: song, clientSecret: s3cret, tokenParameter: apiKey},
  uma: {tokenUrl: "https://id.example.org/realms/r/protocol/openid-connect/token", clientId: song}}`,
			warnings: []string{songAnyToken, songTaken},
		},
		"as properties": {
			environ: "spring.profiles.active=secure\nauth.server.introspection-uri=https://a/b\nauth.server.scope.study.prefix=P.",
			want:    `auth: {mode: token, organizationPrefix: P., introspection: {url: "https://a/b", tokenParameter: apiKey}}`, warnings: []string{songTaken},
		},
		"without the profile secure": {environ: strings.Replace(songEgo, "secure", "noSecurityDev", 1), warnings: []string{songInsecure}},
		"without profiles":           {environ: "AUTH_SERVER_URL=https://a", warnings: []string{songInsecure}},
		"nothing of it":              {environ: "SPRING_PROFILES_ACTIVE=secure\nAUTH_SERVER_URL=\nSCORE_URL=http://a"},
		"tutti's mode wins":          {environ: songEgo, file: "auth: {mode: none}"},
		"tutti's mode needs no profile": {
			environ: "AUTH_SERVER_URL=https://a\nTUTTI_AUTH_MODE=token",
			want:    `auth: {mode: token, introspection: {url: "https://a", tokenParameter: apiKey}}`, warnings: []string{songTaken},
		},
		"tutti's keys win": {
			environ: songKeycloak,
			file: `auth: {organizationPrefix: own-, introspection: {url: "https://own", clientId: own, clientSecret: own}, uma: {tokenUrl: "https://own", clientId: own},
  jwt: {jwksUrl: "https://own", issuer: i, audience: a}}`,
			want: `auth: {mode: token, systemScope: song, organizationPrefix: own-, uma: {tokenUrl: "https://own", clientId: own},
  introspection: {url: "https://own", clientId: own, clientSecret: own}, jwt: {jwksUrl: "https://own", issuer: i, audience: a}}`,
			warnings: []string{songTaken + "auth.mode from SPRING_PROFILES_ACTIVE, auth.writeSuffix from AUTH_SERVER_SCOPE_STUDY_SUFFIX, auth.systemScope from"},
		},
		"tutti's parameter and client win": {
			environ: songKeycloak, file: "auth: {introspection: {tokenParameter: token, clientId: own, clientSecret: own}, uma: {clientId: own}}",
			want: `auth: {mode: token, systemScope: song, organizationPrefix: STUDY.,
  jwt: {jwksUrl: "https://id.example.org/realms/r/protocol/openid-connect/certs", anyIssuer: true, anyAudience: true},
  introspection: {url: "https://id.example.org/realms/r/apikey/check_api_key", clientId: own, clientSecret: own},
  uma: {tokenUrl: "https://id.example.org/realms/r/protocol/openid-connect/token", clientId: own}}`,
			warnings: []string{songAnyToken, songTaken},
		},
		"turned off": {
			environ: songKeycloak, file: "auth: {introspection: {url: ''}, uma: {tokenUrl: ''}}",
			want: `auth: {mode: token, systemScope: song, organizationPrefix: STUDY.,
  jwt: {jwksUrl: "https://id.example.org/realms/r/protocol/openid-connect/certs", anyIssuer: true, anyAudience: true}}`,
			warnings: []string{songAnyToken, songTaken},
		},
		"tutti's key set wins over a file": {
			environ: songKey + "PUBLIC_KEY_LOCATION=/song.pem", file: "auth: {jwt: {jwksUrl: 'https://own', issuer: i, audience: a}}",
			want: "auth: {mode: token, jwt: {jwksUrl: 'https://own', issuer: i, audience: a}}", warnings: []string{songTaken},
		},
		"strict with tutti's issuer and audience": {
			environ: songKey + "JWK_SET_URI=https://a", file: "auth: {jwt: {issuer: i, audience: a}}",
			want: "auth: {mode: token, jwt: {jwksUrl: 'https://a', issuer: i, audience: a}}", warnings: []string{songTaken},
		},
		"a key set wins over a location": {
			environ: songKey + "JWK_SET_URI=https://a\nSPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_PUBLIC_KEY_LOCATION=https://b",
			want:    "auth: {mode: token, jwt: {jwksUrl: 'https://a', anyIssuer: true, anyAudience: true}}", warnings: []string{songAnyToken, songTaken},
		},
		"an older Song with Ego's tokens": {
			environ:  "SPRING_PROFILES_ACTIVE=prod,jwt\nAUTH_JWT_PUBLIC_KEY_URL=https://ego.example.org/oauth/token/public_key",
			want:     "auth: {mode: token, jwt: {jwksUrl: 'https://ego.example.org/oauth/token/public_key', anyIssuer: true, anyAudience: true}}",
			warnings: []string{songAnyToken, songTaken},
		},
		"a key in the classpath": {
			environ: songKey + "PUBLIC_KEY_LOCATION=classpath:key.pem", want: "auth: {mode: token}",
			warnings: []string{"SPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_PUBLIC_KEY_LOCATION is ignored: the URL scheme classpath is not supported", songTaken},
		},
		"another scope of the system": {
			environ: "SPRING_PROFILES_ACTIVE=secure\nAUTH_SERVER_SCOPE_SYSTEM=song.ADMIN", want: "auth: {mode: token}",
			warnings: []string{`AUTH_SERVER_SCOPE_SYSTEM is ignored: "song.ADMIN" does not end in auth.writeSuffix, ".WRITE"`, songTaken},
		},
		"another suffix": {
			environ: "SPRING_PROFILES_ACTIVE=secure\nAUTH_SERVER_SCOPE_SYSTEM=song_w\nAUTH_SERVER_SCOPE_STUDY_SUFFIX=_w",
			want:    "auth: {mode: token, systemScope: song, writeSuffix: _w}", warnings: []string{songTaken},
		},
		"a client without a secret": {
			environ:  "SPRING_PROFILES_ACTIVE=secure\nAUTH_SERVER_URL=https://a\nAUTH_SERVER_CLIENTID=song\nAUTH_SERVER_TOKENNAME=token",
			want:     "auth: {mode: token, introspection: {url: 'https://a'}}",
			warnings: []string{"AUTH_SERVER_CLIENTID is ignored: only one of", songTaken},
		},
		"variables of no use": {
			environ: "SPRING_PROFILES_ACTIVE=secure\nAUTH_SERVER_SOMETHING=s3cret", want: "auth: {mode: token}",
			warnings: []string{songTaken, "these variables of Song are ignored: AUTH_SERVER_SOMETHING"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := config.Parse([]byte(tt.file), strings.Split(tt.environ, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			warnings := got.Warnings
			got.Warnings = nil
			file := tt.want
			if file == "" {
				file = tt.file
			}
			if diff := cmp.Diff(parse(t, file), got); diff != "" {
				t.Error(diff)
			}
			if !slices.EqualFunc(warnings, tt.warnings, strings.HasPrefix) {
				t.Errorf("warnings %q, want %q", warnings, tt.warnings)
			}
			if all := strings.Join(warnings, " "); strings.Contains(all, "s3cret") {
				t.Errorf("a secret is in %q", all)
			}
		})
	}
}

// TestSongKeyFile: a location that is a file is auth.jwt.publicKeyFile.
func TestSongKeyFile(t *testing.T) {
	pem := fileOf(t, "key.pem", publicKey)
	for _, location := range []string{pem, "file:" + pem, "file://" + pem} {
		c := parse(t, "", strings.Split(songKey+"PUBLIC_KEY_LOCATION="+location, "\n")...)
		if c.Auth.JWT.PublicKeyFile != pem || len(c.Auth.JWT.PublicKey) == 0 || !c.Auth.JWT.AnyIssuer || !c.Auth.JWT.AnyAudience {
			t.Errorf("%s: %+v", location, c.Auth.JWT)
		}
	}
}

// TestSongPlainHTTP: plain http is permitted to hosts of a private network only, and not when tutti's own URL is plain.
func TestSongPlainHTTP(t *testing.T) {
	for host, private := range map[string]bool{
		"ego": true, "10.1.2.3": true, "192.168.0.1:8080": true, "[fd00::1]": true, "ego.default.svc.cluster.local": true, "host.docker.internal": true,
		"ego.default.svc": true, "127.0.0.1": true, "ego.example.org": false, "8.8.8.8": false, "[2001:db8::1]": false, "local.example.org": false,
		"ego.": true, "ego.internal.": true,
	} {
		c, err := config.Parse(nil, []string{"SPRING_PROFILES_ACTIVE=secure", "AUTH_SERVER_URL=http://" + host + "/o/check_api_key"})
		found := setting.Errors(err)
		if private != (err == nil) || !private && (len(found) != 1 || !strings.Contains(found[0].Message, "is not encrypted")) {
			t.Errorf("%s: %v", host, err)
		}
		if private && c.Auth.AllowHTTP == (host == "127.0.0.1") {
			t.Errorf("%s: allowHttp %v", host, c.Auth.AllowHTTP)
		}
	}
	_, err := config.Parse([]byte("auth: {jwt: {jwksUrl: 'http://own/keys', issuer: i, audience: a}}"), []string{"SPRING_PROFILES_ACTIVE=secure", "AUTH_SERVER_URL=http://ego"})
	if found := setting.Errors(err); len(found) != 2 {
		t.Errorf("tutti's own URL: %v", err)
	}
	if _, err := config.Parse([]byte("auth: {allowHttp: false}"), []string{"SPRING_PROFILES_ACTIVE=secure", "AUTH_SERVER_URL=http://ego"}); err == nil {
		t.Error("allowHttp: false does not win")
	}
}

// TestSongCredentials: half of tutti's credentials and half of Song's would be wrong.
func TestSongCredentials(t *testing.T) {
	_, err := config.Parse([]byte("auth: {introspection: {clientId: own}}"), strings.Split(songKeycloak, "\n"))
	if found := setting.Errors(err); len(found) != 1 || found[0].Message != "auth.introspection: has only one of clientId and clientSecret" {
		t.Errorf("got %v", err)
	}
}

// TestSongProvider: without what the provider needs, tutti would accept other tokens than Song.
func TestSongProvider(t *testing.T) {
	for environ, want := range map[string]string{
		strings.Replace(songKeycloak, "AUTH_SERVER_KEYCLOAK_REALM=r", "", 1):      "AUTH_SERVER_PROVIDER: is keycloak, but the host, the realm or the client is missing",
		strings.Replace(songKeycloak, "PROVIDER=keycloak", "PROVIDER=cilogon", 1): `AUTH_SERVER_PROVIDER: "cilogon" is not a provider of Song`,
	} {
		_, err := config.Parse(nil, strings.Split(environ, "\n"))
		if found := setting.Errors(err); len(found) != 1 || found[0].Message != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
