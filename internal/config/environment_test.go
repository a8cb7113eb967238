package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/config"
)

func TestEnvironmentAlone(t *testing.T) {
	dir := t.TempDir()
	password, database := yamlOf(t, dir, "password", "p\n"), yamlOf(t, dir, "database", "postgres://a\n")
	got := parse(t, "",
		"PATH=/bin", "=odd", "NAME",
		"TUTTI_SERVER_LISTEN=127.0.0.1:9", "TUTTI_SERVER_HOSTS= a.example , b.example,", "TUTTI_SERVER_MAX_BODY_BYTES=5",
		"TUTTI_SERVER_SHUTDOWNTIMEOUT=2m", "TUTTI_DATA_DIR=/d", "TUTTI_AUTH_ALLOW_INSECURE=YES",
		"TUTTI_INDEX_URL=http://es:9200", "TUTTI_INDEX_API_KEY=k=1",
		"TUTTI_REPOSITORIES_0_CODE=0123", "TUTTI_REPOSITORIES_0_TYPE=song", "TUTTI_REPOSITORIES_0_URL=http://a", "TUTTI_REPOSITORIES_0_INDEX_NAME=a",
		"TUTTI_REPOSITORIES_0_USERNAME=u", "TUTTI_REPOSITORIES_0_PASSWORD_FILE="+password, "TUTTI_REPOSITORIES_0_SONG_STATES=PUBLISHED,UNPUBLISHED",
		"TUTTI_REPOSITORIES_1_CODE=b", "TUTTI_REPOSITORIES_1_TYPE=song", "TUTTI_REPOSITORIES_1_URL=http://b", "TUTTI_REPOSITORIES_1_INDEXNAME=b",
		"TUTTI_REPOSITORIES_1_SONG_STATES_1=B", "TUTTI_REPOSITORIES_1_SONG_STATES_0=A",
		"TUTTI_REPOSITORIES_1_NOTIFICATIONS_KAFKA_BROKERS=k1:1, k2:2", "TUTTI_REPOSITORIES_1_NOTIFICATIONS_WEBHOOK_SECRET_FILE="+password,
		"TUTTI_REPOSITORIES_1_RECONCILE_EVERY=1h",
		"TUTTI_REPOSITORIES_2_CODE=c", "TUTTI_REPOSITORIES_2_TYPE=lyric", "TUTTI_REPOSITORIES_2_URL=http://c", "TUTTI_REPOSITORIES_2_INDEX_NAME=c",
		"TUTTI_REPOSITORIES_2_LYRIC_CATEGORY_ID=2", "TUTTI_REPOSITORIES_2_LYRIC_VALID_ONLY=no",
		"TUTTI_SERVER_CORS_ORIGINS=https://a,*",
		"TUTTI_STORE_URL_FILE="+database,
		"TUTTI_SCHEMAS_ENFORCE_LATEST=no", "TUTTI_SCHEMAS_DEFAULT_OPTIONS_FILE_TYPES=BAM,CRAM",
		"TUTTI_SCHEMAS_DEFAULT_OPTIONS_EXTERNAL_VALIDATIONS_0_URL=https://a/{value}", "TUTTI_SCHEMAS_DEFAULT_OPTIONS_EXTERNAL_VALIDATIONS_0_JSON_PATH=x.y",
		"TUTTI_SCHEMAS_EXTERNAL_VALIDATIONS_ALLOWED_HOSTS=a,b:1", "TUTTI_SCHEMAS_EXTERNAL_VALIDATIONS_TIMEOUT=1s",
		"TUTTI_AUTH_MODE=token", "TUTTI_AUTH_DEFAULT_ACCESS=public", "TUTTI_AUTH_SYSTEM_SCOPE=s", "TUTTI_AUTH_ORGANIZATION_PREFIX=o.", "TUTTI_AUTH_WRITE_SUFFIX=.W", "TUTTI_AUTH_READ_SUFFIX=.R",
		"TUTTI_AUTH_JWT_JWKS_URL=https://id", "TUTTI_AUTH_JWT_ISSUER=i", "TUTTI_AUTH_JWT_AUDIENCE=a",
		"TUTTI_INGEST_KAFKA_BROKERS_0=k1:1", "TUTTI_INGEST_KAFKA_BROKERS_1=k2:2", "TUTTI_INGEST_KAFKA_REQUEST_TOPIC=t",
	)
	want := parse(t, `
server: {listen: "127.0.0.1:9", hosts: [a.example, b.example], maxBodyBytes: 5, shutdownTimeout: 2m, cors: {origins: ["https://a", "*"]}}
dataDir: /d
auth: {allowInsecure: true, mode: token, defaultAccess: public, systemScope: s, organizationPrefix: o., writeSuffix: .W, readSuffix: .R,
  jwt: {jwksUrl: "https://id", issuer: i, audience: a}}
store: {url: "postgres://a"}
schemas: {enforceLatest: false, defaultOptions: {fileTypes: [BAM, CRAM], externalValidations: [{url: "https://a/{value}", jsonPath: x.y}]},
  externalValidations: {allowedHosts: [a, "b:1"], timeout: 1s}}
index: {url: "http://es:9200", apiKey: "k=1"}
repositories:
  - {code: "0123", type: song, url: "http://a", indexName: a, username: u, password: p, song: {states: [PUBLISHED, UNPUBLISHED]}}
  - {code: b, type: song, url: "http://b", indexName: b, song: {states: [A, B]},
     notifications: {kafka: {brokers: ["k1:1", "k2:2"], topic: song-analysis}, webhook: {secret: p}}, reconcile: {every: 1h}}
  - {code: c, type: lyric, url: "http://c", indexName: c, lyric: {categoryId: "2", validOnly: false}}
ingest: {kafka: {brokers: ["k1:1", "k2:2"], requestTopic: t}}
`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMoreThanTenRepositoriesComeInOrder(t *testing.T) {
	var environ []string
	for i := range strings.FieldsSeq("10 2 11 0 1 9 3 8 4 7 5 6") {
		prefix := "TUTTI_REPOSITORIES_" + i
		environ = append(environ, prefix+"_CODE=r"+i, prefix+"_TYPE=song", prefix+"_URL=http://a", prefix+"_INDEX_NAME=i"+i)
	}
	c := parse(t, "", environ...)
	if len(c.Repositories) != 12 || c.Repositories[10].Code != "r10" || c.Repositories[2].IndexName != "i2" {
		t.Errorf("got %+v", c.Repositories)
	}
}

func TestEnvironmentWins(t *testing.T) {
	file := `
server: {hosts: [a, b, c]}
log: {level: loud}
index: {url: "http://es", username: u, passwordFile: /none}
repositories: [{code: a, type: song, url: "http://a", indexName: a, pageSize: 7, token: old}]
`
	c := parse(t, file, "TUTTI_SERVER_HOSTS_1=x", "TUTTI_LOG_LEVEL=error", "TUTTI_INDEX_PASSWORD=new", "TUTTI_REPOSITORIES_0_TOKEN=new",
		"TUTTI_REPOSITORIES_0_CONCURRENCY=2")
	if diff := cmp.Diff([]string{"a", "x", "c"}, c.Server.Hosts); diff != "" {
		t.Error(diff)
	}
	r := c.Repositories[0]
	if c.Log.Level != "error" || c.Index.Password != "new" || r.Token != "new" || r.PageSize != 7 || r.Concurrency != 2 {
		t.Errorf("got %+v %+v", c, r)
	}
	if c := parse(t, file, "TUTTI_SERVER_HOSTS=", "TUTTI_LOG_LEVEL=info", "TUTTI_INDEX_PASSWORD=new"); len(c.Server.Hosts) != 0 {
		t.Errorf("an empty list leaves %v", c.Server.Hosts)
	}
	token := yamlOf(t, t.TempDir(), "token", "filed")
	c = parse(t, file, "TUTTI_LOG_LEVEL=info", "TUTTI_INDEX_PASSWORD=p", "TUTTI_REPOSITORIES_0_TOKEN_FILE="+token)
	if c.Repositories[0].Token != "filed" {
		t.Errorf("token %q", c.Repositories[0].Token.Reveal())
	}
}

func TestEnvironmentErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		environ []string
		want    string
	}{
		"unknown":           {[]string{"TUTTI_SERVER_LISTENN=a"}, "TUTTI_SERVER_LISTENN: unknown variable; the nearest valid one is TUTTI_SERVER_LISTEN"},
		"unknown member":    {[]string{"TUTTI_REPOSITORIES_0_COD=a"}, "TUTTI_REPOSITORIES_0_COD: unknown variable; the nearest valid one is TUTTI_REPOSITORIES_0_CODE"},
		"object":            {[]string{"TUTTI_LOG=debug"}, "TUTTI_LOG: unknown variable; the nearest valid one is TUTTI_"},
		"element":           {[]string{"TUTTI_REPOSITORIES_0=a"}, "TUTTI_REPOSITORIES_0: unknown variable"},
		"not a number":      {[]string{"TUTTI_REPOSITORIES_A_CODE=a"}, "TUTTI_REPOSITORIES_A_CODE: unknown variable; the nearest valid one is TUTTI_REPOSITORIES_0_CODE"},
		"leading zero":      {[]string{"TUTTI_REPOSITORIES_00_CODE=a"}, "TUTTI_REPOSITORIES_00_CODE: unknown variable"},
		"nothing":           {[]string{"TUTTI_=a"}, "TUTTI_: unknown variable"},
		"too long":          {[]string{"TUTTI_LOG_LEVEL_X=a"}, "TUTTI_LOG_LEVEL_X: unknown variable; the nearest valid one is TUTTI_LOG_LEVEL"},
		"gap":               {[]string{"TUTTI_REPOSITORIES_2_CODE=a"}, "repositories[2]: there is no element 1 (variable TUTTI_REPOSITORIES_2_CODE)"},
		"gap in a list":     {[]string{"TUTTI_SERVER_HOSTS_1=a"}, "server.hosts[1]: there is no element 0 (variable TUTTI_SERVER_HOSTS_1)"},
		"whole and indexed": {[]string{"TUTTI_SERVER_HOSTS=a", "TUTTI_SERVER_HOSTS_0=b"}, "server.hosts[0]: the list is also set as a whole (variable TUTTI_SERVER_HOSTS_0)"},
		"two spellings":     {[]string{"TUTTI_DATADIR=a", "TUTTI_DATA_DIR=b"}, "dataDir: is set by both TUTTI_DATA_DIR and TUTTI_DATADIR"},
		"two secrets":       {[]string{"TUTTI_REPOSITORIES_0_TOKEN=s3cret", "TUTTI_REPOSITORIES_0_TOKEN_FILE=b"}, "repositories[0].token: is set in addition to repositories[0].tokenFile (variable TUTTI_REPOSITORIES_0_TOKEN_FILE)"},
		"not a number here": {[]string{"TUTTI_QUEUE_MAX_PENDING="}, `queue.maxPending: must be a whole number of at least 1, not "" (variable TUTTI_QUEUE_MAX_PENDING)`},
		"not a boolean":     {[]string{"TUTTI_AUTH_ALLOW_INSECURE=on"}, `auth.allowInsecure: must be true or false, not "on" (variable TUTTI_AUTH_ALLOW_INSECURE)`},
		"later":             {[]string{"TUTTI_NETWORK_DIR=a"}, "TUTTI_NETWORK_DIR: unknown variable; the nearest valid one is TUTTI_"},
		"catalogs":          {[]string{"TUTTI_CATALOGS_DIR=a"}, "TUTTI_CATALOGS_DIR: unknown variable; the nearest valid one is TUTTI_CATALOGUES_DIR"},
		"no folder":         {[]string{"TUTTI_CATALOGUES_DIR=/none"}, "catalogues.dir: /none cannot be read: no such file or directory (variable TUTTI_CATALOGUES_DIR)"},
		"neither yes nor no": {
			[]string{"TUTTI_CATALOGUES_DISABLE_GRAPHQL_INTROSPECTION="},
			`catalogues.disableGraphQLIntrospection: must be true or false, not "" (variable TUTTI_CATALOGUES_DISABLE_GRAPHQL_INTROSPECTION)`,
		},
		"store":      {[]string{"TUTTI_STORE_URL=s3cret"}, "store.url: ******** is not a URL that starts with postgres:// or postgresql:// (variable TUTTI_STORE_URL)"},
		"near store": {[]string{"TUTTI_STORE_URI=postgres://a"}, "TUTTI_STORE_URI: unknown variable; the nearest valid one is TUTTI_STORE_URL"},
		"gap in validations": {
			[]string{"TUTTI_SCHEMAS_DEFAULT_OPTIONS_EXTERNAL_VALIDATIONS_1_URL=http://a"},
			"schemas.defaultOptions.externalValidations[1]: there is no element 0 (variable TUTTI_SCHEMAS_DEFAULT_OPTIONS_EXTERNAL_VALIDATIONS_1_URL)",
		},
		"broker":      {[]string{"TUTTI_INGEST_KAFKA_BROKERS=a"}, `ingest.kafka.brokers[0]: "a" is not host:port (variable TUTTI_INGEST_KAFKA_BROKERS)`},
		"near broker": {[]string{"TUTTI_REPOSITORIES_0_NOTIFICATIONS_KAFKA_BROKER=a"}, "TUTTI_REPOSITORIES_0_NOTIFICATIONS_KAFKA_BROKER: unknown variable; the nearest valid one is TUTTI_REPOSITORIES_0_NOTIFICATIONS_KAFKA_BROKERS"},
		"a port":      {[]string{"TUTTI_SERVER_PORT=8080"}, "TUTTI_SERVER_PORT: unknown variable; the nearest valid one is TUTTI_SERVER_HOSTS"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse([]byte(least), tt.environ)
			wantErrors(t, err, tt.want)
		})
	}
}

func TestVariablesThatAreNoKeys(t *testing.T) {
	parse(t, least, "TUTTI_CONFIG=a", "TUTTI_SERVER=http://localhost", "TUTTI_TOKEN=t", "TUTTI_TEST_X=1", "TUTTI_SERVICES_UP=1", "TUTTI_ES_URL=x",
		"TUTTI_KAFKA_PORT=1", "TUTTI_POSTGRES_PORT=1",
		// Kubernetes, for a service tutti and one tutti-metrics.
		"TUTTI_SERVICE_HOST=10.0.0.1", "TUTTI_SERVICE_PORT=8080", "TUTTI_SERVICE_PORT_HTTP=8080", "TUTTI_PORT=tcp://10.0.0.1:8080",
		"TUTTI_PORT_8080_TCP=tcp://10.0.0.1:8080", "TUTTI_PORT_8080_TCP_ADDR=10.0.0.1", "TUTTI_METRICS_SERVICE_HOST=10.0.0.2",
		"TUTTI_METRICS_PORT_9090_TCP_PROTO=tcp")
}
