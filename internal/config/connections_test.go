package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tutti/internal/base/setting"
	"tutti/internal/config"
)

// TestKafkaConnection: the settings of a connection are read from the file, the environment and the files of secrets, whose names are kept.
func TestKafkaConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("s3cret\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse([]byte(`
ingest: {kafka: {brokers: ["k:1"], tls: true, caFile: a.pem, clientCertFile: c.pem, clientKeyFile: c.key, serverName: k.example,
  sasl: {mechanism: SCRAM-SHA-512, username: u}}}
repositories: [{code: a, type: song, indexName: a, url: "http://a", notifications: {kafka: {brokers: ["k:1"], tls: true,
  sasl: {mechanism: OAUTHBEARER, oauth: {tokenUrl: "https://idp/token", clientId: c, clientSecretFile: "`+file+`", scope: s, caFile: i.pem}}}}}]
`), []string{"TUTTI_INGEST_KAFKA_SASL_PASSWORD_FILE=" + file, "TUTTI_INGEST_KAFKA_GROUP=g"})
	if err != nil {
		t.Fatal(err)
	}
	want := config.KafkaConnection{
		Brokers: []string{"k:1"}, TLS: true,
		Files: config.ClientTLS{CAFile: "a.pem", ClientCertFile: "c.pem", ClientKeyFile: "c.key", ServerName: "k.example"},
		SASL:  config.SASL{Mechanism: "SCRAM-SHA-512", Username: "u", Password: "s3cret", PasswordFile: file},
	}
	if got := cfg.Ingest.Kafka.KafkaConnection; !slices.Equal(got.Brokers, want.Brokers) || got.Files != want.Files || got.SASL != want.SASL || !got.TLS {
		t.Errorf("got %+v, want %+v", got, want)
	}
	o := config.OAuth{TokenURL: "https://idp/token", ClientID: "c", ClientSecret: "s3cret", ClientSecretFile: file, Scope: "s", Files: config.ClientTLS{CAFile: "i.pem"}}
	if got := cfg.Repositories[0].Notifications.Kafka.SASL; got != (config.SASL{Mechanism: "OAUTHBEARER", OAuth: o}) {
		t.Errorf("got %+v", got)
	}
	text, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "s3cret") || len(cfg.Warnings) > 0 {
		t.Errorf("warnings %v, file\n%s", cfg.Warnings, text)
	}
}

// TestKafkaConnectionErrors: settings that contradict each other.
func TestKafkaConnectionErrors(t *testing.T) {
	two := func(first, second string) string {
		at := "{code: %, type: song, indexName: %, url: 'http://a', notifications: {kafka: {brokers: ['k:1', 'l:1'], "
		return "repositories: [" + strings.ReplaceAll(at, "%", "a") + first + "}}}, " + strings.ReplaceAll(at, "%", "b") + second + "}}}]"
	}
	ingest := func(keys string) string { return "ingest: {kafka: {brokers: ['k:1'], " + keys + "}}" }
	for name, tt := range map[string]struct {
		yaml string
		want []string
	}{
		"files":     {ingest("caFile: a"), []string{"ingest.kafka.tls: is false, but files or a name for TLS are set"}},
		"cert":      {ingest("tls: true, clientCertFile: a"), []string{"ingest.kafka.clientKeyFile: is missing"}},
		"key":       {ingest("tls: true, clientKeyFile: a"), []string{"ingest.kafka.clientCertFile: is missing"}},
		"mechanism": {ingest("sasl: {mechanism: GSSAPI}"), []string{"ingest.kafka.sasl.mechanism: must be empty or one of PLAIN"}},
		"none":      {ingest("sasl: {username: a}"), []string{"ingest.kafka.sasl.mechanism: is missing, but credentials are set"}},
		"password":  {ingest("sasl: {mechanism: PLAIN, username: a}"), []string{"ingest.kafka.sasl.password: is missing, but ingest.kafka.sasl.mechanism is PLAIN"}},
		"username":  {ingest("sasl: {mechanism: SCRAM-SHA-256, password: a}"), []string{"ingest.kafka.sasl.username: is missing, but ingest.kafka.sasl.mechanism is SCRAM-SHA-256"}},
		"no OAuth": {ingest("sasl: {mechanism: OAUTHBEARER}"), []string{
			"ingest.kafka.sasl.oauth.clientId: is missing", "ingest.kafka.sasl.oauth.clientSecret: is missing", "ingest.kafka.sasl.oauth.tokenUrl: is missing",
		}},
		"both":        {ingest("sasl: {mechanism: PLAIN, username: a, password: b, oauth: {clientId: c}}"), []string{"ingest.kafka.sasl.oauth: does not apply to PLAIN"}},
		"other":       {ingest("sasl: {mechanism: OAUTHBEARER, username: a, oauth: {clientId: c, clientSecret: s, tokenUrl: 'http://u:p@a'}}"), []string{"ingest.kafka.sasl.oauth.tokenUrl: the URL contains credentials", "ingest.kafka.sasl.username: does not apply to OAUTHBEARER"}},
		"shared":      {two("tls: true", "tls: true, caFile: a"), []string{"repositories[1].notifications.kafka: connects differently than repositories[0].notifications.kafka, which has the same brokers, topic and group"}},
		"other group": {two("tls: true", "tls: true, caFile: a, group: g"), nil},
		"alike":       {two("tls: true, caFile: a", "tls: true, caFile: a"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse([]byte(tt.yaml), nil)
			var got []string
			for _, e := range setting.Errors(err) {
				got = append(got, e.Message)
			}
			slices.Sort(got)
			if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	cfg, err := config.Parse([]byte(ingest("sasl: {mechanism: PLAIN, username: a, password: b}")), nil)
	if want := []string{"ingest.kafka.tls is false, so that sasl sends its credentials unencrypted"}; err != nil || !slices.Equal(cfg.Warnings, want) {
		t.Errorf("warnings %q, %v", cfg.Warnings, err)
	}
}

// TestQueueCredentials: the settings of connections to an external NATS.
func TestQueueCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse([]byte("queue: {url: 'nats://a', username: u, caFile: a.pem, serverName: n}"), []string{"TUTTI_QUEUE_PASSWORD_FILE=" + file})
	if err != nil {
		t.Fatal(err)
	}
	if q := cfg.Queue; q.Username != "u" || q.Password != "s3cret" || q.PasswordFile != file || q.TLS != (config.ClientTLS{CAFile: "a.pem", ServerName: "n"}) {
		t.Errorf("got %+v", q)
	}
	for yaml, want := range map[string]string{
		"queue: {url: 'nats://a', username: u}":                           "queue.password: is missing, but a username is set",
		"queue: {url: 'nats://a', nkeyFile: n, credentialsFile: c}":       "queue: has credentials of several kinds",
		"queue: {url: 'nats://a', nkeyFile: n, username: u, password: p}": "queue: has credentials of several kinds",
		"queue: {url: 'nats://a', clientKeyFile: n}":                      "queue.clientCertFile: is missing",
		"queue: {nkeyFile: n}":                                            "queue.url: is empty, but the embedded queue has no credentials",
		"queue: {caFile: n}":                                              "queue.url: is empty, but the embedded queue has no credentials",
		"index: {url: 'https://a', clientCertFile: c}":                    "index.clientKeyFile: is missing",
		"index: {serverName: c}":                                          "index.url: is empty, but the embedded index has no credentials",
	} {
		_, err := config.Parse([]byte(yaml), nil)
		if errs := setting.Errors(err); len(errs) != 1 || errs[0].Message != want {
			t.Errorf("%s: got %v, want %s", yaml, err, want)
		}
	}
}

// TestTLSOfConnections: the files of TLS of each connection are validated, and need its address.
func TestTLSOfConnections(t *testing.T) {
	for _, c := range []struct{ key, address, yaml string }{
		{"schemas.storage", "url", "schemas: {storage: {%s}}"},
		{"schemas.externalValidations", "", "schemas: {externalValidations: {%s}}"},
		{"auth.jwt", "jwksUrl", "auth: {mode: token, jwt: {%s}}"},
		{"auth.introspection", "url", "auth: {mode: token, introspection: {%s}}"},
		{"auth.uma", "tokenUrl", "auth: {mode: token, uma: {%s}}"},
		{"tracing", "endpoint", "tracing: {%s}"},
		{"store", "url", "store: {%s}"},
		{"alerts[0]", "", "alerts: [{url: 'https://a.example', %s}]"},
	} {
		for members, missing := range map[string]string{"caFile: a": c.address, "clientCertFile: a": "clientKeyFile", "clientKeyFile: a": "clientCertFile"} {
			_, err := config.Parse(fmt.Appendf(nil, c.yaml, members), nil)
			found := missing == "" && err == nil
			for _, e := range setting.Errors(err) {
				found = found || strings.HasPrefix(e.Message, c.key+"."+missing+": is missing")
			}
			if !found {
				t.Errorf("%s with %s: %v", c.key, members, err)
			}
		}
	}
}
