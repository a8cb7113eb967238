//go:build !services

package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.yaml.in/yaml/v3"

	"tutti/internal/app"
	"tutti/internal/app/backup"
	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/testkit"
)

// secretPattern matches the secrets of TestNoSecretIsShown, which name their connections, and their base64 in basic authentication.
var secretPattern = regexp.MustCompile(`s3cret-[a-zA-Z-]+|czNjcmV0L|MzY3JldC|zM2NyZXQt`)

// The configurations of the tests of this file, with $ before what a test fills in.
const (
	refusedSecrets = `
server: {listen: "127.0.0.1:0"}
dataDir: "$DIR"
log: {level: debug}
repositories:
  - {code: tokened, type: song, url: "$URL/tokened", indexName: tokened, token: s3cret-token, notifications: {webhook: {secret: s3cret-webhook},
      kafka: {brokers: ["$GONE"], topic: t, sasl: {mechanism: PLAIN, username: u, password: s3cret-plain}}}}
  - {code: basic, type: lyric, url: "$URL/basic", indexName: basic, username: u, password: s3cret-basic,
      lyric: {categoryId: 1, dictionaryUrl: "$URL/lectern"},
      notifications: {kafka: {brokers: ["$GONE"], topic: u, sasl: {mechanism: SCRAM-SHA-256, username: u, password: s3cret-scram}}}}
  - {code: oauth, type: song, url: "$URL/oauth", indexName: oauth,
      notifications: {kafka: {brokers: ["$GONE"], topic: v, sasl: {mechanism: OAUTHBEARER,
        oauth: {tokenUrl: "$URL/oauth?key=s3cret-tokens-key", clientId: c, clientSecret: s3cret-tokens}}}}}
  - {code: local, type: local, indexName: local}
ingest: {kafka: {brokers: ["$GONE"], sasl: {mechanism: OAUTHBEARER, oauth: {tokenUrl: "$URL/oauth?key=s3cret-oauth-key", clientId: c, clientSecret: s3cret-oauth}}}}
auth:
  mode: token
  jwt: {jwksUrl: "$URL/keys?key=s3cret-jwks", issuer: i, audience: a}
  introspection: {url: "$URL/introspection?key=s3cret-introspection-key", clientId: c, clientSecret: s3cret-introspection}
  uma: {tokenUrl: "$URL/uma?key=s3cret-uma", clientId: c}
schemas:
  storage: {url: "$URL/score", token: s3cret-score}
  externalValidations: {allowedHosts: ["$HOST"]}
  defaultOptions: {externalValidations: [{url: "$URL/values/{value}?key=s3cret-validation", jsonPath: "$.experiment.donors[*].id"}]}
tracing: {endpoint: "$URL/traces?key=s3cret-traces", headers: "Authorization=s3cret-otlp"}
alerts:
  - {url: "$URL/hook/s3cret-hook", token: s3cret-alert-token, secret: s3cret-alert-key, minInterval: 10s}
  - {url: "http://$GONE/hook/s3cret-hook-gone", minInterval: 10s}
`
	acceptedSecrets = `
server: {listen: "127.0.0.1:0"}
dataDir: "$DIR"
log: {level: debug}
queue: {url: "nats://u:s3cret-nats@$NATS"}
repositories: [{code: a, type: song, url: "$URL", indexName: analyses,
  notifications: {kafka: {brokers: $BROKERS, topic: song-analysis, sasl: {mechanism: SCRAM-SHA-256, username: u, password: s3cret-scram}}}}]
ingest: {kafka: {brokers: $BROKERS, sasl: {mechanism: PLAIN, username: u, password: s3cret-plain}}}
catalogues: {dir: "$CATALOGUES"}
`
)

// failedStart is the begin of each of failedSecrets, of which $FILE is a file with a secret.
const failedStart = `
dataDir: "$DIR"
repositories: [{code: local, type: local, indexName: local}]
server:
  listen: "127.0.0.1:0"
  startTimeout: 1s
`

var failedSecrets = map[string]string{
	"queue":                  `queue: {url: "nats://u:s3cret-nats@$GONE"}`,
	"queue by key":           `queue: {url: "nats://$GONE", username: u, password: s3cret-nats}`,
	"queue by token":         `queue: {url: "nats://s3cret-nats@$HOST"}`,
	"monitoring":             `queue: {url: "nats://$GONE", monitoringUrl: "http://u:s3cret-monitoring@$GONE,http://u:s3cret-monitoring@$HOST"}`,
	"store":                  `store: {url: "postgres://u:s3cret-postgres@$GONE/tutti?sslpassword=s3cret-key"}`,
	"store refuses":          `store: {url: "postgres://u:s3cret-postgres@$HOST/tutti"}`,
	"index":                  `index: {url: "$URL", username: u, password: s3cret-index}`,
	"index by key":           `index: {url: "$URL", apiKey: s3cret-apiKey}`,
	"index in URL":           `index: {url: "http://u:s3cret-index@$HOST"}`,
	"index is gone":          `index: {url: "http://u:s3cret-index@$GONE"}`,
	"index with a parameter": `index: {url: "$URL?key=s3cret-index"}`,
	"nkey":                   `queue: {url: "nats://$GONE", nkeyFile: "$FILE"}`,
	"credentials":            `queue: {url: "nats://$GONE", credentialsFile: "$FILE"}`,
	"client key":             `queue: {url: "nats://$GONE", clientCertFile: "$FILE", clientKeyFile: "$FILE"}`,
	"key":                    `  tls: {certFile: "$FILE", keyFile: "$FILE"}`,
}

// echo is a server that refuses every request, except for the types of a node of a federation, and repeats all that it was sent, as the pages of
// some proxies do. It notes which secrets arrived.
type echo struct {
	*httptest.Server
	mu      sync.Mutex
	arrived map[string]bool
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	e := &echo{arrived: map[string]bool{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what arrived of it
		user, password, _ := r.BasicAuth()
		var sent bytes.Buffer
		fmt.Fprintf(&sent, "%s %s %s %s:%s ", r.Method, r.RequestURI, r.Header, user, password)
		sent.Write(body)
		e.mu.Lock()
		for _, secret := range secretPattern.FindAllString(sent.String(), -1) {
			e.arrived[secret] = true
		}
		e.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if bytes.Contains(body, []byte("__type")) {
			_, _ = io.WriteString(w, `{"data":{"__type":{"name":"analysisAggregations","fields":[]}}}`)
			return
		}
		if r.URL.Path != "/graphql" { // which reports errors with status 200
			w.WriteHeader(http.StatusUnauthorized)
		}
		text := sent.String()
		_ = json.NewEncoder(w).Encode(map[string]any{"error": text, "message": text, "reason": text, "errors": repeated(text, user, password)})
	}))
	t.Cleanup(e.Close)
	return e
}

// repeated returns errors of a query, whose messages a node of a federation shows to clients: all that was sent, and each secret in it alone.
func repeated(sent ...string) []map[string]any {
	var errs []map[string]any
	for _, text := range append(secretPattern.FindAllString(strings.Join(sent, " "), -1), sent[0]) {
		errs = append(errs, map[string]any{"message": text, "extensions": map[string]string{"code": "BAD_USER_INPUT"}})
	}
	return errs
}

// wantNoSecret fails if a text shows a secret.
func wantNoSecret(t *testing.T, where, text string) {
	t.Helper()
	if found := secretPattern.FindAllString(text, -1); found != nil {
		slices.Sort(found)
		at := secretPattern.FindStringIndex(text)[0]
		t.Errorf("%s shows %q: …%s…", where, slices.Compact(found), text[max(0, at-150):min(len(text), at+100)])
	}
}

// wantMasked checks what shows a configuration, and tutti check.
func wantMasked(t *testing.T, file string, cfg config.Config) {
	t.Helper()
	text, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tutti.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, origins := range []bool{false, true} {
		effective, err := config.Effective(path, nil, origins)
		if err != nil {
			t.Fatal(err)
		}
		wantNoSecret(t, "tutti config", string(effective))
	}
	wantNoSecret(t, "the configuration", string(text))
	report, err := json.Marshal(check.Run(t.Context(), cfg, check.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	wantNoSecret(t, "tutti check", string(report))
}

// wantNoSecretServed checks what w answers at its common routes, with and without a token, and the files of a backup.
func wantNoSecretServed(t *testing.T, w *world) {
	t.Helper()
	answers := []string{string(w.ready().raw)}
	for _, path := range []string{"/metrics", "/", "/openapi.json", "/repositories", "/jobs", "/dead-letters", "/index/repository/tokened"} {
		for _, token := range []string{"", "s3cret-of-a-caller"} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				req, err := http.NewRequestWithContext(t.Context(), method, w.url+path+"?token=s3cret-in-a-query", strings.NewReader(`{"a":"s3cret-in-a-body"`))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				if token != "" {
					req.Header.Set("Authorization", "Bearer "+token)
				}
				res, err := w.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				answers = append(answers, string(body))
			}
		}
	}
	answers = append(answers, string(w.ready().raw))
	wantNoSecret(t, "an answer", strings.Join(answers, "\n"))
	var archive bytes.Buffer
	if err := w.app.Backup(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := backup.Unpack(&archive, dir); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files++
		wantNoSecret(t, "the backup's "+filepath.Base(path), string(content))
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestNoSecretIsShown: with a secret in every connection, each to a server that refuses and repeats what it was sent, or to none, no secret is
// in a log at level debug, an answer, /ready, /metrics, a configuration, tutti check, or a file of a backup.
func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	e, gone := newEcho(t), testkit.NewAddress(t)
	fill := strings.NewReplacer("$URL", e.URL, "$HOST", strings.TrimPrefix(e.URL, "http://"), "$GONE", gone)
	w := newWorld(t, settings{configuration: func(w *world) string { return fill.Replace(strings.ReplaceAll(refusedSecrets, "$DIR", w.dir)) }})
	cfg, err := config.Parse([]byte(w.yaml()), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantMasked(t, w.yaml(), cfg)
	w.start()
	w.eventually(wait, func() (bool, string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.arrived["s3cret-token"] && e.arrived["s3cret-basic"], fmt.Sprint(e.arrived)
	})
	wantNoSecretServed(t, w)
	for _, r := range app.TestAlerts(t.Context(), cfg, "test") {
		if r.Err == nil {
			t.Error("an alert was taken")
		}
	}
	w.stop()
	wantNoSecret(t, "the log", strings.Join(w.logs.all(), "\n"))
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, secret := range []string{"token", "basic", "introspection", "introspection-key", "jwks", "score", "otlp", "traces", "hook", "alert-token"} {
		if !e.arrived["s3cret-"+secret] {
			t.Errorf("the secret %s was not used", secret)
		}
	}
}

// TestNoSecretOfWorkingConnections: nor are those of a queue and a broker that take them, and what a caller sends to a node of a federation,
// which repeats it.
func TestNoSecretOfWorkingConnections(t *testing.T) {
	t.Parallel()
	e, dir := newEcho(t), t.TempDir()
	there := fmt.Sprintf("http://u:s3cret-node@%s/graphql?key=s3cret-node-key", strings.TrimPrefix(e.URL, "http://"))
	folder{"nodes/base.json": based("analysis", aliasWord, ""), "nodes/network.json": federated(map[string]string{"there": there, "gone": strings.Replace(there, strings.TrimPrefix(e.URL, "http://"), testkit.NewAddress(t), 1)})}.write(&world{t: t, alias: "analyses"}, dir)
	nats := queuetest.Serve(t, t.TempDir(), "authorization: {user: u, password: s3cret-nats}")
	b := startBroker(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "s3cret-plain"), kfake.Superuser("SCRAM-SHA-256", "u", "s3cret-scram"))
	w := newWorld(t, settings{configuration: func(w *world) string {
		return strings.NewReplacer("$DIR", w.dir, "$NATS", nats.Addr().String(), "$URL", w.song.URL(), "$BROKERS", b.brokers(), "$CATALOGUES", dir).Replace(acceptedSecrets)
	}})
	cfg, err := config.Parse([]byte(w.yaml()), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantMasked(t, w.yaml(), cfg)
	w.start()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		return a.get("components.queue").String() == "up" && a.get("components.kafka").String() == "up", string(a.raw)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/nodes/graphql", strings.NewReader(`{"query":"{network{nodes{name hits status errors}}}"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer s3cret-of-a-caller")
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(answer), "there") {
		t.Errorf("%v: %s", err, answer)
	}
	wantNoSecret(t, "an answer", string(answer))
	wantNoSecretServed(t, w)
	w.stop()
	wantNoSecret(t, "the log", strings.Join(w.logs.all(), "\n"))
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, secret := range []string{"s3cret-node-key", "s3cret-of-a-caller"} {
		if !e.arrived[secret] {
			t.Errorf("%s was not sent", secret)
		}
	}
}

// TestNoSecretOfAFailedStart: nor are the secrets of a queue, an index and a store that cannot be reached or refuse, of which a start ends.
func TestNoSecretOfAFailedStart(t *testing.T) {
	t.Parallel()
	e, gone := newEcho(t), testkit.NewAddress(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("s3cret-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$URL", e.URL, "$HOST", strings.TrimPrefix(e.URL, "http://"), "$GONE", gone, "$FILE", file)
	for name, yaml := range failedSecrets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings{configuration: func(w *world) string {
				return fill.Replace(strings.ReplaceAll(failedStart, "$DIR", w.dir) + yaml)
			}})
			cfg, err := config.Parse([]byte(w.yaml()), nil)
			if err != nil {
				wantNoSecret(t, "the error of the configuration", err.Error())
				return
			}
			wantMasked(t, w.yaml(), cfg)
			a := w.newApp()
			if err := a.Start(t.Context()); err != nil {
				wantNoSecret(t, "the error of the start", fmt.Sprintf("%v %+v", err, err))
			} else {
				w.app, w.url = a, a.URL()
				wantNoSecret(t, "/ready", string(w.ready().raw))
				w.stop()
			}
			wantNoSecret(t, "the log", strings.Join(w.logs.all(), "\n"))
		})
	}
}

// secretKeys returns the keys of a configuration's schema that may contain a secret, such as repositories[].token: those that can also be read
// from a file, those named as secrets are, and URLs. Files of private keys are named without their section: one package reads them.
func secretKeys(schema map[string]any, at string, found map[string]bool) {
	for _, key := range []string{"anyOf", "allOf", "oneOf"} {
		list, _ := schema[key].([]any)
		for _, each := range list {
			part, _ := each.(map[string]any)
			secretKeys(part, at, found)
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		secretKeys(items, at+"[]", found)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, of := range properties {
		path := strings.TrimPrefix(at+"."+name, ".")
		_, file := properties[name+"File"]
		switch {
		case file, regexp.MustCompile(`(?i)(password|secret|token|apikey|url|endpoint)$`).MatchString(name):
			found[path] = true
		case regexp.MustCompile(`(?i)(key|credentials)File$`).MatchString(name) && properties[strings.TrimSuffix(name, "File")] == nil:
			found[name] = true
		}
		part, _ := of.(map[string]any)
		secretKeys(part, path, found)
	}
}

// setSecrets removes from keys those whose value in a file contains a secret, or names a file that does.
func setSecrets(value any, at string, keys map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			setSecrets(v, strings.TrimPrefix(at+"."+name, "."), keys)
		}
	case []any:
		for _, v := range value {
			setSecrets(v, at+"[]", keys)
		}
	case string:
		if strings.Contains(value, "s3cret-") {
			delete(keys, at)
		}
		if value == "$FILE" {
			delete(keys, at[strings.LastIndex(at, ".")+1:])
		}
	}
}

// TestEverySecretIsTried: each key of the configuration that may contain a secret has one in a configuration of the tests of this file.
func TestEverySecretIsTried(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	secretKeys(schema, "", keys)
	for key, why := range map[string]string{
		"repositories[].url":                 "a user and a parameter are refused",
		"repositories[].lyric.dictionaryUrl": "a user and a parameter are refused",
		"schemas.storage.url":                "a user and a parameter are refused",
		"server.publicUrl":                   "a user and a parameter are refused",
		"service.contactUrl":                 "is public",
		"service.organization.url":           "is public",
		"publicKeyFile":                      "is public",
	} {
		if !keys[key] {
			t.Errorf("%s (%s) is no key that may contain a secret", key, why)
		}
		delete(keys, key)
	}
	tried := []string{refusedSecrets, acceptedSecrets}
	for _, text := range failedSecrets {
		tried = append(tried, failedStart+text)
	}
	for _, text := range tried {
		var file any
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		setSecrets(file, "", keys)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		t.Errorf("%s has no secret in a configuration of these tests", key)
	}
}
