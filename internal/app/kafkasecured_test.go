package app_test

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"tutti/internal/app/backup"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// TestKafkaSecured: topics of brokers with TLS and SASL are read. While a password is wrong, /ready and the log say so in one sentence with
// the key, and once its file is right, what was sent before is indexed. Secrets are in no log, /ready, configuration or backup.
func TestKafkaSecured(t *testing.T) {
	t.Parallel()
	const right, wrong = "right-p4ssw0rd", "wrong-p4ssw0rd"
	dir := t.TempDir()
	authority, err := testkit.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.Certificate(time.Now().Add(-time.Hour), time.Now().Add(time.Hour), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	password := write("password", []byte(wrong))
	b := startBroker(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}), kfake.EnableSASL(), kfake.Superuser("PLAIN", "tutti", right))
	secured := fmt.Sprintf("brokers: %s, tls: true, caFile: %q, sasl: {mechanism: PLAIN, username: tutti, %%s}", b.brokers(), write("ca.pem", authority.PEM))
	w := newWorld(t, settings{
		repository: fmt.Sprintf("notifications: {kafka: {topic: %s, %s}}", songTopic, fmt.Sprintf(secured, "password: "+right)),
		more:       fmt.Sprintf("ingest: {kafka: {%s}}\n", fmt.Sprintf(secured, fmt.Sprintf("passwordFile: %q", password))),
	})
	ids := w.fill("S1", 4)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.DialTLSConfig(&tls.Config{InsecureSkipVerify: true}), //nolint:gosec // a broker of this test
		kgo.SASL(plain.Auth{User: "tutti", Pass: right}.AsMechanism()), kgo.DisableClientMetrics(),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	produce := func(topic, value string) {
		t.Helper()
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	produce(songTopic, songEvent(code, "S1", ids[0], "PUBLISHED"))
	produce(requestTopic, maestroRequest(code, "S1", ids[1]))
	w.start()
	var shown []string
	says := "kafka: a Kafka broker closed the connection while it authenticated this client; check the keys of ingest.kafka.sasl"
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		shown = append(shown, string(a.raw))
		return a.get("components.kafka").String() == "down" && strings.Contains(a.get("reasons").String(), says), string(a.raw)
	})
	w.awaitOutcomes(core.OutcomeIndexed, 1) // of the other topic
	produce(requestTopic, maestroRequest(code, "S1", ids[2]))
	write("password", []byte(right))
	w.awaitOutcomes(core.OutcomeIndexed, 3)
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		return a.get("components.kafka").String() == "up", string(a.raw)
	})
	told := 0
	for _, line := range w.logs.all() {
		if strings.Contains(line, "while it authenticated this client") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the log says it %d times", told)
	}
	cfg, err := config.Parse([]byte(w.yaml()), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	shown = append(append(shown, w.logs.all()...), string(text))
	unpacked := filepath.Join(t.TempDir(), "backup")
	resp, err := w.client.Get(w.url + "/backup")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := backup.Unpack(resp.Body, unpacked); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(unpacked, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		shown = append(shown, string(content))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, text := range shown {
		for _, secret := range []string{right, wrong} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("a secret is shown: %s", text[max(0, at-200):at+len(secret)])
			}
		}
	}
}
