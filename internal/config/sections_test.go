package config_test

import (
	"strings"
	"testing"

	"tutti/internal/base/setting"
	"tutti/internal/config"
)

// publicKey is a public key of Ed25519 (RFC 8410, section 10.1).
const publicKey = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
`

// errorCase is a file with the prefixes of its errors' messages, and a part of the first error's hint.
type errorCase struct {
	file  string
	hint  string
	wants []string
}

func runFaults(t *testing.T, cases map[string]errorCase) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse([]byte(tt.file), nil)
			wantErrors(t, err, tt.wants...)
			if f := setting.Errors(err); len(f) > 0 && !strings.Contains(f[0].Hint, tt.hint) {
				t.Errorf("hint: got %q, want it to hold %q", f[0].Hint, tt.hint)
			}
		})
	}
}

func TestLocalRepository(t *testing.T) {
	local := func(members string) string {
		return "repositories: [{code: a, type: local, indexName: a, " + members + "}]"
	}
	given := func(name string) []string {
		return []string{"repositories[0]." + name + ": does not apply to type local"}
	}
	runFaults(t, map[string]errorCase{
		"alone":             {local(""), "", nil},
		"with its defaults": {local("url: '', token: '', timeout: 30s, lyric: {validOnly: yes}, notifications: {kafka: {group: tutti}}"), "", nil},
		"url":               {local("url: 'http://a'"), "remove it", given("url")},
		"token":             {local("token: s3cret"), "remove it", given("token")},
		"username alone":    {local("username: u"), "remove it", given("username")},
		"user and password": {local("username: u, password: s3cret"), "", append(given("username"), given("password")...)},
		"timeout":           {local("timeout: 29s"), "", given("timeout")},
		"timeout wrong":     {local("timeout: soon"), "", []string{`repositories[0].timeout: must be a duration, not "soon" (line 1)`}},
		"lyric":             {local("lyric: {categoryId: 1}"), "use type lyric", given("lyric")},
		"topic":             {local("notifications: {kafka: {brokers: ['k:1'], topic: t}}"), "reports its changes itself", given("notifications")},
		"group":             {local("notifications: {kafka: {group: g}}"), "", given("notifications")},
		"webhook":           {local("notifications: {webhook: {secret: s3cret}}"), "", given("notifications")},
		"all states":        {local("song: {states: [UNPUBLISHED, PUBLISHED, SUPPRESSED]}"), "", nil},
		"unknown state": {
			local("song: {states: [PUBLISHED, published]}"), "UNPUBLISHED",
			[]string{`repositories[0].song.states[1]: "published" is not a state of the built-in repository`},
		},
		"twice": {
			least[:len(least)-1] + ", {code: a, type: local, indexName: a}, {code: b, type: local, indexName: b}]", "remove one",
			[]string{"repositories[2].type: repositories[1] is of type local too, but there is only one built-in repository"},
		},
		"beside another": {least[:len(least)-1] + ", {code: a, type: local, indexName: a}]", "", nil},
	})
}

func TestNoRepositoryBesideOneThatIsNamed(t *testing.T) {
	_, err := config.Parse(nil, []string{"TUTTI_REPOSITORIES_0_PAGE_SIZE=5"})
	wantErrors(t, err, "repositories[0].code: is missing", "repositories[0].type: is missing", "repositories[0].url: is missing",
		"repositories[0].indexName: is missing")
}

func TestStore(t *testing.T) {
	dir := t.TempDir()
	file := yamlOf(t, dir, "url", "mysql://u:s3cret@a\n")
	const refused = "store.url: ******** is not a URL that starts with postgres:// or postgresql:// (line 1)"
	runFaults(t, map[string]errorCase{
		"another database": {"store: {url: 'mysql://u:s3cret@a'}", "", []string{refused}},
		"capitals":         {"store: {url: 'POSTGRES://s3cret@a'}", "", []string{refused}},
		"no host":          {"store: {url: 'postgres://'}", "", []string{refused}},
		"in two lines":     {`store: {url: "postgres://a\ns3cret"}`, "", []string{refused}},
		"file":             {"store: {urlFile: " + file + "}", "", []string{"store.urlFile: the content of " + file + " is not a URL that starts with postgres://"}},
		"both":             {"store: {url: 'postgres://a', urlFile: " + file + "}", "", []string{"store.url: is set in addition to store.urlFile (line 1)"}},
		"near key":         {"store: {uri: a}", "", []string{"store.uri: unknown key; the nearest valid key is store.url (line 1)"}},
	})
}

func TestStoreIsShownWithoutPasswords(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://db/tutti": "postgres://db/tutti",
		"postgres://u:s3cret@h1:1,h2:2/tutti?sslmode=require": "postgres://********@h1:1,h2:2/tutti?sslmode=require",
		"postgresql://u:s3,cr@et@h/db":                        "postgresql://********@h/db",
		"postgres://u:s3cret/x@h/db":                          "postgres://********",
		"postgres://u:s3cret#x@h/db":                          "postgres://********",
		"postgres://u:s3cret?x@h/db":                          "postgres://********",
		"postgres:///db?host=/run&password=s3cret&user=u":     "postgres:///db?host=/run&password=********&user=u",
		"postgres://h/db?a=b&sslPassword=s3cret":              "postgres://h/db?a=b&sslPassword=********",
		"postgres://h/db?application_name=a@b":                "postgres://********",
	} {
		c := parse(t, "", "TUTTI_STORE_URL="+url)
		out, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if text := string(out); strings.Contains(text, "s3") || !strings.Contains(text, "\n  url: "+want+"\n") {
			t.Errorf("%s is shown in\n%s", url, text)
		}
	}
}

func TestSchemas(t *testing.T) {
	validation := func(url string) string {
		return "schemas: {defaultOptions: {externalValidations: [{url: '" + url + "', jsonPath: a}]}}"
	}
	const at = "schemas.defaultOptions.externalValidations[0]"
	host := func(host string) string { return "schemas: {externalValidations: {allowedHosts: [a, '" + host + "']}}" }
	const atHost = "schemas.externalValidations.allowedHosts[1]"
	runFaults(t, map[string]errorCase{
		"no path":          {"schemas: {defaultOptions: {externalValidations: [{url: 'http://a'}]}}", "", []string{at + ".jsonPath: is missing"}},
		"no url":           {"schemas: {defaultOptions: {externalValidations: [{jsonPath: a}]}}", "", []string{at + ".url: is missing"}},
		"near key":         {"schemas: {defaultOptions: {externalValidations: [{url: 'http://a', jsonpath: a}]}}", "", []string{at + ".jsonpath: unknown key; the nearest valid key is " + at + ".jsonPath (line 1)", at + ".jsonPath: is missing"}},
		"not a list":       {"schemas: {defaultOptions: {externalValidations: {url: a}}}", "", []string{"schemas.defaultOptions.externalValidations: must be a list of objects, not an object (line 1)"}},
		"file types":       {"schemas: {defaultOptions: {fileTypes: BAM}}", "", []string{"schemas.defaultOptions.fileTypes: must be a list of texts, not a single value (line 1)"}},
		"another scheme":   {validation("ftp://a"), "", []string{at + `.url: "ftp://a" is not an absolute http or https URL (line 1)`}},
		"token in host":    {validation("http://{value}.example"), "", []string{at + `.url: "http://{value}.example" is not an absolute http or https URL`}},
		"another token":    {validation("http://a/{study}/{id}"), "{value}", []string{at + ".url: contains the unknown placeholder {id}"}},
		"token in capital": {validation("http://a?b={Value}"), "", []string{at + ".url: contains the unknown placeholder {Value}"}},
		"credentials":      {validation("http://u:s3cret@a/{value}"), "", []string{at + ".url: the URL contains credentials"}},
		"host as URL":      {host("http://b"), "", []string{atHost + `: "http://b" is not a host or host:port`}},
		"host's port":      {host("b:65536"), "10.0.0.7:8080", []string{atHost + `: "b:65536" is not a host or host:port`}},
		"host's port 0":    {host("b:0"), "", []string{atHost + `: "b:0" is not a host or host:port`}},
		"host of dots":     {host(".."), "", []string{atHost + `: ".." is not a host or host:port`}},
		"address":          {host("1::2::3"), "", []string{atHost + `: "1::2::3" is not a host or host:port`}},
		"bracketed name":   {host("[a.b]"), "", []string{atHost + `: "[a.b]" is not a host or host:port`}},
		"bracketed":        {host("[:::]:1"), "", []string{atHost + `: "[:::]:1" is not a host or host:port`}},
		"every host":       {host("*"), "", []string{atHost + `: "*" is not a host or host:port`}},
		"network":          {host("10.0.0.0/8"), "", []string{atHost + `: "10.0.0.0/8" is not a host or host:port`}},
		"no time":          {"schemas: {externalValidations: {timeout: 0s}}", "", []string{"schemas.externalValidations.timeout: must be more than zero, not 0s (line 1)"}},
		"storage address":  {"schemas: {storage: {url: 'score:8087'}}", "", []string{"schemas.storage.url: "}},
		"storage user":     {"schemas: {storage: {url: 'http://u:p@score'}}", "schemas.storage.token", []string{"schemas.storage.url: the URL contains credentials"}},
		"storage query":    {"schemas: {storage: {url: 'http://score?a=b'}}", "", []string{"schemas.storage.url: "}},
		"storage token":    {"schemas: {storage: {token: s3cret}}", "", []string{"schemas.storage.url: is missing"}},
		"seed":             {"schemas: {seed: ego}", "", []string{`schemas.seed: must be`}},
		"flag":             {"schemas: {enforceLatest: perhaps}", "", []string{`schemas.enforceLatest: must be true or false, not "perhaps" (line 1)`}},
	})
	if c := parse(t, "schemas: {defaultOptions: {fileTypes: [], externalValidations: []}}"); c.Schemas.DefaultOptions.FileTypes != nil ||
		c.Schemas.DefaultOptions.ExternalValidations != nil {
		t.Errorf("empty lists are %#v, want nil", c.Schemas.DefaultOptions)
	}
}

func TestAuth(t *testing.T) {
	dir := t.TempDir()
	pem, text := yamlOf(t, dir, "key.pem", publicKey), yamlOf(t, dir, "text", "no key")
	private := yamlOf(t, dir, "private.pem", strings.ReplaceAll(publicKey, "PUBLIC", "PRIVATE"))
	auth := func(members string) string { return "auth: {" + members + "}" }
	jwt := func(members string) string {
		return auth("mode: token, jwt: {issuer: i, audience: a, " + members + "}")
	}
	const url = "auth.jwt.jwksUrl: "
	runFaults(t, map[string]errorCase{
		"keys alone":     {auth("mode: token"), "", nil},
		"unknown access": {auth("defaultAccess: private"), "", []string{`auth.defaultAccess: must be one of public, authenticated, deny, not "private" (line 1)`}},
		"no access":      {auth("defaultAccess: ''"), "", []string{`auth.defaultAccess: must be one of public, authenticated, deny, not ""`}},
		"authenticated by nothing": {
			auth("defaultAccess: authenticated"), "set auth.mode: token",
			[]string{"auth.defaultAccess: with auth.mode none no caller is authenticated"},
		},
		"a public address":    {auth("mode: token") + "\nserver: {listen: ':8080'}", "", nil},
		"no system":           {auth("systemScope: ''"), "", []string{"auth.systemScope: is empty (line 1)"}},
		"system in two words": {auth("systemScope: a b"), "", []string{`auth.systemScope: "a b" is not printable ASCII without spaces`}},
		"no write suffix":     {auth("writeSuffix: ''"), "", []string{"auth.writeSuffix: is empty (line 1)"}},
		"no read suffix":      {auth("readSuffix: ''"), "", []string{"auth.readSuffix: is empty (line 1)"}},
		"prefix":              {auth("organizationPrefix: é"), "", []string{`auth.organizationPrefix: "é" is not printable ASCII`}},
		"equal suffixes":      {auth("writeSuffix: .X, readSuffix: .X"), ".READ and .WRITE", []string{`auth.readSuffix: ".X" and writeSuffix ".X" are ambiguous`}},
		"suffix of a suffix":  {auth("readSuffix: .NO.WRITE"), "", []string{`auth.readSuffix: ".NO.WRITE" and writeSuffix ".WRITE" are ambiguous`}},
		"and the reverse":     {auth("writeSuffix: .NO.READ"), "", []string{`auth.readSuffix: ".READ" and writeSuffix ".NO.READ" are ambiguous`}},
		"system with prefix": {
			auth("systemScope: org.all, organizationPrefix: org."), "does not start with auth.organizationPrefix",
			[]string{`auth.systemScope: "org.all" would also be the scope of an organization named "all"`},
		},
		"system as the prefix": {auth("systemScope: org, organizationPrefix: org"), "", nil},
		"tokens without authentication": {
			auth("jwt: {jwksUrl: 'https://a', issuer: i, audience: a}"), "auth.mode: token",
			[]string{"auth.jwt.jwksUrl: has no effect with auth.mode none", "auth.jwt.issuer: has no effect", "auth.jwt.audience: has no effect"},
		},
		"a file without authentication": {auth("jwt: {publicKeyFile: /none}"), "", []string{"auth.jwt.publicKeyFile: has no effect with auth.mode none"}},
		"two keys":                      {jwt("jwksUrl: 'https://a', publicKeyFile: " + pem), "keep one", []string{"auth.jwt.publicKeyFile: is set in addition to auth.jwt.jwksUrl"}},
		"no key":                        {jwt(""), "jwksUrl or publicKeyFile", []string{"auth.jwt: has an issuer or an audience, but no keys"}},
		"audience alone":                {auth("mode: token, jwt: {audience: a}"), "", []string{"auth.jwt: has an issuer or an audience, but no keys"}},
		"no issuer":                     {auth("mode: token, jwt: {jwksUrl: 'https://a', audience: a}"), "iss", []string{"auth.jwt.issuer: is missing"}},
		"no audience":                   {auth("mode: token, jwt: {publicKeyFile: " + pem + ", issuer: i}"), "aud", []string{"auth.jwt.audience: is missing"}},
		"neither":                       {auth("mode: token, jwt: {jwksUrl: 'https://a'}"), "", []string{"auth.jwt.issuer: is missing", "auth.jwt.audience: is missing"}},
		"https":                         {jwt("jwksUrl: 'https://id.example.org/jwks'"), "", nil},
		"http on localhost":             {jwt("jwksUrl: 'http://localhost:1/jwks'"), "", nil},
		"http on 127.0.0.1":             {jwt("jwksUrl: 'http://127.9.9.9:1'"), "", nil},
		"http on ::1":                   {jwt("jwksUrl: 'http://[::1]/jwks'"), "", nil},
		"http elsewhere":                {jwt("jwksUrl: 'http://id.example.org/jwks'"), "use https", []string{url + `"http://id.example.org/jwks" is not encrypted`}},
		"http on capitals":              {jwt("jwksUrl: 'HTTP://id.example.org'"), "use https", []string{url + `"HTTP://id.example.org" is not encrypted`}},
		"http on a like name":           {jwt("jwksUrl: 'http://127.0.0.1.example.org'"), "", []string{url + `"http://127.0.0.1.example.org" is not encrypted`}},
		"http with a user":              {jwt("jwksUrl: 'http://localhost@id.example.org'"), "", []string{url + "the URL contains credentials"}},
		"another scheme":                {jwt("jwksUrl: 'file:///a'"), "", []string{url + `"file:///a" is not an absolute http or https URL (line 1)`, "auth.jwt: has an issuer"}},
		"no host":                       {jwt("jwksUrl: 'https://:1'"), "", []string{url + `"https://:1" is not an absolute http or https URL`}},
		"key file":                      {jwt("publicKeyFile: " + pem), "", nil},
		"key file absent":               {jwt("publicKeyFile: " + dir + "/none"), "", []string{"auth.jwt.publicKeyFile: " + dir + "/none cannot be read: no such file or directory"}},
		"key file not PEM":              {jwt("publicKeyFile: " + text), "BEGIN PUBLIC KEY", []string{"auth.jwt.publicKeyFile: " + text + " is not PEM"}},
		"private key":                   {jwt("publicKeyFile: " + private), "only the public key", []string{"auth.jwt.publicKeyFile: " + private + " contains a private key"}},
		"any issuer":                    {auth("mode: token, jwt: {jwksUrl: 'https://a', anyIssuer: true, audience: a}"), "", nil},
		"any audience":                  {auth("mode: token, jwt: {jwksUrl: 'https://a', issuer: i, anyAudience: true}"), "", nil},
		"any of both, and one":          {jwt("jwksUrl: 'https://a', anyIssuer: true, anyAudience: true"), "keep one", []string{"auth.jwt.anyIssuer: is set in addition to auth.jwt.issuer", "auth.jwt.anyAudience: is set in addition to auth.jwt.audience"}},
		"http permitted":                {auth("mode: token, allowHttp: true, jwt: {issuer: i, audience: a, jwksUrl: 'http://keycloak/certs'}"), "", nil},
		"introspection":                 {auth("mode: token, introspection: {url: 'https://a', clientId: c, clientSecret: s3cret, tokenParameter: apiKey}"), "", nil},
		"introspection over http":       {auth("mode: token, introspection: {url: 'http://ego/check'}"), "auth.allowHttp", []string{`auth.introspection.url: "http://ego/check" is not encrypted`}},
		"introspection without a URL":   {auth("mode: token, introspection: {clientId: c, clientSecret: s3cret}"), "", []string{"auth.introspection.url: is missing"}},
		"a client without a secret":     {auth("mode: token, introspection: {url: 'https://a', clientId: c}"), "", []string{"auth.introspection: has only one of clientId and clientSecret"}},
		"a parameter with a quote":      {auth(`mode: token, introspection: {url: 'https://a', tokenParameter: 'a"b'}`), "", []string{"auth.introspection.tokenParameter: "}},
		"introspection without tokens":  {auth("introspection: {url: 'https://a'}"), "auth.mode: token", []string{"auth.introspection.url: has no effect with auth.mode none"}},
		"permissions":                   {jwt("jwksUrl: 'https://a'}, uma: {tokenUrl: 'https://a', clientId: c"), "", nil},
		"permissions without a client":  {jwt("jwksUrl: 'https://a'}, uma: {tokenUrl: 'https://a'"), "", []string{"auth.uma.clientId: is missing"}},
		"permissions without a URL":     {jwt("jwksUrl: 'https://a'}, uma: {clientId: c"), "", []string{"auth.uma.tokenUrl: is missing"}},
		"permissions without keys":      {auth("mode: token, uma: {tokenUrl: 'https://a', clientId: c}"), "jwksUrl", []string{"auth.uma: exchanges JSON Web Tokens, but none are accepted"}},
		"near key":                      {jwt("jwksURL: a"), "", []string{"auth.jwt.jwksURL: unknown key; the nearest valid key is auth.jwt.jwksUrl (line 1)", "auth.jwt: has an issuer"}},
	})
	if c := parse(t, jwt("publicKeyFile: "+pem)); !c.Auth.JWT.Enabled() || parse(t, auth("mode: token")).Auth.JWT.Enabled() {
		t.Errorf("enabled: %+v", c.Auth.JWT)
	}
	for members, want := range map[string]string{
		"": "public", "mode: token": "authenticated", "defaultAccess: deny": "deny",
		"mode: token, defaultAccess: public": "public", "mode: token, defaultAccess: deny": "deny",
	} {
		if got := parse(t, auth(members)).Auth.DefaultAccess; got != want {
			t.Errorf("{%s}: the default access is %q, want %q", members, got, want)
		}
	}
}

// TestStoreOfSeveral: a shared database with an embedded queue or index causes a warning.
func TestStoreOfSeveral(t *testing.T) {
	const shared, queue, index = "store: {url: 'postgres://db/tutti'}\n", "queue: {url: 'nats://q:4222'}\n", "index: {url: 'http://e:9200'}\n"
	for text, warned := range map[string]bool{
		"": false, shared: true, shared + queue: true, shared + index: true, shared + queue + index: false, queue: false,
	} {
		c, err := config.Parse([]byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(c.Warnings) == 1 && strings.Contains(c.Warnings[0], "do not run a second tutti with this database"); got != warned {
			t.Errorf("%q: warnings %q", text, c.Warnings)
		}
	}
}

func TestCataloguesFolder(t *testing.T) {
	t.Parallel()
	file, empty := yamlOf(t, t.TempDir(), "base.json", "{}"), t.TempDir()
	if c := parse(t, "catalogues: {dir: '"+empty+"'}"); c.Catalogues != (config.Catalogues{Dir: empty}) {
		t.Errorf("got %+v", c.Catalogues)
	}
	runFaults(t, map[string]errorCase{
		"not there": {"catalogues:\n  dir: /none", "set the directory that holds one catalogue's JSON files, or a sub-directory for each catalogue", []string{"catalogues.dir: /none cannot be read: no such file or directory (line 2)"}},
		"a file":    {"catalogues: {dir: '" + file + "'}", "set the directory", []string{"catalogues.dir: " + file + " is not a directory (line 1)"}},
		"unknown":   {"catalogues: {path: a}", "", []string{"catalogues.path: unknown key; the nearest valid key is catalogues.dir (line 1)"}},
		"a list":    {"catalogues: [a]", "", []string{"catalogues: must be an object, not a list (line 1)"}},
		"not known": {"catalogues: {disableGraphQLIntrospection: maybe}", "use true", []string{`catalogues.disableGraphQLIntrospection: must be true or false, not "maybe" (line 1)`}},
	})
}
