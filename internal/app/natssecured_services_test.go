//go:build services

package app_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tutti/internal/app"
	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/queuetest"
)

// natsServers are the servers of a way that deploy/local/nats/start starts, and copies of the files of their clients.
type natsServers struct {
	t          *testing.T
	way        string
	dir, files string
	port       int
}

// startNATSServers starts the servers of a way; they are stopped at the end of the test.
func startNATSServers(t *testing.T, way string) *natsServers {
	t.Helper()
	s := &natsServers{t: t, way: way, files: t.TempDir()}
	s.script("stop") // of an earlier test that was killed
	t.Cleanup(func() { s.script("stop") })
	s.start()
	for _, name := range []string{"ca.pem", "foreign.pem", "client.pem", "client.key", "password", "nkey", "tutti.creds", "expired.creds", "foreign.creds"} {
		if content, err := os.ReadFile(filepath.Join(s.dir, name)); err == nil {
			s.write(name, string(content))
		}
	}
	_, port, _ := strings.Cut(filepath.Base(s.dir), "-")
	var err error
	if s.port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *natsServers) script(name string) string {
	s.t.Helper()
	var progress strings.Builder
	command := exec.Command("../../deploy/local/nats/"+name, s.way)
	command.Stderr = &progress
	out, err := command.Output()
	if err != nil {
		s.t.Errorf("%s: %v\n%s", name, err, progress.String())
	}
	return strings.TrimSpace(string(out))
}

// start starts the servers that do not run.
func (s *natsServers) start() {
	s.t.Helper()
	_, s.dir, _ = strings.Cut(s.script("start"), "TUTTI_TEST_NATS=")
	if s.dir == "" {
		s.t.FailNow()
	}
}

func (s *natsServers) signal(signal syscall.Signal, servers ...string) {
	s.t.Helper()
	for _, name := range servers {
		text := s.read(filepath.Join(s.dir, name+".pid"))
		pid, err := strconv.Atoi(strings.TrimSpace(text))
		if err == nil {
			err = syscall.Kill(pid, signal)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// reload makes servers read their configuration again, and waits until they have.
func (s *natsServers) reload(servers ...string) {
	s.t.Helper()
	for _, name := range servers {
		reloads := func() int {
			return strings.Count(s.read(filepath.Join(s.dir, name+".log")), "Reloaded server configuration")
		}
		before := reloads()
		s.signal(syscall.SIGHUP, name)
		for end := time.Now().Add(wait); reloads() == before; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				s.t.Fatalf("%s does not read its configuration again", name)
			}
		}
	}
}

func (s *natsServers) read(file string) string {
	s.t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(content)
}

// file returns the content of a client's file, "" for one that the way does not have.
func (s *natsServers) file(name string) string {
	content, _ := os.ReadFile(filepath.Join(s.files, name))
	return string(content)
}

// write replaces a file of the clients, in one step.
func (s *natsServers) write(name, content string) {
	s.t.Helper()
	file := filepath.Join(s.files, name)
	err := os.WriteFile(file+".new", []byte(content), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// url returns the URL of the cluster's servers, or of the single one.
func (s *natsServers) url(single bool) string {
	at := func(i int) string { return "nats://127.0.0.1:" + strconv.Itoa(s.port+i) }
	if single {
		return at(3)
	}
	return at(0) + "," + at(1) + "," + at(2)
}

// environ returns variables with the names of files replaced.
func (s *natsServers) environ(variables string) (all []string) {
	if !strings.Contains(variables, "CA_FILE") {
		variables += " CA_FILE=$/ca.pem"
	}
	for v := range strings.FieldsSeq(variables) {
		all = append(all, "TUTTI_QUEUE_"+strings.ReplaceAll(v, "$", s.files))
	}
	return all
}

// natsWorld is a world on secured servers. What tutti has accepted is in Song, and nothing else.
type natsWorld struct {
	*world
	servers *natsServers
	single  bool
	shown   []string
	records int
}

// submit puts n records and triggers them, and returns how many triggers were accepted. Records whose trigger was not are deleted.
func (w *natsWorld) submit(n int) (accepted int) {
	w.t.Helper()
	for range n {
		w.records++
		id := fmt.Sprintf("record-%d", w.records)
		w.put("S1", id, "")
		if w.tryPost(recordPath("S1", id)) {
			accepted++
		} else {
			w.song.Delete(id)
		}
	}
	return accepted
}

// awaitReady waits until /ready is healthy.
func (w *natsWorld) awaitReady() {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		w.shown = append(w.shown, string(a.raw))
		return a.get("status").String() == "healthy", string(a.raw)
	})
}

// restart kills the servers that tutti uses, and starts them again.
func (w *natsWorld) restart() {
	w.t.Helper()
	if w.single {
		w.servers.signal(syscall.SIGKILL, "single")
	} else {
		w.servers.signal(syscall.SIGKILL, "node0", "node1", "node2")
	}
	w.servers.start()
}

// outage holds that while what broke is wrong, /ready says the reason and nothing is accepted, the log says it once, and all is well once
// it is healed.
func (w *natsWorld) outage(reason string, broken, healed func()) {
	w.t.Helper()
	before := len(w.logs.all())
	broken()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		w.shown = append(w.shown, string(a.raw))
		if a.get("components.queue").String() == "up" { // it has reconnected within the second in which files of TLS are not read again
			w.restart()
		}
		return a.get("components.queue").String() == "down" && strings.Contains(a.get("reasons").String(), reason), string(a.raw)
	})
	if n := w.submit(3); n != 0 {
		w.t.Errorf("%d records were accepted", n)
	}
	said := 0
	for _, line := range w.logs.all()[before:] {
		if strings.Contains(line, reason) && strings.Contains(line, `"the queue is not connected"`) {
			said++
		}
	}
	if said != 1 {
		w.t.Errorf("the log says %d times: %s", said, reason)
	}
	healed()
	w.awaitReady()
	if n := w.submit(5); n == 0 {
		w.t.Error("nothing is accepted")
	}
	w.awaitConverged(wait)
}

// TestSecuredNATS: on real servers with TLS, alone and as a cluster of three, and with each way of authentication, a user with the documented
// rights indexes what is accepted, while a server is killed and comes back too. A wrong password, a wrong file of credentials, nkey or
// authority is named by tutti check and the start, and, while tutti runs, by /ready and the log, until it is right again. No secret is shown.
func TestSecuredNATS(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name string
		// ways are the variables of each way of authentication; wrong are others, which servers refuse, and key is the key of them.
		ways       []string
		wrong, key string
	}{
		{
			queuetest.WayUsers,
			[]string{"USERNAME=tutti PASSWORD_FILE=$/password", "NKEY_FILE=$/nkey"},
			"USERNAME=tutti PASSWORD=not-the-password", "queue.username and queue.password",
		},
		{
			queuetest.WayCertificates,
			[]string{"CLIENT_CERT_FILE=$/client.pem CLIENT_KEY_FILE=$/client.key"},
			"USERNAME=tutti PASSWORD=no-certificate", "queue.clientCertFile",
		},
		{queuetest.WayOperator, []string{"CREDENTIALS_FILE=$/tutti.creds"}, "CREDENTIALS_FILE=$/foreign.creds", "queue.credentialsFile"},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s := startNATSServers(t, way.name)
			for variables, key := range map[string]string{
				way.wrong: way.key, way.ways[0] + " CA_FILE=$/foreign.pem": "queue.caFile", way.ways[0] + " SERVER_NAME=nats.example": "queue.serverName",
			} {
				t.Run("wrong "+key, func(t *testing.T) {
					for _, single := range []bool{false, true} {
						wantRefused(t, s, single, variables, key)
					}
				})
			}
			for _, variables := range way.ways {
				kind, _, _ := strings.Cut(variables, "=")
				t.Run(kind+" single", func(t *testing.T) { trySecuredNATS(t, s, variables, true) })
				t.Run(kind+" cluster", func(t *testing.T) { trySecuredNATS(t, s, variables, false) })
			}
		})
	}
}

// wantRefused holds that the hints of tutti check and of the start contain a key, or what else to change.
func wantRefused(t *testing.T, s *natsServers, single bool, variables, key string) {
	t.Helper()
	w := newWorld(t, settings{queueURL: s.url(single), environ: s.environ(variables)})
	cfg, err := config.Parse([]byte(w.yaml()), w.set.environ)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Server.StartTimeout = 1
	for _, f := range check.Run(t.Context(), cfg, check.Options{}).Findings {
		if f.Subject == "queue" && (f.Status != check.StatusFail || !strings.Contains(f.Hint, key)) {
			t.Errorf("%s: the check found %v %s -> %s, want %s", variables, f.Status, f.Message, f.Hint, key)
		}
	}
	a, err := app.New(cfg, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); !strings.Contains(core.HintOf(err), key) {
		t.Errorf("%s: the start: %s -> %s, want %s", variables, core.MessageOf(err), core.HintOf(err), key)
	}
}

// trySecuredNATS runs tutti on the cluster, or on the single server, with the variables of a way.
func trySecuredNATS(t *testing.T, s *natsServers, variables string, single bool) {
	s.t = t
	w := &natsWorld{
		world: newWorld(t, settings{queueURL: s.url(single), environ: s.environ(variables)}), servers: s, single: single,
	}
	cfg, err := config.Parse([]byte(w.yaml()), w.set.environ)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range check.Run(t.Context(), cfg, check.Options{}).Findings {
		onlyCopy := single && f.Status == check.StatusWarn && strings.Contains(f.Message, "could not check whether") // it has no monitoring address
		if f.Subject == "queue" && f.Status != check.StatusOK && !onlyCopy {
			t.Errorf("the check found %s -> %s", f.Message, f.Hint)
		}
	}
	w.start()
	w.awaitReady()
	w.submit(20)
	killed := "node1"
	if single {
		killed = "single"
	}
	s.signal(syscall.SIGKILL, killed)
	if n := w.submit(20); n == 0 && !single {
		t.Error("the cluster accepts nothing without one of its servers")
	}
	s.start()
	w.awaitReady()
	if n := w.submit(10); n == 0 {
		t.Error("nothing is accepted")
	}
	w.awaitConverged(wait)
	authority := s.file("ca.pem")
	w.outage("its certificate is signed by an unknown authority; set queue.caFile to a PEM file of the authority's certificate",
		func() { s.write("ca.pem", s.file("foreign.pem")); w.restart() }, func() { s.write("ca.pem", authority) })
	const refused = "the server does not accept the credentials; check "
	switch {
	case strings.HasPrefix(variables, "USERNAME"):
		auth, before, after := s.read(filepath.Join(s.dir, "auth.conf")), s.file("password"), "another-p4ssw0rd"+strconv.FormatBool(single)
		w.outage(refused+"queue.username and queue.password", func() {
			if err := os.WriteFile(filepath.Join(s.dir, "auth.conf"), []byte(strings.Replace(auth, before, after, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			// Of the cluster only one has the former password and runs: a client that found another such one would be connected, and refused, again.
			s.signal(syscall.SIGKILL, "node1", "node2")
			s.reload("single", "node0")
			s.start()
		}, func() { s.write("password", after) })
		defer w.hides(before, after)
		serve := func(name string) {
			for _, kind := range []string{".pem", ".key"} {
				if err := os.WriteFile(filepath.Join(s.dir, "server"+kind), []byte(s.read(filepath.Join(s.dir, name+kind))), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w.restart()
		}
		const renew = "renew the certificate, or set this machine's clock"
		w.outage("its certificate has expired or is not valid yet; "+renew, func() {
			serve("expired")
			wantRefused(t, s, single, variables, renew)
		}, func() { serve("route") }) // a valid certificate for the same address
	case strings.HasPrefix(variables, "CREDENTIALS"):
		right := s.file("tutti.creds")
		w.outage(refused+"queue.credentialsFile", func() { s.write("tutti.creds", s.file("expired.creds")); w.restart() }, func() { s.write("tutti.creds", right) })
		w.outage("tutti.creds does not contain a user JWT and an NKEY seed", func() { s.write("tutti.creds", "nothing"); w.restart() }, func() { s.write("tutti.creds", right) })
		for line := range strings.Lines(right) {
			if len(line) > 50 {
				defer w.hides(strings.TrimSpace(line))
			}
		}
	case strings.HasPrefix(variables, "NKEY"):
		right := s.file("nkey")
		defer w.hides(right)
		w.outage("nkey does not contain the seed of an nkey", func() { s.write("nkey", "nothing"); w.restart() }, func() { s.write("nkey", right) })
	}
	if a := w.mustRequest(http.MethodGet, "/dead-letters", http.StatusOK); len(a.get("items").Array()) > 0 {
		t.Errorf("dead letters: %s", a.raw)
	}
}

// hides holds that no log, no /ready and no configuration shows one of the secrets.
func (w *natsWorld) hides(secrets ...string) {
	w.t.Helper()
	cfg, err := config.Parse([]byte(w.yaml()), w.set.environ)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := cfg.YAML()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, shown := range append(append(w.shown, w.logs.all()...), string(text)) {
		for _, secret := range secrets {
			if strings.Contains(shown, secret) {
				w.t.Errorf("a secret is shown: %s", shown)
			}
		}
	}
}
