package foreign_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/base/setting"
	"tutti/internal/config"
)

// arranger3 is the example environment of Arranger 3's search server, with its empty variables.
const arranger3 = `
SERVER_PORT=5050
PING_MS=2200
PING_PATH=/ping
READY_PATH=/ready
ALLOWED_CORS_ORIGINS=
ENABLE_ADMIN=false
ENABLE_DEBUG=false
ENABLE_LOGS=false
CONFIGS_PATH=.
ES_HOST=http://localhost:9200
ES_PASS=s3cret
ES_USER=elastic
ES_INDEX=
DOCUMENT_TYPE=
SEARCH_ENGINE=elasticsearch
ES_ARRANGER_SETS_INDEX=arranger-sets
ES_ARRANGER_SETS_TYPE=arranger-sets
DISABLE_DOWNLOADS=false
DISABLE_FILTERS=false
DISABLE_GRAPHQL_INTROSPECTION=false
DISABLE_GRAPHQL_PLAYGROUND=false
ENABLE_GRAPHQL_BATCHING=false
ENABLE_SETS=false
GRAPHQL_MAX_ALIASES=
GRAPHQL_MAX_DEPTH=
MAX_RESULTS_WINDOW=10000
ROW_ID_FIELD_NAME=id
ALLOW_CUSTOM_DOWNLOAD_MAX_ROWS=false
DOWNLOAD_MAX_ROWS=100
DOWNLOAD_STREAM_BUFFER_SIZE=2000`

const (
	fromHost      = "configured by environment variables of Arranger: index.url from ES_HOST"
	notProduction = "NODE_ENV is production: GraphQL's introspection is off unless a catalogue, or catalogues.disableGraphQLIntrospection, sets it"
)

func TestArrangerMigration(t *testing.T) {
	for name, tt := range map[string]struct {
		environ, file string
		want          string // the equivalent file
		production    bool
		warnings      []string
	}{
		"example": {
			environ: arranger3,
			want: `{catalogues: {dir: ., disableGraphQLIntrospection: false},
 index: {url: "http://localhost:9200", username: elastic, password: s3cret}}`,
			warnings: []string{
				"configured by environment variables of Arranger: catalogues.dir from CONFIGS_PATH, index.url from ES_HOST, " +
					"index.username from ES_USER, index.password from ES_PASS, catalogues.disableGraphQLIntrospection from DISABLE_GRAPHQL_INTROSPECTION",
				"these variables of Arranger are ignored: ALLOW_CUSTOM_DOWNLOAD_MAX_ROWS (here allowCustomMaxRows of a catalogue's downloads), " +
					"DISABLE_DOWNLOADS (here disableDownloads of a catalogue), DISABLE_FILTERS (here disableFilters of a catalogue), " +
					"DISABLE_GRAPHQL_PLAYGROUND, DOWNLOAD_MAX_ROWS (here maxRows of a catalogue's downloads), DOWNLOAD_STREAM_BUFFER_SIZE, " +
					"ENABLE_ADMIN, ENABLE_DEBUG (here log.level), ENABLE_GRAPHQL_BATCHING, ENABLE_LOGS (here log.level), " +
					"ENABLE_SETS (here enableSets of a catalogue), ES_ARRANGER_SETS_INDEX, ES_ARRANGER_SETS_TYPE, " +
					"MAX_RESULTS_WINDOW (here maxResultsWindow of a catalogue's table), PING_MS, PING_PATH, READY_PATH, " +
					"ROW_ID_FIELD_NAME (here rowIdFieldName of a catalogue's table), SEARCH_ENGINE, SERVER_PORT (here server.listen)",
			},
		},
		"nothing of it":  {environ: "ES_INDEX=a\nSERVER_PORT=1\nNODE_ENV=development", want: ""},
		"empty ones":     {environ: "CONFIGS_PATH=\nES_HOST= \nES_USER=\nES_PASS=\nNODE_ENV=\nDISABLE_GRAPHQL_INTROSPECTION=\nES_INDEX=a"},
		"host and port":  {environ: "ES_HOST=es:9201", want: "index: {url: 'http://es:9201'}", warnings: []string{fromHost}},
		"host alone":     {environ: "ES_HOST=es", want: "index: {url: 'http://es:9200'}", warnings: []string{fromHost}},
		"address":        {environ: "ES_HOST=[::1]", want: "index: {url: 'http://[::1]:9200'}", warnings: []string{fromHost}},
		"host and path":  {environ: "ES_HOST=proxy/es", want: "index: {url: 'http://proxy:9200/es'}", warnings: []string{fromHost}},
		"several hosts":  {environ: "ES_HOST=https://a, b:1,", want: "index: {url: 'https://a,http://b:1'}", warnings: []string{fromHost}},
		"nothing listed": {environ: "ES_HOST=,"},
		"no address of an engine": {
			environ:  "ES_USER=u\nES_PASS=s3cret",
			warnings: []string{"ES_USER is ignored: no Elasticsearch node is configured"},
		},
		"embedded, in so many words": {
			environ:  "ES_HOST=es\nES_USER=u\nES_PASS=s3cret",
			file:     "index: {url: ''}",
			warnings: []string{"ES_USER is ignored: no Elasticsearch node is configured"},
		},
		"user without password": {
			environ: "ES_HOST=http://es\nES_USER=u\nES_PASS=", want: "index: {url: 'http://es'}",
			warnings: []string{"ES_USER is ignored: the password is missing", fromHost},
		},
		"password without user": {
			environ: "ES_HOST=http://es\nES_PASS=s3cret", want: "index: {url: 'http://es'}",
			warnings: []string{"ES_PASS is ignored: the user is missing", fromHost},
		},
		"credentials for tutti's own address": {
			environ: "ES_USER=u\nES_PASS=s3cret", file: "index: {url: 'http://es'}", want: "index: {url: 'http://es', username: u, password: s3cret}",
			warnings: []string{"configured by environment variables of Arranger: index.username from ES_USER, index.password from ES_PASS"},
		},
		"an API key is enough": {
			environ: "ES_HOST=http://es\nES_USER=u\nES_PASS=s3cret", file: "index: {apiKeyFile: KEY}", want: "index: {url: 'http://es', apiKeyFile: KEY}",
			warnings: []string{fromHost},
		},
		"tutti's keys win one by one": {
			environ: "CONFIGS_PATH=/none\nES_HOST=no url\nDISABLE_GRAPHQL_INTROSPECTION=maybe\nTUTTI_INDEX_URL=http://own\nTUTTI_CATALOGUES_DIR=.",
			file:    "catalogues: {disableGraphQLIntrospection: yes}",
			want:    "{index: {url: 'http://own'}, catalogues: {dir: ., disableGraphQLIntrospection: true}}",
		},
		"Maestro's come first": {
			environ: "MAESTRO_ELASTICSEARCH_NODES=http://m\nMAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER=m\n" +
				"MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_PASSWORD=m\nES_HOST=http://a\nES_USER=a\nES_PASS=s3cret\nCONFIGS_PATH=.",
			want:     "{index: {url: 'http://m', username: m, password: m}, catalogues: {dir: .}}",
			warnings: []string{"configured by environment variables of Arranger: catalogues.dir from CONFIGS_PATH"},
		},
		"Maestro's address, Arranger's credentials": {
			environ:  "MAESTRO_ELASTICSEARCH_NODES=http://m\nES_USER=a\nES_PASS=s3cret",
			want:     "index: {url: 'http://m', username: a, password: s3cret}",
			warnings: []string{"configured by environment variables of Arranger: index.username from ES_USER, index.password from ES_PASS"},
		},
		"production":               {environ: "NODE_ENV=production", production: true, warnings: []string{notProduction}},
		"production, decided":      {environ: "NODE_ENV=production", file: "catalogues: {disableGraphQLIntrospection: no}", want: "catalogues: {disableGraphQLIntrospection: no}", production: true},
		"production, other case":   {environ: "NODE_ENV=Production"},
		"production, not Arranger": {environ: "node_env=production\nES_HOSTS=a"},
		"an older name of the folder": {
			environ: "ES_HOST=http://es\nCONFIG_PATH=.", want: "index: {url: 'http://es'}",
			warnings: []string{fromHost, "these variables of Arranger are ignored: CONFIG_PATH (here catalogues.dir)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := fileOf(t, "key", "own")
			if tt.want == "" {
				tt.want = tt.file
			}
			got := parse(t, strings.ReplaceAll(tt.file, "KEY", key), strings.Split(strings.TrimSpace(tt.environ), "\n")...)
			if diff := cmp.Diff(tt.warnings, got.Warnings); diff != "" {
				t.Error("warnings: ", diff)
			}
			if strings.Contains(strings.Join(got.Warnings, ""), "s3cret") {
				t.Error("a secret is shown")
			}
			want := parse(t, strings.ReplaceAll(tt.want, "KEY", key))
			want.Catalogues.Production, want.Warnings, got.Warnings = tt.production, nil, nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestArrangerErrorsNameTheVariable(t *testing.T) {
	file := fileOf(t, "base.json", "{}")
	for name, tt := range map[string]struct {
		environ string
		hint    string
		want    string
	}{
		"no folder there": {
			"CONFIGS_PATH=/none/such", "JSON files",
			"catalogues.dir: /none/such cannot be read: no such file or directory (variable CONFIGS_PATH)",
		},
		"a file": {"CONFIGS_PATH=" + file, "JSON files", "catalogues.dir: " + file + " is not a directory (variable CONFIGS_PATH)"},
		"no boolean": {
			"DISABLE_GRAPHQL_INTROSPECTION=on", "use true, false",
			`catalogues.disableGraphQLIntrospection: must be true or false, not "on" (variable DISABLE_GRAPHQL_INTROSPECTION)`,
		},
		"another protocol": {"ES_HOST=ftp://es", "such as", `index.url: "ftp://es" is not an absolute http or https URL (variable ES_HOST)`},
		"credentials in the address": {
			"ES_HOST=http://u:s3cret@es", "index.username", "index.url: the URL contains credentials (variable ES_HOST)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse(nil, []string{tt.environ})
			wantErrors(t, err, tt.want)
			if f := setting.Errors(err); len(f) != 1 || f[0].Message != tt.want || !strings.Contains(f[0].Hint, tt.hint) {
				t.Errorf("got %+v", f)
			}
		})
	}
}
