package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"

	"tutti/internal/base/setting"
	"tutti/internal/config"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", file, diff)
	}
}

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.CompileString("urn:tutti:config", string(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON converts YAML to the values that a JSON Schema validator expects.
func asJSON(t *testing.T, file string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(file), &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSchemaAndParserAgree(t *testing.T) {
	schema := compile(t)
	golden(t, "testdata/schema.golden.json", config.Schema())
	for _, tt := range []struct {
		file string
		ok   bool
	}{
		{least, true},
		{documented, true},
		{repository("timeout: 1m30s, pageSize: 2"), true},
		{repository("pageSize: 1"), false},
		{least + "\nserver:\nlog: {level: ~, format: json}", true},
		{least + "\nlog: {level: WaRn}", true},
		{least + "\nauth: {allowInsecure: YES}", true},
		{least + "\nauth: {allowInsecure: 0}", true},
		{least + "\nauth: {allowInsecure: 2}", false},
		{least + "\nauth: {allowInsecure: maybe}", false},
		{least + "\nlog: {level: loud}", false},
		{least + "\nlog: {levels: info}", false},
		{least + "\nlogs: {}", false},
		{least + "\nserver: {maxBodyBytes: 0}", false},
		{least + "\nserver: {maxBodyBytes: '5'}", false},
		{least + "\nserver: {basePath: tutti}", false},
		{least + "\nserver: {hosts: [a, 1]}", false},
		{least + "\nserver: {shutdownTimeout: 5}", false},
		{least + "\nserver: {shutdownTimeout: soon}", false},
		{least + "\nserver: {listen: ''}", false},
		{least + "\nqueue: {replicas: 6}", false},
		{least + "\nindex: {replicas: 0, shards: 0}", false},
		{least + "\ntracing: {endpoint: 'http://a:4318', headers: 'a=b, c=%20d', sampleRatio: 0.5, serviceName: s}", true},
		{least + "\ntracing: {sampleRatio: 0}", true},
		{least + "\ntracing: {sampleRatio: 1.5}", false},
		{least + "\ntracing: {sampleRatio: half}", false},
		{least + "\ntracing: {endpoint: 'a:4318'}", false},
		{least + "\ntracing: {headers: a}", false},
		{least + "\ntracing: {serviceName: ''}", false},
		{"{}", true},
		{"repositories: []", true},
		{"repositories: [{code: a, type: local, indexName: a}]", true},
		{"repositories: [{code: a, type: local, indexName: a, song: {states: [UNPUBLISHED]}, pageSize: 5, reconcile: {every: 1h}}]", true},
		{"repositories: [{code: a, type: local, url: '', indexName: a}]", true},
		{"repositories: [{code: a, type: song, indexName: a}]", false},
		{"repositories: [{code: a, type: song, url: '', indexName: a}]", false},
		{"repositories: [{code: a, type: lyric, indexName: a, lyric: {categoryId: 1}}]", false},
		{"repositories: [{code: a, url: 'http://a', indexName: a}]", false},
		{least + "\nstore: {url: 'postgres://u:p@a,b:1/c?d=e'}", true},
		{least + "\nstore: {url: 'postgresql://a'}", true},
		{least + "\nstore: {url: ''}", true},
		{least + "\nstore: {url: 'mysql://a'}", false},
		{least + "\nstore: {url: 'postgres://'}", false},
		{least + "\nstore: {url: 'postgres://a b'}", false},
		{least + "\nstore: {URL: 'postgres://a'}", false},
		{least + "\nschemas: {}", true},
		{least + "\nschemas: {enforceLatest: no, defaultOptions: {fileTypes: [], externalValidations: []}, externalValidations: ~}", true},
		{least + "\nschemas: {defaultOptions: {fileTypes: [BAM], externalValidations: [{url: 'http://a/{study}/{value}', jsonPath: $.a}]}}", true},
		{least + "\nschemas: {defaultOptions: {externalValidations: [{url: 'http://a'}]}}", false},
		{least + "\nschemas: {defaultOptions: {externalValidations: [{url: a, jsonPath: b}]}}", false},
		{least + "\nschemas: {defaultOptions: {fileTypes: ['']}}", false},
		{least + "\nschemas: {externalValidations: {allowedHosts: [a, 'a.b:1', '::1', '[::1]', '[::1]:2', '1.2.3.4'], timeout: 1s}}", true},
		{least + "\nschemas: {externalValidations: {allowedHosts: ['http://a']}}", false},
		{least + "\nschemas: {externalValidations: {allowedHosts: ['*']}}", false},
		{least + "\ncatalogues: {dir: ''}", true},
		{least + "\ncatalogues: ~", true},
		{least + "\ncatalogues: {dir: ., disableGraphQLIntrospection: ~}", true},
		{least + "\ncatalogues: {disableGraphQLIntrospection: No}", true},
		{least + "\ncatalogues: {disableGraphQLIntrospection: 1}", true},
		{least + "\ncatalogues: {disableGraphQLIntrospection: off}", false},
		{least + "\ncatalogues: {disableGraphQLIntrospection: []}", false},
		{least + "\ncatalogues: {dir: 1}", false},
		{least + "\ncatalogues: {production: yes}", false},
		{least + "\nauth: {mode: token}", true},
		{least + "\nauth: {mode: token, jwt: {jwksUrl: 'https://a', issuer: i, audience: a}}", true},
		{least + "\nauth: {mode: Token}", false},
		{least + "\nauth: {mode: token, defaultAccess: authenticated}", true},
		{least + "\nauth: {defaultAccess: ''}", false},
		{least + "\nauth: {defaultAccess: ~}", true},
		{least + "\nauth: {systemScope: ''}", false},
		{least + "\nauth: {systemScope: 'a b'}", false},
		{least + "\nauth: {organizationPrefix: 'a\"'}", false},
		{least + "\nauth: {writeSuffix: ''}", false},
		{least + "\nauth: {readSuffix: ''}", false},
		{least + "\nauth: {jwt: {url: a}}", false},
		{"repositories: {}", false},
		{"repositories: [{code: a}]", false},
		{repository("song: {states: []}"), false},
		{repository("song: {states: ['A,B']}"), false},
		{repository("name: 1"), false},
		{repository("lyric: {}"), true},
		{repository("lyric: {category: a}"), false},
		{lyricFile("lyric: {categoryId: 1}"), true},
		{lyricFile("lyric: {categoryId: '1', validOnly: no}"), true},
		{lyricFile("lyric: {categoryId: a/b}"), false},
		{lyricFile("lyric: {categoryId: -1}"), false},
		{lyricFile("lyric: {categoryId: 1.5}"), false},
		{repository("reconcile: {every: 0s}"), true},
		{repository("reconcile: {every: 0}"), true},
		{repository("reconcile: {every: '0'}"), true},
		{repository("reconcile: {every: 1h}"), true},
		{repository("reconcile: {every: 10}"), false},
		{repository("notifications: {kafka: {brokers: ['a:1', '[::1]:2'], topic: t.t_t-t}, webhook: {secretFile: ~}}"), true},
		{repository("notifications: {kafka: {brokers: [a]}}"), false},
		{repository("notifications: {kafka: {brokers: ['a:1'], topic: 'a b'}}"), false},
		{repository("notifications: {webhook: {key: a}}"), false},
		{least + "\ningest: {kafka: {brokers: ['a:1'], requestTopic: r, group: g}}", true},
		{least + "\ningest: {kafka: {requestTopic: ''}}", false},
		{least + "\nserver: {cors: {origins: ['*', 'https://a.example:8443', 'http://[::1]:1']}}", true},
		{least + "\nserver: {cors: {origins: ['https://a/b']}}", false},
		{least + "\nserver: {cors: {origins: ['null']}}", false},
		{strings.Replace(least, "indexName: analyses", "indexName: Analyses", 1), false},
		{strings.Replace(least, "code: song.ca", "code: ..", 1), false},
		{strings.Replace(least, "type: song", "type: sang", 1), false},
		{strings.Replace(least, "https:", "ftp:", 1), false},
	} {
		_, parseErr := config.Parse([]byte(tt.file), nil)
		schemaErr := schema.Validate(asJSON(t, tt.file))
		if (parseErr == nil) != tt.ok || (schemaErr == nil) != tt.ok {
			t.Errorf("%s\nwant ok %t\nparser: %v\nschema: %v", tt.file, tt.ok, parseErr, schemaErr)
		}
	}
}

func TestSchemaTakesTheEffectiveConfiguration(t *testing.T) {
	c := parse(t, repository("token: s3cret, notifications: {kafka: {brokers: ['k:9092']}, webhook: {secret: s3cret}}")+
		"\nstore: {url: 'postgres://u:s3cret@db/tutti?sslpassword=s3cret&sslmode=require'}"+
		"\ncatalogues: {dir: testdata, disableGraphQLIntrospection: yes}"+
		"\nschemas: {defaultOptions: {fileTypes: [BAM], externalValidations: [{url: 'http://a/{value}', jsonPath: $.a}]}, externalValidations: {allowedHosts: [a]}}"+
		"\nauth: {mode: token, jwt: {jwksUrl: 'https://id', issuer: i, audience: a}}"+
		"\nindex: {url: 'http://es', apiKey: s3cret}\nqueue: {url: 'nats://u:s3cret@a:4222,nats://b'}")
	out, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "s3cret") {
		t.Errorf("a secret is shown:\n%s", out)
	}
	golden(t, "testdata/effective.golden.yaml", out)
	if err := compile(t).Validate(asJSON(t, string(out))); err != nil {
		t.Error(err)
	}
}

func TestEffectiveConfigurationReadsBack(t *testing.T) {
	key := yamlOf(t, t.TempDir(), "key.pem", publicKey)
	for _, file := range []string{
		"", "catalogues: {dir: testdata}", "catalogues: {disableGraphQLIntrospection: no}", "store: {url: 'postgres://h1,h2:1/db?a=b'}", "tracing: {endpoint: 'http://a', sampleRatio: 0.125}", "tracing: {sampleRatio: 0}", "repositories: [{code: a, type: local, indexName: a, song: {states: [UNPUBLISHED]}}]",
		"schemas: {enforceLatest: no, defaultOptions: {fileTypes: [a], externalValidations: [{url: 'http://a/{value}?a=@b', jsonPath: $.a}]}, " +
			"externalValidations: {allowedHosts: ['::1'], timeout: 1s}}",
		"auth: {mode: token, systemScope: s, organizationPrefix: o, jwt: {publicKeyFile: " + key + ", issuer: i, audience: a}}",
		least, documented, lyricFile("lyric: {categoryId: 1, validOnly: no}"), repository("timeout: 1h30m, name: 'yes', country: '12', reconcile: {every: 1h}") + "\nserver: {shutdownTimeout: 1h, hosts: [a]}",
	} {
		c := parse(t, file)
		out, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, parse(t, string(out))); diff != "" {
			t.Errorf("%s\n%s", diff, out)
		}
	}
}

func TestSecretsShowThemselvesToNobody(t *testing.T) {
	s := setting.Secret("s3cret")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "token", s, "repository", config.Repository{Token: s})
	marshalled, err := json.Marshal(map[string]any{"s": s, "r": config.Repository{Password: s}})
	if err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprintf("%s %v %+v %#v %q %s %s", s, s, config.Index{APIKey: s}, config.Index{APIKey: s}, s, marshalled, log.String())
	if strings.Contains(all, "s3cret") {
		t.Errorf("shown: %s", all)
	}
	if s.Reveal() != "s3cret" || setting.Secret("").String() != "" {
		t.Error("Reveal or an empty secret is wrong")
	}
}
