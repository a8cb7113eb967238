package app_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tutti/internal/app"
	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// securedServers are servers that require a client certificate of the authority that signed their own: a valid one for 127.0.0.1, and an
// expired one.
type securedServers struct {
	t              *testing.T
	dir            string
	right, expired *httptest.Server
	authority      *testkit.Authority
	mu             sync.Mutex
	received       map[string]int
}

const securedSecret = "s3cret-of-a-connection"

func newSecuredServers(t *testing.T, handler http.Handler) *securedServers {
	t.Helper()
	s := &securedServers{t: t, dir: t.TempDir(), received: map[string]int{}}
	var err error
	if s.authority, err = testkit.NewAuthority(); err != nil {
		t.Fatal(err)
	}
	other, err := testkit.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	s.write("ca.pem", s.authority.PEM)
	s.write("other.pem", other.PEM)
	count := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.received[strings.Split(r.URL.Path, "/")[1]]++
		s.mu.Unlock()
		handler.ServeHTTP(w, r)
	})
	start := func(until time.Time) *httptest.Server {
		cert, key, err := s.authority.Certificate(time.Now().Add(-time.Hour), until, "127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		s.write("client.pem", cert)
		s.write("client.key", key)
		server := httptest.NewUnstartedServer(count)
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
		server.TLS.ClientCAs.AppendCertsFromPEM(s.authority.PEM)
		server.StartTLS()
		t.Cleanup(server.Close)
		return server
	}
	s.expired = start(time.Now().Add(-time.Minute))
	s.right = start(time.Now().Add(time.Hour))
	return s
}

func (s *securedServers) write(name string, content []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), content, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// fill replaces $DIR by the folder of the files, and $URL by the address of a server.
func (s *securedServers) fill(text, url string) string {
	return strings.NewReplacer("$DIR", s.dir, "$URL", url, "$HOST", strings.TrimPrefix(url, "https://")).Replace(text)
}

// count returns the requests for paths below a name.
func (s *securedServers) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received[name]
}

// oneRecord returns a Lyric with one record, until the test ends.
func oneRecord(t *testing.T, basePath string) *testkit.LyricServer {
	t.Helper()
	s, err := testkit.NewLyric(testkit.LyricConfig{BasePath: basePath})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.PutAll(dataset.GenerateRecords(1, "S", 1)...)
	return s
}

// answersOfServices are right answers of every service, below a path of its own.
func answersOfServices(t *testing.T, keys string) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/lyric/", oneRecord(t, "/lyric"))
	text := func(path string, status int, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	text("/keys", http.StatusOK, keys)
	text("/introspection", http.StatusOK, `{"active":false}`)
	text("/uma", http.StatusBadRequest, `{"error":"invalid_grant"}`)
	text("/score/upload/", http.StatusOK, "false")
	text("/values/", http.StatusOK, "")
	text("/song/studies/all", http.StatusOK, `["S"]`)
	text("/song/schemas", http.StatusOK, `{"resultSet":[],"count":0,"limit":20,"offset":0}`)
	text("/lectern/dictionaries", http.StatusOK, `[{"name":"clinical","version":"1.2","schemas":[]}]`)
	text("/alert", http.StatusOK, "")
	text("/v1/traces", http.StatusOK, "")
	text("/graphql", http.StatusOK, `{"data":{"__type":{"name":"analysisAggregations","fields":[]},"analysis":{"hits":{"total":3}}}}`)
	text("/", http.StatusNotFound, "")
	return mux
}

// remoteNode is a folder of one catalogue, whose federation has a node with settings in the flow style of YAML.
func remoteNode(url, settings string) folder {
	members := ""
	for setting := range strings.SplitSeq(settings, ", ") {
		if key, value, ok := strings.Cut(setting, ": "); ok {
			members += fmt.Sprintf(",%q:%q", key, value)
		}
	}
	return folder{
		"nodes/base.json": based("analysis", aliasWord, ""),
		"nodes/network.json": fmt.Sprintf(`{"network":{"localNode":{"displayName":"here"},"remoteNodes":[`+
			`{"displayName":"there","documentType":"analysis","graphqlUrl":%q%s}]}}`, url+"/graphql", members),
	}
}

// TestSecuredConnections: each connection works with the right files, and tutti check, or the test of alerts, says in one sentence
// what is wrong with others, and which key to change. It does not show secrets.
func TestSecuredConnections(t *testing.T) {
	t.Parallel()
	s := newSecuredServers(t, answersOfServices(t, `{"keys":[`+newSigner(t, "k").form+`]}`))
	about := func(subject string) func(config.Config) []string {
		return func(cfg config.Config) (all []string) {
			for _, f := range check.Run(t.Context(), cfg, check.Options{}).Findings {
				if f.Status != check.StatusOK && strings.HasPrefix(f.Subject, subject) {
					all = append(all, f.Message+" -> "+f.Hint)
				}
			}
			return all
		}
	}
	findings := about("")
	test := func(cfg config.Config) (all []string) {
		all = findings(cfg)
		for _, r := range app.TestAlerts(t.Context(), cfg, "test") {
			if r.Err != nil {
				all = append(all, r.Err.Error())
			}
		}
		return all
	}
	const jwt = "jwt: {jwksUrl: '$URL/keys', issuer: i, audience: a%s}"
	for _, c := range []struct {
		key, yaml string
		found     func(config.Config) []string
		unnamed   bool // it has no serverName
	}{
		{"schemas.storage", "schemas: {storage: {url: '$URL/score', token: " + securedSecret + "%s}}", findings, false},
		{"schemas.externalValidations", "schemas: {defaultOptions: {externalValidations: [{url: '$URL/values/{value}', jsonPath: a}]}, " +
			"externalValidations: {allowedHosts: ['$HOST']%s}}", findings, true},
		{"repositories[0]", "repositories: [{code: a, type: song, url: '$URL/song', indexName: a, token: " + securedSecret + "%s}]", findings, false},
		{"repositories[0]", "repositories: [{code: a, type: lyric, lyric: {categoryId: 1}, url: '$URL/lyric', indexName: a, token: " + securedSecret + "%s}]", findings, false},
		{"repositories[0]", "repositories: [{code: a, type: lyric, lyric: {categoryId: 1, dictionaryUrl: '$URL/lectern'}, url: '" +
			oneRecord(t, "").URL() + "', indexName: a%s}]", findings, false},
		{"auth.jwt", "auth: {mode: token, " + jwt + "}", findings, false},
		{"auth.introspection", "auth: {mode: token, introspection: {url: '$URL/introspection', clientId: c, clientSecret: " + securedSecret + "%s}}", findings, false},
		{"auth.uma", "auth: {mode: token, " + fmt.Sprintf(jwt, ", caFile: $DIR/ca.pem, clientCertFile: $DIR/client.pem, clientKeyFile: $DIR/client.key") +
			", uma: {tokenUrl: '$URL/uma', clientId: a%s}}", findings, false},
		{"tracing", "tracing: {endpoint: '$URL', headers: Authorization=" + securedSecret + "%s}", findings, false},
		{"network.remoteNodes[0]", "catalogues: {dir: $DIR/catalogues%.0s}", about("catalogue nodes, node there"), false},
		{"alerts[0]", "alerts: [{url: '$URL/alert?key=" + securedSecret + "', token: " + securedSecret + "%s}]", test, false},
	} {
		const client = ", clientCertFile: $DIR/client.pem, clientKeyFile: $DIR/client.key"
		name := "its certificate is for another host name | set " + c.key + ".serverName to a name that the certificate is for"
		if c.unnamed {
			name = "its certificate is for another host name | use the name that the certificate is for"
		}
		for _, v := range []struct{ name, url, files, want string }{
			{"right", s.right.URL, ", caFile: $DIR/ca.pem" + client, ""},
			{"system's authorities", s.right.URL, client, "its certificate is signed by an unknown authority | set " + c.key + ".caFile to a PEM file of the authority's certificate"},
			{"other authority", s.right.URL, ", caFile: $DIR/other.pem" + client, "its certificate is signed by an unknown authority | set " + c.key + ".caFile"},
			{"name", strings.Replace(s.right.URL, "127.0.0.1", "localhost", 1), ", caFile: $DIR/ca.pem" + client, name},
			{"expired", s.expired.URL, ", caFile: $DIR/ca.pem" + client, "its certificate has expired or is not valid yet | renew the certificate"},
			{"no client certificate", s.right.URL, ", caFile: $DIR/ca.pem", "it requires a client certificate | set " + c.key + ".clientCertFile and its key"},
			{"no file", s.right.URL, ", caFile: $DIR/none", c.key + ".caFile: $DIR/none cannot be read: no such file or directory"},
			{"not a key", s.right.URL, ", caFile: $DIR/ca.pem, clientCertFile: $DIR/client.pem, clientKeyFile: $DIR/ca.pem", "$DIR/ca.pem is not a private key"},
		} {
			t.Run(c.key+"/"+v.name, func(t *testing.T) {
				remoteNode(v.url, s.fill(v.files, "")).write(&world{t: t, alias: "analyses"}, filepath.Join(s.dir, "catalogues"))
				yaml := s.fill(fmt.Sprintf("dataDir: '%s'\nserver: {listen: '127.0.0.1:0'}\n"+c.yaml, t.TempDir(), v.files), v.url)
				cfg, err := config.Parse([]byte(yaml), nil)
				if err != nil {
					t.Fatal(err)
				}
				got := c.found(cfg)
				text := strings.Join(got, "\n")
				if strings.Contains(text, securedSecret) {
					t.Errorf("a secret is shown: %s", text)
				}
				found := v.want == "" && len(got) == 0
				for _, line := range got {
					all := true
					for part := range strings.SplitSeq(s.fill(v.want, v.url), " | ") {
						all = all && strings.Contains(line, part)
					}
					found = found || all && v.want != "" && strings.Count(line, c.key+".") <= 1
				}
				if !found {
					t.Errorf("got:\n%s\nwant %s", text, v.want)
				}
				if v.name != "no file" {
					return
				}
				a, err := app.New(cfg, app.Options{})
				if err != nil {
					t.Fatal(err)
				}
				err = a.Start(t.Context())
				if c.key == "network.remoteNodes[0]" { // which no other node depends on
					if err := errors.Join(err, a.Stop(t.Context())); err != nil {
						t.Error(err)
					}
					return
				}
				if core.CodeOf(err) != core.CodeInvalid || !strings.Contains(core.MessageOf(err), s.fill(v.want, v.url)) {
					t.Errorf("the start: %v", err)
				}
			})
		}
	}
}

// client are the settings of a client certificate of the servers, and of a file of authorities.
func (s *securedServers) client(authorities string) string {
	return s.fill(", caFile: $DIR/"+authorities+", clientCertFile: $DIR/client.pem, clientKeyFile: $DIR/client.key", "")
}

// replace makes a file the authority that signed the certificates of the servers.
func (s *securedServers) replace(name string) { s.write(name, s.authority.PEM) }

// awaitSaid waits until a line of the log of a component has a text.
func (w *world) awaitSaid(component, text string) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		for _, line := range w.logs.all() {
			if strings.Contains(line, `"component":"`+component+`"`) && strings.Contains(line, text) {
				return true, ""
			}
		}
		return false, "the log of " + component + " does not say: " + text
	})
}

// awaitReasons waits until /ready, which stays ready, has exactly the reasons of a file of authorities for keys.
func (w *world) awaitReasons(keys ...string) {
	w.t.Helper()
	var want []string
	for _, key := range keys {
		want = append(want, key+": its certificate is signed by an unknown authority; set "+key+".caFile to a PEM file of the authority's certificate")
	}
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		var got []string
		for _, r := range a.get("reasons").Array() {
			if strings.Contains(r.String(), "certificate") {
				got = append(got, r.String())
			}
		}
		return a.status == http.StatusOK && a.get("ready").Bool() && slices.Equal(got, want), string(a.raw)
	})
}

// TestSecuredConnectionsHeal: while files have another authority, the log or the response says so in one sentence with the key, and
// nothing is published unchecked. Once they are right, the running process uses them. Secrets are in no log, /ready or configuration.
func TestSecuredConnectionsHeal(t *testing.T) {
	t.Parallel()
	signer, source := newSigner(t, "k"), &issuer{t: t}
	s := newSecuredServers(t, answersOfServices(t, `{"keys":[`+signer.form+`]}`))
	source.server = s.right
	for _, name := range []string{"auth.pem", "services.pem"} {
		content, err := os.ReadFile(filepath.Join(s.dir, "other.pem"))
		if err != nil {
			t.Fatal(err)
		}
		s.write(name, content)
	}
	auth, services := s.client("auth.pem"), s.client("services.pem")
	b := newBuiltIn(t, plan{more: s.fill("auth: {mode: token, jwt: {jwksUrl: '$URL/keys', issuer: '$URL', audience: tutti"+auth+"}, "+
		"introspection: {url: '$URL/introspection', clientId: c, clientSecret: "+securedSecret+auth+"}}\n"+
		"schemas: {storage: {url: '$URL/score', token: "+securedSecret+services+"}, externalValidations: {allowedHosts: ['$HOST']"+services+"}}\n"+
		"tracing: {endpoint: '$URL', headers: Authorization="+securedSecret+services+"}\n", s.right.URL)})
	b.startReady()
	const unknown = "its certificate is signed by an unknown authority; set %s.caFile to a PEM file of the authority's certificate"
	b.token = source.token(signer, map[string]any{"scope": "tutti.WRITE"})
	b.mustSend(http.MethodPost, "/studies/S1", "", http.StatusServiceUnavailable)
	b.awaitSaid("auth", "fetching a key set: "+fmt.Sprintf(unknown, "auth.jwt"))
	b.mustSendAs("opaque", http.MethodPost, "/studies/S1", "", http.StatusServiceUnavailable)
	b.awaitSaid("auth", "checking a token: "+fmt.Sprintf(unknown, "auth.introspection"))
	b.awaitReasons("auth.introspection", "auth.jwt", "tracing")
	s.replace("auth.pem")
	b.awaitReasons("tracing") // also without another token
	b.eventually(wait, func() (bool, string) {
		a, err := b.send(http.MethodPost, "/studies/S0", "")
		return err == nil && a.status == http.StatusOK, string(a.raw)
	})
	b.mustSendAs("opaque2", http.MethodPost, "/studies/S1", "", http.StatusUnauthorized)
	b.prepareStudies("S1")

	b.registerExternalType("donors", s.right.URL+"/values/{value}")
	b.mustSend(http.MethodPost, "/submit/S1", b.donors("donors", "DO1"), http.StatusBadRequest)
	b.awaitSaid("schemas", fmt.Sprintf(unknown, "schemas.externalValidations"))
	id := b.submit("S1")
	a := b.mustSend(http.MethodPut, statePath("S1", "publish", id), "", http.StatusServiceUnavailable)
	if said := string(a.raw); !strings.Contains(said, "its certificate is signed by an unknown authority") || !strings.Contains(said, "set schemas.storage.caFile to a PEM file") {
		t.Errorf("publishing: %s", said)
	}
	b.awaitSaid("tracing", fmt.Sprintf(unknown, "tracing"))
	b.awaitReasons("schemas.externalValidations", "schemas.storage", "tracing")
	if n := len(b.storedAnalyses("PUBLISHED")) + s.count("score") + s.count("values") + s.count("v1"); n != 0 {
		t.Errorf("%d requests or published analyses", n)
	}
	s.replace("services.pem")
	b.awaitReasons()
	b.eventually(wait, func() (bool, string) {
		a, err := b.send(http.MethodPost, "/submit/S1", b.donors("donors", "DO1"))
		return err == nil && a.status == http.StatusOK, string(a.raw)
	})
	b.eventually(wait, func() (bool, string) { // the files are read at most once a second
		a, err := b.send(http.MethodPut, statePath("S1", "publish", id), "")
		return err == nil && a.status == http.StatusConflict && a.get("errorId").String() == "missing.storage.objects", string(a.raw)
	})
	b.eventually(wait, func() (bool, string) { return s.count("v1") > 0, "no traces are received" })
	logged := 0
	for _, line := range b.logs.all() {
		if strings.Contains(line, "an external validation service cannot be used") {
			logged++
		}
	}
	if logged != 1 {
		t.Errorf("the log says %d times that the service cannot be reached", logged)
	}
	cfg, err := config.Parse([]byte(b.yaml()), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if shown := strings.Join(b.logs.all(), "\n") + string(b.ready().raw) + string(text); strings.Contains(shown, securedSecret) {
		t.Error("a secret is shown")
	}
}

// TestAlertsHeal: an alert that could not be sent because of the file of authorities is sent once the file is right.
func TestAlertsHeal(t *testing.T) {
	t.Parallel()
	r := &alertReceiver{t: t, status: http.StatusOK}
	s := newSecuredServers(t, http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodHead { // whether it can be reached
			r.ServeHTTP(rw, req)
		}
	}))
	w := startWorld(t, settings{more: s.fill("alerts: [{url: '$URL/"+securedSecret+"', secret: "+alertSecret+""+s.client("other.pem")+"}]\n", s.right.URL)})
	w.reject("S1", 1)
	w.awaitSaid("alerts", "its certificate is signed by an unknown authority; set alerts[0].caFile to a PEM file of the authority's certificate")
	w.awaitReasons("alerts[0]")
	s.replace("other.pem")
	w.awaitReasons()
	r.await(w, "dead_letters 1")
	if logs := strings.Join(w.logs.all(), ""); strings.Contains(logs, alertSecret) || strings.Contains(logs, securedSecret) {
		t.Error("the log shows a secret")
	}
}

// TestFederationHeals: a remote node whose authority is unknown is named in the log with the key, not to clients, and is part of the
// federation once the file is right.
func TestFederationHeals(t *testing.T) {
	t.Parallel()
	s := newSecuredServers(t, answersOfServices(t, ""))
	here, _ := node(t, "H1", 1, remoteNode(s.right.URL, s.client("other.pem")), "")
	answer := here.network(`"name":"there","hits":0,"status":"ERROR","errors":"could not be reached"`, `"name":"here","hits":1,"status":"OK"`)
	if strings.Contains(answer, "caFile") || strings.Contains(answer, s.dir) {
		t.Errorf("a client sees the configuration: %s", answer)
	}
	here.awaitSaid("federation", "could not be reached: its certificate is signed by an unknown authority; "+
		"set network.remoteNodes[0].caFile to a PEM file of the authority's certificate")
	s.replace("other.pem")
	here.network(`"name":"there","hits":3,"status":"OK"`)
}
