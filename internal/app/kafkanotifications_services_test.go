//go:build services

package app_test

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// startSecuredKafka starts the node of deploy/local/kafka/start --secure, and stops it at the end unless it ran before. It returns the folder of
// its certificates, and its first port.
func startSecuredKafka(t *testing.T) (pki string, port int) {
	t.Helper()
	const scripts = "../../deploy/local/kafka/"
	var progress strings.Builder
	start := exec.Command(scripts+"start", "--secure")
	start.Stderr = &progress
	out, err := start.Output()
	if err != nil {
		t.Fatalf("starting the secured node: %v\n%s", err, progress.String())
	}
	if strings.Contains(progress.String(), "starting on port") {
		t.Cleanup(func() {
			if text, err := exec.Command(scripts+"stop", "--secure").CombinedOutput(); err != nil {
				t.Errorf("stopping the secured node: %v\n%s", err, text)
			}
		})
	}
	_, node, _ := strings.Cut(strings.TrimSpace(string(out)), "TUTTI_TEST_KAFKA_SECURE=")
	text, err := os.ReadFile(filepath.Join(node, "port"))
	if err == nil {
		port, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(node, "pki"), port
}

// TestKafkaNotificationsSecured: the notifications of a repository on a real broker with TLS, by each mechanism: while a secret is wrong, tutti
// check, /ready and the log say so with its key, and once its file is right, what was sent before is indexed. No secret is shown.
func TestKafkaNotificationsSecured(t *testing.T) {
	t.Parallel()
	pki, port := startSecuredKafka(t)
	key, err := os.ReadFile(filepath.Join(pki, "jwt.key"))
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := testkit.NewTokenEndpoint(key, "k1")
	if err != nil {
		t.Fatal(err)
	}
	tokens := httptest.NewTLSServer(endpoint)
	t.Cleanup(tokens.Close)
	authority := filepath.Join(t.TempDir(), "tokens-ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tokens.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:" + strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	const login = "{mechanism: %s, username: alice, passwordFile: %q}"
	for mechanism, says := range map[string]string{
		"PLAIN":         "the Kafka brokers refuse the credentials; check $.username and $.password",
		"SCRAM-SHA-256": "the Kafka brokers refuse the credentials; check $.username and $.password",
		"SCRAM-SHA-512": "the Kafka brokers refuse the credentials; check $.username and $.password",
		"OAUTHBEARER":   "the server of $.oauth.tokenUrl refuses the client; check $.oauth.clientId and $.oauth.clientSecret",
	} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings{})
			secret := filepath.Join(t.TempDir(), "secret")
			write := func(content string) {
				t.Helper()
				if err := os.WriteFile(secret, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("wrong-secret-7391")
			sasl := fmt.Sprintf(login, mechanism, secret)
			if mechanism == "OAUTHBEARER" {
				sasl = fmt.Sprintf("{mechanism: OAUTHBEARER, oauth: {tokenUrl: %q, clientId: alice, clientSecretFile: %q, caFile: %q}}", tokens.URL+"/token", secret, authority)
			}
			topic := w.alias + "-events"
			w.set.repository = fmt.Sprintf("notifications: {kafka: {brokers: ['127.0.0.1:%d'], tls: true, caFile: %q, topic: %s, group: %s, sasl: %s}}",
				port+2, filepath.Join(pki, "ca.pem"), topic, w.alias, sasl)
			allowAlice(t, kadm.NewClient(client), topic, w.alias)
			ids := w.fill("S1", 2)
			produce := func(id string) {
				t.Helper()
				if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(songEvent(code, "S1", id, "PUBLISHED"))}).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			produce(ids[0])
			says = strings.ReplaceAll(says, "$", "repositories[0].notifications.kafka.sasl")
			message, hint, _ := strings.Cut(says, "; ")
			found := func() (status check.Status, text string) {
				t.Helper()
				cfg, err := config.Parse([]byte(w.yaml()), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range check.Run(t.Context(), cfg, check.Options{}).Findings {
					if strings.HasPrefix(f.Subject, "notifications of ") {
						status, text = f.Status, text+f.Message+" -> "+f.Hint
					}
				}
				return status, text
			}
			status, text := found()
			shown := []string{text}
			if status != check.StatusFail || !strings.Contains(text, message) || !strings.Contains(text, hint) {
				t.Errorf("the check found %v: %s", status, text)
			}
			w.start()
			w.eventually(wait, func() (bool, string) {
				a := w.ready()
				shown = append(shown, string(a.raw))
				return a.get("components.kafka").String() == "down" && strings.Contains(a.get("reasons").String(), says), string(a.raw)
			})
			produce(ids[1])
			write("alice-secret")
			w.awaitOutcomes(core.OutcomeIndexed, 2)
			w.eventually(wait, func() (bool, string) {
				a := w.ready()
				shown = append(shown, string(a.raw))
				return a.get("components.kafka").String() == "up", string(a.raw)
			})
			if status, text := found(); status != check.StatusOK {
				t.Errorf("the check found %v: %s", status, text)
			}
			var said []string
			for _, line := range w.logs.all() {
				if strings.Contains(line, message) {
					said = append(said, line)
				}
			}
			if len(said) != 1 {
				t.Errorf("the log says it %d times: %s", len(said), said)
			}
			for _, text := range append(shown, w.logs.all()...) {
				for _, secret := range []string{"wrong-secret-7391", "alice-secret", "eyJ"} {
					if strings.Contains(text, secret) {
						t.Errorf("%s is shown: %s", secret, text)
					}
				}
			}
		})
	}
}

// allowAlice creates a topic, and lets the user alice read it in a group.
func allowAlice(t *testing.T, admin *kadm.Client, topic, group string) {
	t.Helper()
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	for _, rules := range []*kadm.ACLBuilder{
		kadm.NewACLs().Topics(topic).Operations(kadm.OpRead, kadm.OpDescribe), kadm.NewACLs().Groups(group).Operations(kadm.OpRead),
	} {
		made, err := admin.CreateACLs(t.Context(), rules.ResourcePatternType(kadm.ACLPatternLiteral).Allow("User:alice").AllowHosts("*"))
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
