package config_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tutti/internal/base/setting"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/upstream"
	"tutti/internal/upstream/lyric"
	"tutti/internal/upstream/song"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// least is a file with only the required keys.
const least = `repositories: [{code: song.ca, type: song, url: "https://song.example.org", indexName: analyses}]`

// documented are keys with their defaults (CONTRACT section 9).
const documented = `
server: {listen: "127.0.0.1:8080", hosts: [], basePath: "", maxBodyBytes: 10485760, maxBytesInFlight: 268435456,
  maxConnections: 0, maxConnectionsPerAddress: 0, trustedProxies: [], cors: {origins: []}, profiling: "", startTimeout: 1m, shutdownDelay: 0s, shutdownTimeout: 10s}
dataDir: ./tutti-data
log: {level: info, format: text}            # debug info warn error, any case; text or json
queue: {url: "", credentialsFile: "", replicas: 0, maxPending: 200000}    # empty url: embedded
deadLetters: {maxBodies: 10000}
index: {url: "", username: "", password: "", apiKey: "", aws: {region: "", service: es}, caFile: "", clientCertFile: "", clientKeyFile: "", serverName: "", shards: 1, replicas: 1, batchBytes: 2097152, maxInFlight: 4, priority: searches, maxRecordBytes: 33554432, limits: {nestedObjects: 100000, nestedFields: 200, fields: 5000}}
store: {url: ""}
repositories:
  - {code: song.ca, type: song, url: "https://song.example.org", indexName: analyses, name: "", organization: "", country: "",
     token: "", username: "", password: "", timeout: 30s, pageSize: 500, concurrency: 4, mappingFile: "",
     song: {states: [PUBLISHED]}, lyric: {categoryId: "", validOnly: true}, exclude: {donors: []},
     notifications: {kafka: {brokers: [], topic: "", group: tutti}, webhook: {secret: ""}}, reconcile: {every: 0s}}
catalogues: {dir: "", disableGraphQLIntrospection: ~}
schemas: {enforceLatest: true, defaultOptions: {}, externalValidations: {allowedHosts: [], timeout: 5s}, storage: {url: "", token: "", timeout: 30s}}   # empty = any public address
ingest: {kafka: {brokers: [], requestTopic: maestro_index_requests, group: tutti}}
mcp: {requestsPerMinute: 300}
auth: {mode: none, allowInsecure: false, systemScope: tutti, organizationPrefix: "", writeSuffix: ".WRITE", readSuffix: ".READ", allowHttp: false,
       jwt: {jwksUrl: "", publicKeyFile: "", issuer: "", audience: "", anyIssuer: false, anyAudience: false, roles: false},
       introspection: {url: "", clientId: "", clientSecret: "", tokenParameter: token}, uma: {tokenUrl: "", clientId: ""}}
tracing: {endpoint: "", headers: "", sampleRatio: 1, serviceName: tutti}
`

func parse(t *testing.T, file string, environ ...string) config.Config {
	t.Helper()
	c, err := config.Parse([]byte(file), environ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	if diff := cmp.Diff(parse(t, documented), parse(t, least)); diff != "" {
		t.Errorf("documented, actual: %s", diff)
	}
	want := config.Config{
		Server:      config.Server{Listen: "127.0.0.1:8080", MaxBodyBytes: 10 << 20, MaxBytesInFlight: 256 << 20, StartTimeout: time.Minute, ShutdownTimeout: 10 * time.Second},
		DataDir:     "./tutti-data",
		Log:         config.Log{Level: "info", Format: "text"},
		Queue:       config.Queue{MaxPending: 200_000},
		DeadLetters: config.DeadLetters{MaxBodies: 10_000},
		Index:       config.Index{AWS: config.AWS{Service: "es"}, Shards: 1, Replicas: 1, BatchBytes: 2 << 20, MaxInFlight: 4, Priority: config.PrioritySearches, MaxRecordBytes: 32 << 20, Limits: config.IndexLimits{NestedObjects: 100_000, NestedFields: 200, Fields: 5000}},
		Repositories: []config.Repository{{
			Code: "song.ca", Type: core.TypeSong, URL: "https://song.example.org", IndexName: "analyses",
			Timeout: 30 * time.Second, PageSize: 500, Concurrency: 4, GiveUpAfter: time.Hour, Documents: "record",
			Settings:      settings(song.Settings{States: []string{"PUBLISHED"}}, lyric.Settings{ValidOnly: true}),
			Exclude:       excluded(nil),
			Notifications: config.Notifications{Kafka: config.KafkaTopic{Group: "tutti"}},
		}},
		Schemas: defaultSchemas(),
		Ingest:  config.Ingest{Kafka: config.RequestTopic{RequestTopic: "maestro_index_requests", Group: "tutti"}},
		Auth: config.Auth{
			Mode: "none", DefaultAccess: "public", SystemScope: "tutti", WriteSuffix: ".WRITE", ReadSuffix: ".READ",
			Introspection: config.Introspection{TokenParameter: "token"},
		},
		MCP:     config.MCP{RequestsPerMinute: 300},
		Service: config.Service{Name: "tutti"},
		Tracing: config.Tracing{SampleRatio: 1, ServiceName: "tutti"},
	}
	if diff := cmp.Diff(want, parse(t, least)); diff != "" {
		t.Error(diff)
	}
	r := want.Repositories[0]
	r.Code, r.Type, r.URL, r.IndexName = "", "", "", ""
	if diff := cmp.Diff(r, config.DefaultRepository()); diff != "" {
		t.Error("default repository:", diff)
	}
	r.Code, r.Type, r.IndexName = "local", core.TypeLocal, "analyses"
	want.Repositories = []config.Repository{r}
	if diff := cmp.Diff(want, config.Default()); diff != "" {
		t.Error("default:", diff)
	}
	for _, file := range []string{"", "repositories:", "repositories: []"} {
		if diff := cmp.Diff(want, parse(t, file)); diff != "" {
			t.Errorf("%q: %s", file, diff)
		}
	}
}

func defaultSchemas() config.Schemas {
	return config.Schemas{EnforceLatest: true, ValidationTimeout: 10 * time.Second, ExternalValidations: config.ExternalValidations{Timeout: 5 * time.Second}, Storage: config.Storage{Timeout: 30 * time.Second}}
}

func TestEveryKeyIsRead(t *testing.T) {
	dir := t.TempDir()
	yamlOf(t, dir, "mapping.json", ` {"properties":{}} `)
	yamlOf(t, dir, "token", "s3cret\r\n")
	yamlOf(t, dir, "database", "postgresql://u:s3cret@a:1,b:2/tutti?sslmode=require\n")
	yamlOf(t, dir, "key.pem", publicKey)
	yamlOf(t, dir, "headers", "Authorization=Basic%20s3cret\n")
	c := parse(t, strings.ReplaceAll(`
server: {listen: "[::1]:0", hosts: [a.example, "*"], basePath: /tutti, maxBodyBytes: 1, maxBytesInFlight: 1048576, tls: {certFile: a.crt, keyFile: a.key}, profiling: ":6060", startTimeout: 5s, shutdownDelay: 3s, shutdownTimeout: 1m30s,
  maxConnections: 200, maxConnectionsPerAddress: 20, trustedProxies: [10.0.0.7, "::ffff:10.1.2.3", "2001:db8::/32"], cors: {origins: ["https://a.example", "http://[::1]:3000"]}}
dataDir: /var/lib/tutti
log: {level: WARN, format: json}
queue: {url: "nats://a:4222, tls://b:4222", credentialsFile: c.creds, replicas: 3, maxPending: 5}
deadLetters: {maxBodies: 7}
index: {url: "https://a:9200,http://b:9200", username: elastic, password: "p w", caFile: ca.pem, clientCertFile: c.pem, clientKeyFile: c.key, serverName: es.example, shards: 2, replicas: 0, batchBytes: 4096, maxInFlight: 64, priority: indexing, maxRecordBytes: 104857600, limits: {nestedObjects: 7, nestedFields: 8, fields: 900}}
repositories:
  - {code: 1.a_B-c, type: song, url: http://localhost:8080/base, indexName: "ünïcode", name: N, organization: O, country: CA,
     tokenFile: DIR/token, timeout: 500ms, pageSize: 10000, concurrency: 64, upstream: {giveUpAfter: 10m}, documents: analysis, mappingFile: DIR/mapping.json,
     song: {states: [PUBLISHED, UNPUBLISHED]},
     exclude: {organizations: [S1], analyses: [A1, A2], files: [F1], donors: [DO1], specimens: [SP1], samples: ["1"]},
     notifications: {kafka: {brokers: ["k1:9092", "[::1]:9093"], group: g}, webhook: {secretFile: DIR/token}}, reconcile: {every: 10s}}
  - {code: l, type: lyric, url: "http://lyric", indexName: l, lyric: {categoryId: 2, validOnly: no}, exclude: {organizations: [O1], records: [R1]},
     notifications: {kafka: {brokers: ["k:1"], topic: lyric.events}, webhook: {secret: w}}}
  - {code: own, type: local, indexName: own, name: N, organization: O, country: CA, pageSize: 2, concurrency: 1,
     mappingFile: DIR/mapping.json, song: {states: [PUBLISHED, UNPUBLISHED, SUPPRESSED]}, reconcile: {every: 1h}}
store: {urlFile: DIR/database, caFile: d.pem, clientCertFile: d.crt, clientKeyFile: d.key, serverName: db.example}
service: {id: org.example.portal, name: Portal, description: D, environment: test, contactUrl: "mailto:a@example.org", organization: {name: Example, url: "https://example.org"}}
tracing: {endpoint: "https://otel.example.org/x", headersFile: DIR/headers, sampleRatio: 0.25, serviceName: tutti-eu, caFile: o.pem, serverName: otel.example}
schemas:
  enforceLatest: no
  validationTimeout: 1m
  defaultOptions:
    fileTypes: [BAM, CRAM]
    externalValidations:
      - {url: "https://ids.example.org/{study}/{value}?a=@", jsonPath: "$.experiment.donors[*].id"}
      - {url: "http://other", jsonPath: a}
  externalValidations: {allowedHosts: [a.example, "b:8080", 10.0.0.7, "10.0.0.7:1", "::1", "[::1]", "[::1]:65535"], timeout: 100ms, caFile: v.pem, clientCertFile: c.pem, clientKeyFile: c.key}
  storage: {url: "https://score.example.org/base", tokenFile: DIR/token, timeout: 1m30s, caFile: s.pem, serverName: score.example}
ingest: {kafka: {brokers: ["k:9092"], requestTopic: requests, group: i}}
auth: {mode: token, allowInsecure: yes, defaultAccess: deny, systemScope: all, organizationPrefix: "org:", writeSuffix: "/w", readSuffix: "/r",
  allowHttp: yes, jwt: {publicKeyFile: DIR/key.pem, issuer: "https://id.example.org", anyAudience: yes, roles: yes},
  introspection: {url: "http://ego/check", clientId: c, clientSecret: s, tokenParameter: apiKey, caFile: i.pem}, uma: {tokenUrl: "http://keycloak/token", clientId: d, caFile: u.pem}}
mcp: {requestsPerMinute: 60}
`, "DIR", dir))
	want := config.Config{
		Server: config.Server{
			Listen: "[::1]:0", Hosts: []string{"a.example", "*"}, BasePath: "/tutti", MaxBodyBytes: 1,
			MaxBytesInFlight: 1 << 20, MaxConnections: 200, MaxConnectionsPerAddress: 20,
			TrustedProxies:  []string{"10.0.0.7", "::ffff:10.1.2.3", "2001:db8::/32"},
			TLS:             config.TLS{CertFile: "a.crt", KeyFile: "a.key"},
			Profiling:       ":6060",
			StartTimeout:    5 * time.Second,
			ShutdownDelay:   3 * time.Second,
			ShutdownTimeout: 90 * time.Second,
			CORS:            config.CORS{Origins: []string{"https://a.example", "http://[::1]:3000"}},
		},
		DataDir:     "/var/lib/tutti",
		Log:         config.Log{Level: "warn", Format: "json"},
		Queue:       config.Queue{URL: "nats://a:4222, tls://b:4222", CredentialsFile: "c.creds", Replicas: 3, MaxPending: 5},
		DeadLetters: config.DeadLetters{MaxBodies: 7},
		Index: config.Index{
			URL: "https://a:9200,http://b:9200", Username: "elastic", Password: "p w", AWS: config.AWS{Service: "es"}, TLS: config.ClientTLS{CAFile: "ca.pem", ClientCertFile: "c.pem", ClientKeyFile: "c.key", ServerName: "es.example"}, Shards: 2,
			BatchBytes: 4096, MaxInFlight: 64, Priority: config.PriorityIndexing, MaxRecordBytes: 100 << 20, Limits: config.IndexLimits{NestedObjects: 7, NestedFields: 8, Fields: 900},
		},
		Repositories: []config.Repository{{
			Code: "1.a_B-c", Type: core.TypeSong, URL: "http://localhost:8080/base", IndexName: "ünïcode", Name: "N",
			Organization: "O", Country: "CA", Token: "s3cret", Timeout: 500 * time.Millisecond, PageSize: 10_000, Concurrency: 64, GiveUpAfter: 10 * time.Minute, Documents: "analysis",
			MappingFile: dir + "/mapping.json", Mapping: []byte(`{"properties":{}}`),
			Settings: settings(song.Settings{States: []string{"PUBLISHED", "UNPUBLISHED"}}, lyric.Settings{ValidOnly: true}),
			Exclude: excluded(map[string][]string{
				"organizations": {"S1"}, "analyses": {"A1", "A2"}, "files": {"F1"}, "donors": {"DO1"}, "specimens": {"SP1"}, "samples": {"1"},
			}),
			Notifications: config.Notifications{
				Kafka:   config.KafkaTopic{KafkaConnection: config.KafkaConnection{Brokers: []string{"k1:9092", "[::1]:9093"}}, Topic: "song-analysis", Group: "g"},
				Webhook: config.Webhook{Secret: "s3cret"},
			},
			Reconcile: config.Reconcile{Every: 10 * time.Second},
		}, {
			Code: "l", Type: core.TypeLyric, URL: "http://lyric", IndexName: "l", Timeout: 30 * time.Second, PageSize: 500,
			Concurrency: 4, GiveUpAfter: time.Hour, Documents: "record",
			Settings: settings(song.Settings{States: []string{"PUBLISHED"}}, lyric.Settings{CategoryID: "2"}),
			Exclude:  excluded(map[string][]string{"organizations": {"O1"}, "records": {"R1"}}),
			Notifications: config.Notifications{
				Kafka:   config.KafkaTopic{KafkaConnection: config.KafkaConnection{Brokers: []string{"k:1"}}, Topic: "lyric.events", Group: "tutti"},
				Webhook: config.Webhook{Secret: "w"},
			},
		}, {
			Code: "own", Type: core.TypeLocal, IndexName: "own", Name: "N", Organization: "O", Country: "CA", Timeout: 30 * time.Second,
			PageSize: 2, Concurrency: 1, GiveUpAfter: time.Hour, Documents: "record", MappingFile: dir + "/mapping.json", Mapping: []byte(`{"properties":{}}`),
			Settings:      settings(song.Settings{States: []string{"PUBLISHED", "UNPUBLISHED", "SUPPRESSED"}}, lyric.Settings{ValidOnly: true}),
			Exclude:       excluded(nil),
			Notifications: config.Notifications{Kafka: config.KafkaTopic{Group: "tutti"}},
			Reconcile:     config.Reconcile{Every: time.Hour},
		}},
		Store: config.Store{
			URL: "postgresql://u:s3cret@a:1,b:2/tutti?sslmode=require",
			TLS: config.ClientTLS{CAFile: "d.pem", ClientCertFile: "d.crt", ClientKeyFile: "d.key", ServerName: "db.example"},
		},
		Schemas: config.Schemas{
			ValidationTimeout: time.Minute,
			DefaultOptions: datamodel.AnalysisOptions{
				FileTypes: []string{"BAM", "CRAM"},
				ExternalValidations: []datamodel.ExternalValidation{
					{URL: "https://ids.example.org/{study}/{value}?a=@", JSONPath: "$.experiment.donors[*].id"}, {URL: "http://other", JSONPath: "a"},
				},
			},
			ExternalValidations: config.ExternalValidations{
				AllowedHosts: []string{"a.example", "b:8080", "10.0.0.7", "10.0.0.7:1", "::1", "[::1]", "[::1]:65535"}, Timeout: 100 * time.Millisecond,
				TLS: config.ClientTLS{CAFile: "v.pem", ClientCertFile: "c.pem", ClientKeyFile: "c.key"},
			},
			Storage: config.Storage{URL: "https://score.example.org/base", Token: "s3cret", Timeout: 90 * time.Second, TLS: config.ClientTLS{CAFile: "s.pem", ServerName: "score.example"}},
		},
		Service: config.Service{
			ID: "org.example.portal", Name: "Portal", Description: "D", Environment: "test", ContactURL: "mailto:a@example.org",
			Organization: struct {
				Name string
				URL  setting.URL
			}{"Example", "https://example.org"},
		},
		Tracing: config.Tracing{
			Endpoint: "https://otel.example.org/x", Headers: "Authorization=Basic%20s3cret", SampleRatio: 0.25, ServiceName: "tutti-eu",
			TLS: config.ClientTLS{CAFile: "o.pem", ServerName: "otel.example"},
		},
		Ingest: config.Ingest{Kafka: config.RequestTopic{KafkaConnection: config.KafkaConnection{Brokers: []string{"k:9092"}}, RequestTopic: "requests", Group: "i"}},
		Auth: config.Auth{
			Mode: "token", AllowInsecure: true, DefaultAccess: "deny", SystemScope: "all", OrganizationPrefix: "org:", WriteSuffix: "/w", ReadSuffix: "/r",
			JWT: config.JWT{
				PublicKeyFile: dir + "/key.pem", PublicKey: []byte(strings.TrimSpace(publicKey)), Issuer: "https://id.example.org", AnyAudience: true, Roles: true,
			},
			AllowHTTP:     true,
			Introspection: config.Introspection{URL: "http://ego/check", ClientID: "c", ClientSecret: "s", TokenParameter: "apiKey", TLS: config.ClientTLS{CAFile: "i.pem"}},
			UMA:           config.UMA{TokenURL: "http://keycloak/token", ClientID: "d", TLS: config.ClientTLS{CAFile: "u.pem"}},
		},
		MCP: config.MCP{RequestsPerMinute: 60},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"https://a:9200", "http://b:9200"}, c.Index.URLs()); diff != "" {
		t.Error(diff)
	}
	core1 := core.Repository{
		Fields: core.RecordFields{
			ID: "analysisId", Organization: "studyId", State: "state", Updated: "analysis.updatedAt", Unordered: []string{"analysis.files.*", "analysis.samples.*"},
		},
		Code: "1.a_B-c", Type: core.TypeSong, URL: "http://localhost:8080/base", IndexName: "ünïcode",
		Name: "N", Organization: "O", Country: "CA",
	}
	if diff := cmp.Diff(core1, c.Repositories[0].Core()); diff != "" {
		t.Error(diff)
	}
	if c.Log.SlogLevel() != slog.LevelWarn {
		t.Errorf("level %v", c.Log.SlogLevel())
	}
}

func yamlOf(t *testing.T, dir, name, content string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// lyricFile is repository for type lyric.
func lyricFile(members string) string {
	return strings.Replace(repository(members), "type: song", "type: lyric", 1)
}

// repository returns a file with one repository with additional members.
func repository(members string) string { return strings.Replace(least, "}]", ", "+members+"}]", 1) }

func TestErrorsNameTheirKey(t *testing.T) {
	dir := t.TempDir()
	array, broken, empty, object := yamlOf(t, dir, "array.json", "[]"), yamlOf(t, dir, "broken.json", "{"), yamlOf(t, dir, "empty", "\n"), yamlOf(t, dir, "object.json", "{}")
	two := func(second string) string { return strings.Replace(least, "}]", "}, "+second+"]", 1) }
	for name, tt := range map[string]struct {
		file string
		want string // the complete message of the only error
		hint string // a part of its hint
	}{
		"unknown key":            {least + "\nserver: {port: 1}", "server.port: unknown key; the nearest valid key is server.cors (line 2)", ""},
		"unknown near key":       {least + "\nserver: {basepath: /a}", "server.basepath: unknown key; the nearest valid key is server.basePath (line 2)", ""},
		"unknown top key":        {least + "\nindexes: {url: x}", "indexes: unknown key; the nearest valid key is index (line 2)", ""},
		"key of a later version": {least + "\nnetwork: {dir: x}", "network: unknown key; the nearest valid key is", ""},
		"unknown in a list":      {repository("pagesize: 5"), "repositories[0].pagesize: unknown key; the nearest valid key is repositories[0].pageSize (line 1)", ""},
		"unknown in an object":   {repository("song: {state: [A]}"), "repositories[0].song.state: unknown key; the nearest valid key is repositories[0].song.states", ""},
		"lyric's keys":           {repository("lyric: {categoryId: 1}"), "repositories[0].lyric: does not apply to type song", "use type lyric"},
		"lyric's flag":           {repository("lyric: {validOnly: no}"), "repositories[0].lyric: does not apply to type song", ""},
		"lyric's flag wrong":     {repository("lyric: {validOnly: maybe}"), `repositories[0].lyric.validOnly: must be true or false, not "maybe" (line 1)`, ""},
		"lyric near key":         {repository("lyric: {category: '1'}"), "repositories[0].lyric.category: unknown key; the nearest valid key is repositories[0].lyric.categoryId (line 1)", ""},
		"no category":            {lyricFile(""), "repositories[0].lyric.categoryId: is required for type lyric", "set the id of a category of the repository, such as 1"},
		"category":               {lyricFile("lyric: {categoryId: a/b}"), `repositories[0].lyric.categoryId: "a/b" is not a category's id`, ""},
		"category as boolean":    {lyricFile("lyric: {categoryId: yes}"), "", ""},
		"category as fraction":   {lyricFile("lyric: {categoryId: 1.5}"), "repositories[0].lyric.categoryId: must be a text, not 1.5 (line 1)", "quotes"},
		"song's keys":            {lyricFile("lyric: {categoryId: 1}, song: {states: [A]}"), "repositories[0].song: does not apply to type lyric", "use type song"},
		"a lyric's files":        {lyricFile("lyric: {categoryId: 1}, documents: file"), "repositories[0].documents: file does not apply to type lyric", "only analyses"},
		"a lyric's analyses":     {lyricFile("lyric: {categoryId: 1}, documents: analysis"), "repositories[0].documents: analysis does not apply to type lyric", "remove it"},
		"unknown documents":      {repository("documents: files"), "repositories[0].documents: must be one of record, analysis, file, file-v4, not \"files\"", "file"},
		"song's default":         {lyricFile("lyric: {categoryId: 1}, song: {states: [PUBLISHED]}"), "", ""},
		"origin with path":       {least + "\nserver: {cors: {origins: ['https://a/']}}", `server.cors.origins[0]: "https://a/" is not an origin`, ""},
		"origin without scheme":  {least + "\nserver: {cors: {origins: ['*', 'a.example']}}", `server.cors.origins[1]: "a.example" is not an origin`, ""},
		"origin near key":        {least + "\nserver: {cors: {origin: []}}", "server.cors.origin: unknown key; the nearest valid key is server.cors.origins (line 2)", ""},
		"broker without port":    {repository("notifications: {kafka: {brokers: [a]}}"), `repositories[0].notifications.kafka.brokers[0]: "a" is not host:port (line 1)`, ""},
		"broker's port":          {repository("notifications: {kafka: {brokers: ['a:1', 'b:65536']}}"), `repositories[0].notifications.kafka.brokers[1]: "b:65536" is not host:port`, "9092"},
		"broker as URL":          {repository("notifications: {kafka: {brokers: ['kafka://u:s3cret@a:1']}}"), `repositories[0].notifications.kafka.brokers[0]: "kafka://********@a:1" is not host:port`, ""},
		"topic alone":            {repository("notifications: {kafka: {topic: t}}"), "repositories[0].notifications.kafka.brokers: is missing, but a topic is set", "remove the topic"},
		"topic":                  {repository("notifications: {kafka: {brokers: ['a:1'], topic: 'a b'}}"), `repositories[0].notifications.kafka.topic: "a b" is not a topic's name`, ""},
		"lyric's topic wrong":    {lyricFile("lyric: {categoryId: 1}, notifications: {kafka: {brokers: ['a:1'], topic: 'a b'}}"), `repositories[0].notifications.kafka.topic: "a b" is not a topic's name`, ""},
		"category empty":         {lyricFile("lyric: {categoryId: ''}"), "repositories[0].lyric.categoryId: is required for type lyric", ""},
		"lyric without topic":    {lyricFile("lyric: {categoryId: 1}, notifications: {kafka: {brokers: ['a:1']}}"), "repositories[0].notifications.kafka.topic: is missing, but brokers are set", "no default name"},
		"no group":               {repository("notifications: {kafka: {brokers: ['a:1'], group: ''}}"), "repositories[0].notifications.kafka.group: is empty (line 1)", ""},
		"webhook twice":          {repository("notifications: {webhook: {secret: s3cret, secretFile: b}}"), "repositories[0].notifications.webhook.secret: is set in addition to repositories[0].notifications.webhook.secretFile (line 1)", ""},
		"reconcile too often":    {repository("reconcile: {every: 9s}"), "repositories[0].reconcile.every: must be at least 10s, not 9s (line 1)", "0s turns it off"},
		"reconcile backwards":    {repository("reconcile: {every: -1h}"), "repositories[0].reconcile.every: must be at least 10s, not -1h (line 1)", ""},
		"request topic":          {least + "\ningest: {kafka: {brokers: ['a:1'], requestTopic: ''}}", "ingest.kafka.requestTopic: is empty (line 2)", ""},
		"request broker":         {least + "\ningest: {kafka: {brokers: ['a:0']}}", `ingest.kafka.brokers[0]: "a:0" is not host:port`, ""},
		"ingest near key":        {least + "\ningest: {kafka: {topic: a}}", "ingest.kafka.topic: unknown key; the nearest valid key is ingest.kafka.tls (line 2)", ""},
		"key twice":              {least + "\nlog: {level: info}\nlog: {level: warn}", "log: the key is set twice (line 3)", "remove one"},
		"number for text":        {repository("name: 12"), "repositories[0].name: must be a text, not 12 (line 1)", "quotes"},
		"boolean for text":       {repository("country: no"), "", ""},
		"text for number":        {repository("pageSize: many"), `repositories[0].pageSize: must be a whole number from 2 to 10000, not "many" (line 1)`, ""},
		"quoted number":          {repository(`pageSize: "5"`), `repositories[0].pageSize: must be a whole number from 2 to 10000, not "5" (line 1)`, ""},
		"fraction":               {repository("pageSize: 5.5"), `repositories[0].pageSize: must be a whole number from 2 to 10000, not "5.5" (line 1)`, ""},
		"page too small":         {repository("pageSize: 1"), "repositories[0].pageSize: 1 is out of range, must be a whole number from 2 to 10000 (line 1)", ""},
		"page too large":         {repository("pageSize: 10001"), "repositories[0].pageSize: 10001 is out of range", ""},
		"concurrency":            {repository("concurrency: 65"), "repositories[0].concurrency: 65 is out of range, must be a whole number from 1 to 64 (line 1)", ""},
		"overflow":               {least + "\nserver: {maxBodyBytes: 99999999999999999999}", `server.maxBodyBytes: must be a whole number of at least 1, not "99999999999999999999" (line 2)`, ""},
		"no body at all":         {least + "\nserver: {maxBodyBytes: 0}", "server.maxBodyBytes: 0 is out of range, must be a whole number of at least 1 (line 2)", ""},
		"object for text":        {repository("name: {a: b}"), "repositories[0].name: must be a text, not an object (line 1)", ""},
		"text for object":        {least + "\nlog: debug", "log: must be an object, not a single value (line 2)", ""},
		"object for list":        {least + "\nserver: {hosts: {a: b}}", "server.hosts: must be a list of texts, not an object (line 2)", ""},
		"text for list":          {least + "\nserver: {hosts: a}", "server.hosts: must be a list of texts, not a single value (line 2)", ""},
		"list in list":           {least + "\nserver: {hosts: [[a]]}", "server.hosts[0]: must be a text, not a list (line 2)", ""},
		"repositories as object": {"repositories: {code: a}", "repositories: must be a list of objects, not an object (line 1)", ""},
		"repository as text":     {strings.Replace(least, "}]", "}, song.jp]", 1), "repositories[1]: must be an object, not a single value (line 1)", ""},
		"boolean":                {least + "\nauth: {allowInsecure: maybe}", `auth.allowInsecure: must be true or false, not "maybe" (line 2)`, "yes or no"},
		"duration without unit":  {repository("timeout: 30"), `repositories[0].timeout: must be a duration, not "30" (line 1)`, "unit"},
		"no time":                {repository("timeout: 0s"), "repositories[0].timeout: must be more than zero, not 0s (line 1)", ""},
		"negative time":          {least + "\nserver: {shutdownTimeout: -1s}", "server.shutdownTimeout: must be more than zero, not -1s (line 2)", ""},
		"level":                  {least + "\nlog: {level: warning}", `log.level: must be one of debug, info, warn, error, not "warning" (line 2)`, "warn"},
		"level of a word":        {least + "\nlog: {level: information}", `log.level: must be one of debug, info, warn, error, not "information" (line 2)`, "did you mean info?"},
		"level abbreviated":      {least + "\nlog: {level: err}", `log.level: must be one of debug, info, warn, error, not "err" (line 2)`, "did you mean error?"},
		"format in capitals":     {least + "\nlog: {format: JSON}", `log.format: must be one of text, json, not "JSON" (line 2)`, "json"},
		"listen without port":    {least + "\nserver: {listen: localhost}", `server.listen: "localhost" is not host:port (line 2)`, "127.0.0.1:8080"},
		"port too high":          {least + "\nserver: {listen: 'localhost:65536'}", `server.listen: "localhost:65536" is not host:port (line 2)`, ""},
		"profiling":              {least + "\nserver: {profiling: '6060'}", `server.profiling: "6060" is not host:port (line 2)`, ":6060"},
		"certificate alone":      {least + "\nserver: {tls: {certFile: a}}", "server.tls.keyFile: is missing (line 2)", "the file of the certificate's private key"},
		"key alone":              {least + "\nserver: {tls: {keyFile: a}}", "server.tls.certFile: is missing (line 2)", "the file of the certificate"},
		"listen empty":           {least + "\nserver: {listen: ''}", "server.listen: is empty (line 2)", ""},
		"public address":         {least + "\nserver: {listen: '0.0.0.0:8080'}", "server.listen: 0.0.0.0:8080 can be reached from other machines, and auth.mode none requires no token (line 2)", "auth.mode: token"},
		"all addresses":          {least + "\nserver: {listen: ':8080'}", "server.listen: :8080 can be reached", ""},
		"public name":            {least + "\nserver: {listen: 'example.org:80'}", "server.listen: example.org:80 can be reached", ""},
		"base path":              {least + "\nserver: {basePath: tutti}", `server.basePath: "tutti" is not a plain path that starts with / (line 2)`, ""},
		"a proxy":                {least + "\nserver: {trustedProxies: [10.0.0.1, proxy]}", `server.trustedProxies[1]: "proxy" is neither an address nor a CIDR network`, ""},
		"a network":              {least + "\nserver: {trustedProxies: [10.0.0.0/33]}", `server.trustedProxies[0]: "10.0.0.0/33" is neither an address nor a CIDR network`, ""},
		"base path with a hole":  {least + "\nserver: {basePath: /a//b}", `server.basePath: "/a//b" has an empty segment (line 2)`, ""},
		"host with scheme":       {least + "\nserver: {hosts: ['http://a']}", `server.hosts[0]: "http://a" is not a host name`, ""},
		"replicas below zero":    {least + "\nqueue: {replicas: -1}", "queue.replicas: -1 is out of range, must be a whole number from 0 to 5 (line 2)", ""},
		"replicas alone":         {least + "\nqueue: {replicas: 3}", "queue.replicas: the embedded queue has one server, 3 replicas need a cluster", "queue.url"},
		"credentials alone":      {least + "\nqueue: {credentialsFile: a}", "queue.credentialsFile: the embedded queue has no credentials", "queue.url"},
		"queue url":              {least + "\nqueue: {url: 'http://user:s3cret@a'}", `queue.url: "http://********@a" is not a NATS URL`, "nats://"},
		"index url":              {least + "\nindex: {url: 'localhost:9200'}", `index.url: "localhost:9200" is not an absolute http or https URL`, ""},
		"index url with user":    {least + "\nindex: {url: 'http://u:s3cret@localhost:9200'}", "index.url: the URL contains credentials", "index.username"},
		"signed twice":           {least + "\nindex: {url: 'http://a', apiKey: s3cret, aws: {region: eu-west-1}}", "index.aws: is set in addition to a username, a password or an API key", "keep one"},
		"signed nowhere":         {least + "\nindex: {url: 'http://a', aws: {service: aoss}}", "index.aws.region: is missing, but a service is set", "eu-west-1"},
		"another service":        {least + "\nindex: {url: 'http://a', aws: {region: r, service: s3}}", "index.aws.service: must be one of es, aoss", ""},
		"signed to no engine":    {least + "\nindex: {aws: {region: eu-west-1}}", "index.url: is empty", "set index.url"},
		"two ways":               {least + "\nindex: {url: 'http://a', username: u, password: s3cret, apiKey: s3cret}", "index.apiKey: is set in addition to a username or password", "keep one"},
		"password alone":         {least + "\nindex: {url: 'http://a', password: s3cret}", "index.username: is missing, but a password is set", ""},
		"username alone":         {repository("username: u"), "repositories[0].password: is missing, but a username is set", ""},
		"token and user":         {repository("username: u, password: s3cret, token: s3cret"), "repositories[0].token: is set in addition to a username or password", ""},
		"embedded with key":      {least + "\nindex: {apiKey: s3cret}", "index.url: is empty, but the embedded index has no credentials", ""},
		"index replicas":         {least + "\nindex: {replicas: -1}", "index.replicas: -1 is out of range, must be a whole number from 0 to 100 (line 2)", ""},
		"secret as number":       {repository("token: 54321"), "repositories[0].token: must be a text, not ******** (line 1)", "quotes"},
		"secret twice":           {repository("token: a, tokenFile: b"), "repositories[0].token: is set in addition to repositories[0].tokenFile (line 1)", ""},
		"secret file absent":     {repository("tokenFile: " + dir + "/none"), "repositories[0].tokenFile: " + dir + "/none cannot be read: no such file or directory (line 1)", ""},
		"secret file empty":      {repository("tokenFile: " + empty), "repositories[0].tokenFile: " + empty + " is empty (line 1)", ""},
		"mapping absent":         {repository("mappingFile: " + dir + "/none"), "repositories[0].mappingFile: " + dir + "/none cannot be read: no such file or directory", ""},
		"mapping broken":         {repository("mappingFile: " + broken), "repositories[0].mappingFile: " + broken + " is not JSON", ""},
		"mapping empty":          {repository("mappingFile: " + empty), "repositories[0].mappingFile: " + empty + " is not JSON", ""},
		"mapping as array":       {repository("mappingFile: " + array), "repositories[0].mappingFile: " + array + " does not contain a JSON object", ""},
		"no states":              {repository("song: {states: []}"), "repositories[0].song.states: the list is empty (line 1)", ""},
		"empty state":            {repository("song: {states: ['']}"), "repositories[0].song.states[0]: is empty (line 1)", ""},
		"state with comma":       {repository("song: {states: ['A,B']}"), `repositories[0].song.states[0]: "A,B" is not an analysis state`, ""},
		"one code twice":         {two(`{code: song.ca, type: song, url: "http://a", indexName: b}`), `repositories[1].code: "song.ca" is also the code of repositories[0]`, ""},
		"one index, two files":   {two(`{code: song.jp, type: song, url: "http://a", indexName: analyses, mappingFile: ` + object + `}`), `repositories[1].mappingFile: "` + object + `" is not that of repositories[0], "", which shares the index analyses`, ""},
		"not keys":               {"- a", "the file contains a list instead of keys (line 1)", ""},
		"two documents":          {least + "\n---\na: b", "the file contains more than one YAML document", ""},
		"not YAML":               {"a: [", "the file is not YAML: line 1: did not find expected node content", ""},
		"data folder":            {least + "\ndataDir: ''", "dataDir: is empty (line 2)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse([]byte(tt.file), nil)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantErrors(t, err, tt.want)
			if f := setting.Errors(err); len(f) == 1 && !strings.Contains(f[0].Hint, tt.hint) {
				t.Errorf("hint: got %q, want it to hold %q", f[0].Hint, tt.hint)
			}
		})
	}
}

// wantErrors compares the messages of err with the prefixes in want; none may contain a secret.
func wantErrors(t *testing.T, err error, want ...string) {
	t.Helper()
	got := setting.Errors(err)
	var messages []string
	for _, f := range got {
		messages = append(messages, f.Message)
		if f.Code != core.CodeInvalid && f.Code != core.CodeUnsupported {
			t.Errorf("%s: code %s", f.Message, f.Code)
		}
		if strings.Contains(f.Message+f.Hint, "s3cret") || strings.Contains(f.Message, "54321") {
			t.Errorf("a secret is shown: %s", f.Message)
		}
	}
	if !slices.EqualFunc(messages, want, strings.HasPrefix) {
		t.Errorf("faults:\n%s\nwant:\n%s", strings.Join(messages, "\n"), strings.Join(want, "\n"))
	}
}

func TestRepositoryKeys(t *testing.T) {
	file := `repositories: [{code: %s, type: song, url: %q, indexName: %s}]`
	url, index := "http://a", "analyses"
	for code, ok := range map[string]bool{
		"a": true, "A.b_c-d": true, "9": false, "'9'": true, "'-a'": false, "'.a'": false, "'..'": false, "'a b'": false, "'a/b'": false,
		"'é'": false, "''": false, strings.Repeat("x", 512): true, strings.Repeat("x", 513): false,
	} {
		if _, err := config.Parse(fmt.Appendf(nil, file, code, url, index), nil); (err == nil) != ok {
			t.Errorf("code %s: %v", code, err)
		}
	}
	for url, ok := range map[string]bool{
		"https://a.example/base/": true, "HTTP://A:1": true, "http://[::1]:80": true, "ftp://a": false, "a.example": false, "/a": false,
		"http://": false, "http://u:p@a": false, "http://a?b": false, "http://a#b": false, "http://a b": false, "http://:80": false, "": false,
	} {
		if _, err := config.Parse(fmt.Appendf(nil, file, "a", url, index), nil); (err == nil) != ok {
			t.Errorf("url %s: %v", url, err)
		} else if err != nil && len(setting.Errors(err)) != 1 {
			t.Errorf("url %s: more than one fault: %v", url, err)
		}
	}
	for index, ok := range map[string]bool{
		"a": true, "a_b-c.d+1": true, "日本": true, "Analyses": false, "'_a'": false, "'-a'": false, "'+a'": false, "'.a'": false, "'..'": false,
		"'a b'": false, "'a,b'": false, "'a*'": false, "'a/b'": false, "'a#b'": false, "'a:b'": false, "'a\"b'": false, "'a--next'": false,
		"''": false, strings.Repeat("x", 234): true, strings.Repeat("x", 235): false,
	} {
		if _, err := config.Parse(fmt.Appendf(nil, file, "a", url, index), nil); (err == nil) != ok {
			t.Errorf("index %s: %v", index, err)
		}
	}
}

// TestSharedIndexIsAccepted: repositories of any types may have the same index.
func TestSharedIndexIsAccepted(t *testing.T) {
	cfg, err := config.Parse([]byte(strings.Replace(least, "}]", "}, {code: own, type: local, indexName: analyses}]", 1)), nil)
	if err != nil || len(cfg.Repositories) != 2 || cfg.Repositories[1].IndexName != "analyses" {
		t.Errorf("%+v, %v", cfg.Repositories, err)
	}
}

func TestChoicesThatAreOffered(t *testing.T) {
	typed := func(kind string) string {
		return "repositories: [{" + kind + "code: a, url: 'http://a', indexName: a}]"
	}
	for name, tt := range map[string]struct{ file, message, hint string }{
		"level that is none":     {least + "\nlog: {level: verbose}", `log.level: must be one of debug, info, warn, error, not "verbose" (line 2)`, ""},
		"level of other loggers": {least + "\nlog: {level: trace}", `log.level: must be one of debug, info, warn, error, not "trace" (line 2)`, ""},
		"no level":               {least + "\nlog: {level: ''}", `log.level: must be one of debug, info, warn, error, not "" (line 2)`, ""},
		"near type":              {typed("type: sing, "), `repositories[0].type: must be one of song, lyric, local, not "sing" (line 1)`, "did you mean song?"},
		"type near local":        {typed("type: locale, "), `repositories[0].type: must be one of song, lyric, local, not "locale" (line 1)`, "did you mean local?"},
		"no type":                {typed(""), "repositories[0].type: is missing", "use song or lyric or local"},
		"empty type":             {typed("type: '', "), "repositories[0].type: is empty (line 1)", "use song or lyric or local"},
		"mode":                   {least + "\nauth: {mode: tokens}", `auth.mode: must be one of none, token, not "tokens" (line 2)`, "did you mean token?"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse([]byte(tt.file), nil)
			found := setting.Errors(err)
			if len(found) != 1 || found[0].Message != tt.message || found[0].Hint != tt.hint {
				for _, f := range found {
					t.Errorf("got %q, hint %q", f.Message, f.Hint)
				}
				t.Errorf("want %q, hint %q", tt.message, tt.hint)
			}
		})
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, err := config.Parse([]byte(`
server: {listen: nowhere, por: 1}
log: {level: loud}
repositories:
  - {type: song, indexName: Analyses, url: x}
  - {code: b, type: sing, url: "http://b", indexName: b, pageSize: 0}
  -
`), []string{"TUTTI_QUEUE_REPLICAS=many", "TUTTI_LOGLEVEL_X=1"})
	wantErrors(t, err,
		"TUTTI_LOGLEVEL_X: unknown variable",
		"server.por: unknown key",
		"log.level: must be",
		"queue.replicas: must be",
		"repositories[0].code: is missing",
		`repositories[0].url: "x" is not`,
		`repositories[0].indexName: "Analyses" is not`,
		"repositories[1].type: must be",
		"repositories[1].pageSize: 0 is out of range",
		"repositories[2]: must be an object",
		`server.listen: "nowhere" is not host:port`,
	)
}

func TestPublicAddressesAreTakenWhenAllowed(t *testing.T) {
	c := parse(t, least+"\nserver: {listen: ':8080'}\nauth: {allowInsecure: true}")
	if c.Server.Loopback() {
		t.Error("all addresses count as loopback")
	}
	for _, listen := range []string{"localhost:1", "127.1.2.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "LOCALHOST:0"} {
		if c := parse(t, least, "TUTTI_SERVER_LISTEN="+listen); !c.Server.Loopback() {
			t.Errorf("%s does not count as loopback", listen)
		}
	}
}

func TestNullAndAnchors(t *testing.T) {
	c := parse(t, `
server:
log: {level: ~}
repositories:
  - &first {code: a, type: &song song, url: &url "http://a", indexName: a}
  - {code: b, type: *song, url: *url, indexName: b}
`)
	if c.Log.Level != "info" || c.Server.Listen != "127.0.0.1:8080" || c.Repositories[1].URL != "http://a" {
		t.Errorf("got %+v", c)
	}
}

func TestLoadReadsAFile(t *testing.T) {
	file := yamlOf(t, t.TempDir(), "tutti.yaml", least)
	c, err := config.Load(file, []string{"TUTTI_LOG_LEVEL=debug"})
	if err != nil || c.Log.Level != "debug" || len(c.Repositories) != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
	_, err = config.Load(file+".none", nil)
	if core.CodeOf(err) != core.CodeInvalid || err.Error() != "the configuration file "+file+".none cannot be read: no such file or directory" {
		t.Errorf("got %v", err)
	}
	if c, err = config.Load("", nil); err != nil || len(c.Repositories) != 1 || c.Repositories[0].Type != core.TypeLocal {
		t.Errorf("got %+v, %v", c, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		least, documented, "a: &a [*a]", "repositories: [{song: {states: x}}]", "- ", "{",
		"repositories: [{code: a, type: local, indexName: a}]\nstore: {url: postgres://u:p@a/b}", "auth: {mode: token, jwt: {jwksUrl: 'https://a', issuer: b, audience: c}}",
		"schemas: {defaultOptions: {fileTypes: [a], externalValidations: [{url: 'http://a/{value}@', jsonPath: a}]}, externalValidations: {allowedHosts: ['[::1]:1']}}",
		"? a", "<<: {a: b}",
	} {
		f.Add(seed, "TUTTI_REPOSITORIES_0_CODE=x")
		f.Add(seed, "MAESTRO_REPOSITORIES_0_URL=x")
		f.Add(seed, "ES_HOST=x")
		f.Add(seed, "DISABLE_GRAPHQL_INTROSPECTION=yes")
		f.Add(seed, "NODE_ENV=production")
	}
	f.Fuzz(func(t *testing.T, file, variable string) {
		c, err := config.Parse([]byte(file), []string{variable})
		if err != nil {
			if len(setting.Errors(err)) == 0 {
				t.Errorf("no fault in %v", err)
			}
			return
		}
		out, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range c.Repositories {
			if r.MappingFile != "" || r.Token+r.Password+r.Notifications.Webhook.Secret != "" {
				return // read from files, or masked
			}
		}
		if c.Index.Password+c.Index.APIKey != "" || strings.Contains(c.Queue.URL.Reveal(), "@") || c.Store.URL != "" {
			return
		}
		again, err := config.Parse(out, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		c.Warnings, c.Catalogues.Production = nil, false
		if diff := cmp.Diff(c, again); diff != "" {
			t.Error(diff)
		}
	})
}

func ExampleParse() {
	_, err := config.Parse([]byte(`repositories: [{code: song.ca, type: song, url: "https://song.example.org", indexname: analyses}]`), nil)
	for _, f := range setting.Errors(err) {
		fmt.Println(f.Message)
	}
	// Output:
	// repositories[0].indexname: unknown key; the nearest valid key is repositories[0].indexName (line 1)
	// repositories[0].indexName: is missing
}

// TestProxies: an address is a network with one address, also in IPv6 form.
func TestProxies(t *testing.T) {
	s := config.Server{TrustedProxies: []string{"10.0.0.7", "::ffff:10.1.2.3", "2001:db8::/32", "fe80::1%eth0", "nothing"}}
	if got, want := fmt.Sprint(s.Proxies()), "[10.0.0.7/32 10.1.2.3/32 2001:db8::/32 fe80::1/128]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func settings(s song.Settings, l lyric.Settings) map[string]upstream.Settings {
	return map[string]upstream.Settings{"song": &s, "lyric": &l}
}

// excluded returns the lists of all types, with the ids of some.
func excluded(ids map[string][]string) map[string]*[]string {
	lists := make(map[string]*[]string)
	for _, list := range []string{"organizations", "analyses", "files", "donors", "specimens", "samples", "records"} {
		of := ids[list]
		lists[list] = &of
	}
	return lists
}
