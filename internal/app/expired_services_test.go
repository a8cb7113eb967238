//go:build services && linux

package app_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tutti/internal/app"
	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/storetest"
)

const sayExpired = "its certificate has expired or is not valid yet; renew the certificate, or set this machine's clock"

// wantChecked holds that of a component tutti check says a message that ends so, and a hint. It returns the configuration.
func (w *world) wantChecked(component, message, hint string) config.Config {
	w.t.Helper()
	cfg, err := config.Parse([]byte(w.yaml()), w.set.environ)
	if err != nil {
		w.t.Fatal(err)
	}
	found := false
	for _, f := range check.Run(w.t.Context(), cfg, check.Options{}).Findings {
		if f.Subject != component {
			continue
		}
		found = true
		if f.Status != check.StatusFail || !strings.HasSuffix(f.Message, message) || f.Hint != hint {
			w.t.Errorf("the check found %v %s -> %s", f.Status, f.Message, f.Hint)
		}
	}
	if !found {
		w.t.Errorf("the check says nothing of %s", component)
	}
	return cfg
}

// TestPostgresExpired: of a real PostgreSQL whose certificate has expired tutti check, the start, /ready and the log say so in one sentence, and
// nothing is accepted; once the server has a valid one again, all works without a restart.
func TestPostgresExpired(t *testing.T) {
	t.Parallel()
	server, plain := startPostgres(t)
	pki := filepath.Join(filepath.Dir(filepath.Dir(server.record)), "pki")
	files := map[string][]byte{}
	for _, name := range []string{"server.pem", "server.key", "expired.pem", "expired.key"} {
		var err error
		if files[name], err = os.ReadFile(filepath.Join(pki, name)); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	execute := func(statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(certificate string) {
		t.Helper()
		for _, kind := range []string{".pem", ".key"} {
			if err := os.WriteFile(filepath.Join(pki, "server"+kind), files[certificate+kind], 0o600); err != nil { // it keeps its owner
				t.Fatal(err)
			}
		}
		execute("SELECT pg_reload_conf()")
	}
	address := strings.TrimSuffix(plain, "?sslmode=disable")
	b := newBuiltIn(t, plan{store: address})
	yaml := strings.Replace(b.yaml(), "store: {url", "store: {caFile: '"+filepath.Join(pki, "ca.pem")+"', url", 1)
	b.set.configuration = func(*world) string { return yaml }
	b.startReady()
	b.prepareStudies("S1")
	c := newClient()
	work := func(n int) {
		t.Helper()
		if !c.once(b, b.payload("S1", ""), "S1", n) {
			t.Errorf("a submission failed: %v", c.faults)
		}
	}
	work(0)
	before := len(b.logs.all())
	message, hint, _ := strings.Cut(sayExpired, "; ")
	said := func() (lines []string) {
		for _, line := range b.logs.all()[before:] {
			if strings.Contains(line, `"component":"outbox"`) && strings.Contains(line, message) {
				lines = append(lines, line)
			}
		}
		return lines
	}
	serve("expired")
	b.eventually(wait, func() (bool, string) {
		// The server takes up its files some time after it was told, and only for new connections.
		execute("SELECT pg_terminate_backend(pid) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND pid <> pg_backend_pid()")
		a := b.ready()
		return a.get("components.store").String() == "down" && strings.Contains(a.get("reasons").String(), sayExpired), string(a.raw)
	})
	if a, err := b.send(http.MethodPost, "/submit/S1", b.payload("S1", "")); err != nil || a.status != http.StatusServiceUnavailable ||
		a.get("message").String() != "PostgreSQL cannot be used: "+message || a.get("hint").String() != hint {
		t.Errorf("a submission: %d %s, %v", a.status, a.raw, err)
	}
	cfg := b.wantChecked("store", message, hint)
	cfg.Server.StartTimeout, cfg.DataDir = time.Second, t.TempDir()
	a, err := app.New(cfg, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); !strings.Contains(core.MessageOf(err), message) || core.HintOf(err) != hint {
		t.Errorf("the start: %s -> %s", core.MessageOf(err), core.HintOf(err))
	}
	b.eventually(wait, func() (bool, string) { return len(said()) > 0, "the outbox does not say it" })
	serve("server")
	b.eventually(wait, func() (bool, string) {
		a := b.ready()
		return a.get("components.store").String() == "up" && a.status == http.StatusOK, string(a.raw)
	})
	work(1)
	b.awaitConverged()
	c.check(b)
	if lines := said(); len(lines) != 1 {
		t.Errorf("the outbox says it %d times: %s", len(lines), lines)
	}
}

// securedEngine is an Elasticsearch with TLS and users, that tutti reaches by another address.
type securedEngine struct {
	*elasticEngine
	address string
}

func (e securedEngine) url() string { return e.address }

// TestElasticsearchExpired: of a real Elasticsearch whose certificate has expired tutti check, /ready and the log say so in one
// sentence, and what is accepted waits; once the engine has a valid one again, all works without a restart.
func TestElasticsearchExpired(t *testing.T) {
	t.Parallel()
	server, address := startElasticsearch(t, "--secure")
	node := filepath.Dir(server.record)
	read := func(name string) []byte {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(node, name))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	certificates := map[string][]byte{"http": read("config/http.p12"), "expired": read("config/expired.p12")}
	// The engine takes up its file some seconds later, and only for new connections.
	serve := func(certificate string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(node, "config", "http.p12"), certificates[certificate], 0o600); err != nil { // it keeps its owner
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(read("ca.pem"))
	host := strings.TrimPrefix(address, "https://")
	relay := storetest.NewRelay(t, host)
	w := newWorld(t, settings{environ: []string{
		"TUTTI_INDEX_CA_FILE=" + filepath.Join(node, "ca.pem"), "TUTTI_INDEX_USERNAME=tutti", "TUTTI_INDEX_PASSWORD_FILE=" + filepath.Join(node, "config", "password"),
	}})
	w.alias = "tutti-indextest-" + w.alias
	w.engine = securedEngine{address: "https://" + relay.Addr(), elasticEngine: &elasticEngine{
		t: t, direct: fmt.Sprintf("https://elastic:%s@%s", read("config/password"), host),
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
	}}
	ids := w.fill("S1", 3)
	w.start()
	w.awaitPaused(false)
	w.run("", "", core.JobSucceeded)
	before := len(w.logs.all())
	message, hint, _ := strings.Cut(sayExpired, "; ")
	said := func() (lines []string) {
		for _, line := range w.logs.all()[before:] {
			if strings.Contains(line, `"msg":"repository paused"`) && strings.Contains(line, message) {
				lines = append(lines, line)
			}
		}
		return lines
	}
	serve("expired")
	w.eventually(wait, func() (bool, string) {
		relay.Down()
		relay.Up()
		a := w.ready()
		return a.get("components.index").String() == "down" && strings.Contains(a.get("reasons").String(), sayExpired), string(a.raw)
	})
	w.put("S1", ids[0], `"experiment":{"platform":"changed"}`)
	w.trigger("S1", ids[0])
	w.wantChecked("index", message, hint)
	w.eventually(wait, func() (bool, string) { return len(said()) > 0, "the log does not say it" })
	serve("http")
	w.awaitPaused(false)
	w.awaitConverged(wait)
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
	if lines := said(); len(lines) != 1 {
		t.Errorf("the log says it %d times: %s", len(lines), lines)
	}
}
