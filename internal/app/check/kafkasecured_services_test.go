//go:build services

package check_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	kafkareader "tutti/ingest/kafka"
	"tutti/internal/app/check"
	"tutti/internal/app/settings"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// securedNode is the broker that deploy/local/kafka/start --secure starts, and a token endpoint with files of this test.
type securedNode struct {
	pki, files string
	port       int
	tokens     *httptest.Server
	client     *kgo.Client
	admin      *kadm.Client
}

// secured starts the node, and stops it at the end unless it ran before.
func secured(t *testing.T) *securedNode {
	t.Helper()
	const scripts = "../../../deploy/local/kafka/"
	var out, progress strings.Builder
	start := exec.CommandContext(t.Context(), scripts+"start", "--secure")
	start.Stdout, start.Stderr = &out, &progress
	if err := start.Run(); err != nil {
		t.Fatalf("starting the secured node: %v\n%s", err, progress.String())
	}
	if strings.Contains(progress.String(), "starting on port") {
		t.Cleanup(func() {
			if text, err := exec.Command(scripts+"stop", "--secure").CombinedOutput(); err != nil {
				t.Errorf("stopping the secured node: %v\n%s", err, text)
			}
		})
	}
	_, node, _ := strings.Cut(strings.TrimSpace(out.String()), "TUTTI_TEST_KAFKA_SECURE=")
	text, err := os.ReadFile(filepath.Join(node, "port"))
	if err != nil {
		t.Fatal(err)
	}
	n := &securedNode{pki: filepath.Join(node, "pki"), files: t.TempDir()}
	if n.port, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		t.Fatal(err)
	}
	if n.client, err = kgo.NewClient(kgo.SeedBrokers(n.address(0))); err != nil {
		t.Fatal(err)
	}
	n.admin = kadm.NewClient(n.client)
	t.Cleanup(n.client.Close)
	n.serveTokens(t)
	foreign, err := testkit.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := foreign.Certificate(time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	n.write(t, "foreign-ca.pem", string(foreign.PEM))
	n.write(t, "foreign.pem", string(cert))
	n.write(t, "foreign.key", string(key))
	n.write(t, "wrong", "wrong-secret-7391")
	n.write(t, "alice", "alice-secret\n")
	return n
}

func (n *securedNode) address(listener int) string {
	return "127.0.0.1:" + strconv.Itoa(n.port+listener)
}

func (n *securedNode) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.files, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fill replaces names of files and addresses in the YAML of a connection.
func (n *securedNode) fill(yaml string) string {
	return strings.NewReplacer("$PKI", n.pki, "$FILES", n.files, "$TOKENS", n.tokens.URL, "$PLAIN", n.address(0), "$SSL", n.address(1),
		"$SASL", n.address(2), "$SCRAM", n.address(3), "$EXPIRED", n.address(4)).Replace(yaml)
}

// serveTokens starts the token endpoint with TLS.
func (n *securedNode) serveTokens(t *testing.T) {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(n.pki, "jwt.key"))
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := testkit.NewTokenEndpoint(key, "k1")
	if err != nil {
		t.Fatal(err)
	}
	n.tokens = httptest.NewTLSServer(endpoint)
	t.Cleanup(n.tokens.Close)
	n.write(t, "tokens-ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.tokens.Certificate().Raw})))
}

// rightsOfTheGuide returns the operations that the guide grants on a topic or a group.
func rightsOfTheGuide(t *testing.T, resource string) (granted []kadm.ACLOperation) {
	t.Helper()
	guide, err := os.ReadFile("../../../deploy/docs/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	for command := range strings.SplitSeq(strings.ReplaceAll(string(guide), "\\\n", ""), "\n") {
		if !strings.HasPrefix(command, "kafka-acls.sh ") || !strings.Contains(command, " --"+resource+" ") {
			continue
		}
		for _, of := range regexp.MustCompile(`--operation (\w+)`).FindAllStringSubmatch(command, -1) {
			operation, err := kmsg.ParseACLOperation(of[1])
			if err != nil {
				t.Fatal(err)
			}
			granted = append(granted, operation)
		}
	}
	if len(granted) == 0 {
		t.Fatalf("the guide grants nothing on a %s", resource)
	}
	return granted
}

// allow lets users use topics and groups whose names have a prefix.
func (n *securedNode) allow(t *testing.T, prefix string, users ...string) {
	t.Helper()
	for i, user := range users {
		users[i] = "User:" + user
	}
	for resource, acl := range map[string]*kadm.ACLBuilder{"topic": kadm.NewACLs().Topics(prefix), "group": kadm.NewACLs().Groups(prefix)} {
		made, err := n.admin.CreateACLs(t.Context(), acl.ResourcePatternType(kadm.ACLPatternPrefixed).
			Allow(users...).AllowHosts("*").Operations(rightsOfTheGuide(t, resource)...))
		for _, m := range made {
			if err == nil {
				err = m.Err
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// values is a Handler that collects values.
type values struct {
	mu  sync.Mutex
	all []string
}

func (v *values) Handle(_ context.Context, messages []core.TopicMessage) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range messages {
		v.all = append(v.all, string(m.Value))
	}
	return nil
}

func (v *values) Missed(context.Context, core.TopicGap) error { return nil }

func (v *values) holds(want ...string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Equal(v.all, want)
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func eventually(t *testing.T, what func() string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.HangLimit)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal("in vain: " + what())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// use is a topic of the node, its check and its reader.
type use struct {
	node     *securedNode
	topic    string
	kafka    string // YAML
	values   values
	logs     lines
	registry *prometheus.Registry
	reader   *kafkareader.Reader
}

// report returns the findings of check on the topic.
func (u *use) report(t *testing.T) []string {
	t.Helper()
	cfg := parse(t, fmt.Sprintf("dataDir: %q\ningest: {kafka: {%s}}", t.TempDir(), u.kafka))
	return of(check.Run(t.Context(), cfg, check.Options{Timeout: 5 * time.Second}), "ingest.kafka")
}

func (u *use) start(t *testing.T) {
	t.Helper()
	k := parse(t, fmt.Sprintf("ingest: {kafka: {%s}}", u.kafka)).Ingest.Kafka
	u.registry = prometheus.NewRegistry()
	var err error
	u.reader, err = kafkareader.New(kafkareader.Config{
		Connection: settings.KafkaConnection(settings.RequestTopicKey, k.KafkaConnection), Topic: k.RequestTopic, Group: k.Group,
		CheckEvery: 500 * time.Millisecond, RetryMin: 10 * time.Millisecond,
		Logger: slog.New(slog.NewJSONHandler(&u.logs, nil)), Metrics: kafkareader.NewMetrics(u.registry),
	}, &u.values)
	if err == nil {
		err = u.reader.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.reader.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// produce writes a message to the topic.
func (u *use) produce(t *testing.T, value string) {
	t.Helper()
	if err := u.node.client.ProduceSync(t.Context(), &kgo.Record{Topic: u.topic, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// awaitDown waits until /ready, the log and the metric say that the topic is down, with a message and a hint.
func (u *use) awaitDown(t *testing.T, message, hint string) {
	t.Helper()
	eventually(t, func() string { return fmt.Sprintf("%q; %q is said", message, core.DisplayOf(u.reader.Health())) }, func() bool {
		err := u.reader.Health()
		return err != nil && core.MessageOf(err) == message && strings.Contains(core.HintOf(err), hint)
	})
	quoted, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(u.logs.String(), strings.Trim(string(quoted), `"`)); n < 1 || n > 2 {
		t.Errorf("the log says it %d times:\n%s", n, u.logs.String())
	}
	if err := testutil.GatherAndCompare(u.registry, strings.NewReader("# HELP tutti_kafka_up 1 when the brokers answer, the topic is read and its offsets are committed, else 0.\n"+
		"# TYPE tutti_kafka_up gauge\ntutti_kafka_up{topic=\""+u.topic+"\"} 0\n"), "tutti_kafka_up"); err != nil {
		t.Error(err)
	}
}

func (u *use) awaitUp(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, func() string {
		return fmt.Sprintf("%v is read and all is well: %v, %q", want, u.values.all, core.DisplayOf(u.reader.Health()))
	}, func() bool { return u.values.holds(want...) && u.reader.Health() == nil })
}

// TestSecuredKafka: on a real broker with TLS, SASL and rules of access, every kind of credentials works, and check, /ready, the log and the
// metric say what is wrong with a wrong setting, with its key, and show no secret. When it is right again, reading goes on without a restart.
func TestSecuredKafka(t *testing.T) {
	n := secured(t)
	run := fmt.Sprintf("secured-%d", time.Now().UnixNano())
	n.allow(t, run+"-allowed", "alice", "client")
	topics := 0
	var mu sync.Mutex
	topic := func(t *testing.T, kind string) string {
		t.Helper()
		mu.Lock()
		topics++
		name := fmt.Sprintf("%s-%s-%d", run, kind, topics)
		mu.Unlock()
		if _, err := n.admin.CreateTopic(t.Context(), 1, 1, nil, name); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() string { return "the broker knows the topic " + name }, func() bool {
			found, err := n.admin.ListTopics(t.Context(), name)
			return err == nil && found[name].Err == nil && len(found[name].Partitions) == 1
		})
		return name
	}
	of := func(t *testing.T, yaml, topic string) *use {
		t.Helper()
		if !strings.Contains(yaml, "group:") {
			yaml += ", group: " + topic
		}
		return &use{node: n, topic: topic, kafka: n.fill(yaml) + ", requestTopic: " + topic}
	}
	const (
		trusted = "tls: true, caFile: '$PKI/ca.pem'"
		pair    = ", clientCertFile: '$PKI/client.pem', clientKeyFile: '$PKI/client.key'"
		login   = ", sasl: {mechanism: %s, username: alice, passwordFile: '$FILES/%s'}"
		tokens  = ", sasl: {mechanism: OAUTHBEARER, oauth: {tokenUrl: '$TOKENS%s', clientId: alice, clientSecretFile: '$FILES/%s', caFile: '$FILES/%s'}}"
	)
	// A broker applies a rule some time after it has answered that the rule exists.
	for _, yaml := range []string{"brokers: ['$SSL'], " + trusted + pair, "brokers: ['$SASL'], " + trusted + fmt.Sprintf(login, "PLAIN", "alice")} {
		u := of(t, yaml, topic(t, "allowed"))
		eventually(t, func() string { return "the rules hold" }, func() bool {
			found := u.report(t)
			return len(found) == 1 && strings.HasPrefix(found[0], "ok: ")
		})
	}
	secrets := []string{"alice-secret", "wrong-secret-7391", "eyJ"}
	silent := func(t *testing.T, u *use, texts ...string) {
		t.Helper()
		for _, text := range append(texts, u.logs.String()) {
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("%q is shown: %s", secret, text)
				}
			}
		}
	}
	t.Run("right", func(t *testing.T) {
		for name, yaml := range map[string]string{
			"client certificate": "brokers: ['$SSL'], " + trusted + pair,
			"PLAIN":              "brokers: ['$SASL'], " + trusted + fmt.Sprintf(login, "PLAIN", "alice"),
			"SCRAM-SHA-256":      "brokers: ['$SASL'], " + trusted + fmt.Sprintf(login, "SCRAM-SHA-256", "alice"),
			"SCRAM-SHA-512":      "brokers: ['$SCRAM'], " + trusted + fmt.Sprintf(login, "SCRAM-SHA-512", "alice"),
			"password":           "brokers: ['$SASL'], " + trusted + ", sasl: {mechanism: PLAIN, username: alice, password: alice-secret}",
			"OAUTHBEARER":        "brokers: ['$SASL'], " + trusted + fmt.Sprintf(tokens, "/token", "alice", "tokens-ca.pem"),
			"short tokens":       "brokers: ['$SASL'], " + trusted + fmt.Sprintf(tokens, "/short", "alice", "tokens-ca.pem"),
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				u := of(t, yaml, topic(t, "allowed"))
				wantLines(t, u.report(t), "ok: topic "+u.topic+" with 1 partition at *")
				u.produce(t, "a")
				u.start(t)
				u.awaitUp(t, "a")
				u.produce(t, "b")
				u.awaitUp(t, "a", "b")
				silent(t, u)
			})
		}
	})
	t.Run("wrong", func(t *testing.T) {
		gone := testkit.NewAddress(t)
		scram := func(file string) string { return fmt.Sprintf(login, "SCRAM-SHA-512", file) }
		const (
			unknown = "a Kafka broker cannot be used: its certificate is signed by an unknown authority"
			name    = "a Kafka broker cannot be used: its certificate is for another host name"
			refused = "the Kafka brokers refuse the credentials"
		)
		for name, tt := range map[string]struct{ yaml, message, hint string }{
			"unreachable":             {"brokers: ['" + gone + "'], " + trusted, "", ""},
			"not TLS":                 {"brokers: ['$PLAIN'], " + trusted, "the Kafka brokers' port does not speak TLS", "set ingest.kafka.tls: false"},
			"TLS":                     {"brokers: ['$SSL']", "the Kafka brokers' port expects TLS", "set ingest.kafka.tls: true"},
			"system's authorities":    {"brokers: ['$SASL'], tls: true" + scram("alice"), unknown, "set ingest.kafka.caFile to a PEM file"},
			"other authority":         {"brokers: ['$SASL'], tls: true, caFile: '$FILES/foreign-ca.pem'" + scram("alice"), unknown, "set ingest.kafka.caFile to a PEM file"},
			"name":                    {"brokers: ['$SASL'], serverName: kafka.example, " + trusted + scram("alice"), name, "set ingest.kafka.serverName"},
			"expired":                 {"brokers: ['$EXPIRED'], " + trusted + scram("alice"), "a Kafka broker cannot be used: its certificate has expired or is not valid yet", "renew the certificate"},
			"no client certificate":   {"brokers: ['$SSL'], " + trusted, "a Kafka broker cannot be used: it requires a client certificate", "set ingest.kafka.clientCertFile"},
			"other client":            {"brokers: ['$SSL'], " + trusted + ", clientCertFile: '$FILES/foreign.pem', clientKeyFile: '$FILES/foreign.key'", "a Kafka broker cannot be used: it refused the client certificate", "set ingest.kafka.clientCertFile"},
			"no SASL":                 {"brokers: ['$SASL'], " + trusted, "a Kafka broker closed the connection, as one does that requires SASL", "set ingest.kafka.sasl.mechanism"},
			"SASL where none is":      {"brokers: ['$SSL'], " + trusted + pair + scram("alice"), "the Kafka brokers' port takes no SASL", "remove ingest.kafka.sasl.mechanism"},
			"mechanism":               {"brokers: ['$SCRAM'], " + trusted + fmt.Sprintf(login, "PLAIN", "alice"), "the Kafka brokers do not offer the SASL mechanism PLAIN", "set ingest.kafka.sasl.mechanism"},
			"password of PLAIN":       {"brokers: ['$SASL'], " + trusted + fmt.Sprintf(login, "PLAIN", "wrong"), refused, "check ingest.kafka.sasl.username and ingest.kafka.sasl.password"},
			"password of SCRAM":       {"brokers: ['$SASL'], " + trusted + scram("wrong"), refused, "check ingest.kafka.sasl.username and ingest.kafka.sasl.password"},
			"user":                    {"brokers: ['$SASL'], " + trusted + ", sasl: {mechanism: SCRAM-SHA-256, username: carol, passwordFile: '$FILES/alice'}", refused, "check ingest.kafka.sasl.username"},
			"audience":                {"brokers: ['$SASL'], " + trusted + fmt.Sprintf(tokens, "/audience", "alice", "tokens-ca.pem"), "the Kafka brokers refuse the token", "check that ingest.kafka.sasl.oauth.tokenUrl is the issuer"},
			"expired token":           {"brokers: ['$SASL'], " + trusted + fmt.Sprintf(tokens, "/expired", "alice", "tokens-ca.pem"), "the Kafka brokers refuse the token, which has expired", "check the clocks of this machine and of ingest.kafka.sasl.oauth.tokenUrl"},
			"client secret":           {"brokers: ['$SASL'], " + trusted + fmt.Sprintf(tokens, "/token", "wrong", "tokens-ca.pem"), "the server of ingest.kafka.sasl.oauth.tokenUrl refuses the client", "check ingest.kafka.sasl.oauth.clientId and ingest.kafka.sasl.oauth.clientSecret"},
			"authority of the tokens": {"brokers: ['$SASL'], " + trusted + fmt.Sprintf(tokens, "/token", "alice", "foreign-ca.pem"), "the server of ingest.kafka.sasl.oauth.tokenUrl does not answer: its certificate is signed by an unknown authority", "set ingest.kafka.sasl.oauth.caFile to a PEM file"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				u := of(t, tt.yaml, topic(t, "allowed"))
				report := u.report(t)
				if tt.message == "" {
					wantLines(t, report, "fail: broker "+gone+" does not answer: nothing listens there -> *")
					tt.message = "no Kafka broker answers"
				} else {
					wantLines(t, report, "fail: "+tt.message+" -> *"+tt.hint+"*")
				}
				u.start(t)
				u.awaitDown(t, tt.message, tt.hint)
				silent(t, u, append(report, core.DisplayOf(u.reader.Health()))...)
			})
		}
		for kind, user := range map[string]string{"right": "alice", "group": "alice"} {
			t.Run("no "+kind, func(t *testing.T) {
				t.Parallel()
				yaml := "brokers: ['$SASL'], " + trusted + ", sasl: {mechanism: PLAIN, username: " + user + ", password: " + user + "-secret}"
				u, message, finding := of(t, yaml, topic(t, "denied")), "", ""
				if kind == "group" {
					u = of(t, yaml+", group: denied", topic(t, "allowed"))
					message, finding = "using the Kafka consumer group is not authorized", "fail: not authorized to use group denied -> allow Read on the group"
					wantLines(t, u.report(t), "ok: *", finding)
				} else {
					message, finding = fmt.Sprintf("reading the Kafka topic %q is not authorized", u.topic), "fail: not authorized to read topic "+u.topic+" -> allow Read and Describe on the topic"
					wantLines(t, u.report(t), finding)
				}
				u.start(t)
				u.awaitDown(t, message, "allow this client")
				silent(t, u)
			})
		}
	})
	t.Run("right again", func(t *testing.T) {
		read := func(t *testing.T, from string) string {
			t.Helper()
			text, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		certificate, key := read(t, n.pki+"/client.pem"), read(t, n.pki+"/client.key")
		authority := read(t, n.pki+"/ca.pem")
		for name, tt := range map[string]struct {
			yaml, message string
			wrong, right  map[string]string // contents of files
		}{
			"password": {
				"brokers: ['$SASL'], " + trusted + fmt.Sprintf(login, "SCRAM-SHA-256", "pw"), "the Kafka brokers refuse the credentials",
				map[string]string{"pw": "wrong-secret-7391"},
				map[string]string{"pw": "alice-secret"},
			},
			"authority": {
				"brokers: ['$SASL'], tls: true, caFile: '$FILES/ca.pem'" + fmt.Sprintf(login, "PLAIN", "alice"),
				"a Kafka broker cannot be used: its certificate is signed by an unknown authority",
				map[string]string{"ca.pem": read(t, n.files+"/foreign-ca.pem")},
				map[string]string{"ca.pem": authority},
			},
			"client certificate": {
				"brokers: ['$SSL'], " + trusted + ", clientCertFile: '$FILES/c.pem', clientKeyFile: '$FILES/c.key'",
				"a Kafka broker cannot be used: it refused the client certificate",
				map[string]string{"c.pem": read(t, n.files+"/foreign.pem"), "c.key": read(t, n.files+"/foreign.key")},
				map[string]string{"c.pem": certificate, "c.key": key},
			},
			"client secret": {
				"brokers: ['$SASL'], " + trusted + fmt.Sprintf(tokens, "/token", "cs", "tokens-ca.pem"), "the server of ingest.kafka.sasl.oauth.tokenUrl refuses the client",
				map[string]string{"cs": "wrong-secret-7391"},
				map[string]string{"cs": "alice-secret"},
			},
			"right to the topic": {"brokers: ['$SASL'], " + trusted + fmt.Sprintf(login, "PLAIN", "alice"), "", nil, nil},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				kind := "allowed"
				if tt.message == "" {
					kind = "later"
				}
				u := of(t, tt.yaml, topic(t, kind))
				if tt.message == "" {
					tt.message = fmt.Sprintf("reading the Kafka topic %q is not authorized", u.topic)
				}
				u.produce(t, "before")
				for file, content := range tt.wrong {
					n.write(t, file, content)
				}
				u.start(t)
				u.awaitDown(t, tt.message, "")
				u.produce(t, "during")
				for file, content := range tt.right {
					n.write(t, file, content)
				}
				if tt.right == nil {
					n.allow(t, u.topic, "alice")
				}
				u.awaitUp(t, "before", "during")
				silent(t, u)
			})
		}
	})
}
