//go:build services && linux

package app_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/storetest"
	"tutti/internal/tools/testkit"
)

const (
	// outagesVariable adds the outages that take more than a minute; make chaos sets it.
	outagesVariable = "TUTTI_TEST_OUTAGES"
	// answeredWithin is how soon every request is answered while a server is out: the limits of one wait for its bytes, 30 s, and of a new
	// connection, 10 s, with room for a busy machine.
	answeredWithin = time.Minute
	// readyWithin is how soon /ready answers.
	readyWithin = 10 * time.Second
)

// ownServer is a server of one test, which the scripts in a folder of deploy/local start and stop.
type ownServer struct {
	t       *testing.T
	name    string
	environ []string
	options []string // of its scripts
	// record is the file with the id of its first process.
	record string
}

// startOwn starts a server of the test, and returns its URL. configure returns the variables of its scripts, and the file with the id of its
// first process, for an empty folder and a free port.
func startOwn(
	t *testing.T, name string, configure func(dir, port string) (environ []string, record string), options ...string,
) (*ownServer, string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(testkit.NewAddress(t))
	dir, err := os.MkdirTemp("", "tutti-"+name+"-") //nolint:usetesting // the server's user may enter it, but not the parents of t.TempDir
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	environ, record := configure(dir, port)
	s := &ownServer{t: t, name: name, environ: append(os.Environ(), environ...), options: options, record: record}
	t.Cleanup(func() {
		if out, err := s.script("stop").CombinedOutput(); err != nil {
			t.Errorf("stopping %s: %v\n%s", name, err, out)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return s, s.start()
}

// startPostgres starts a PostgreSQL of the test, and returns its URL.
func startPostgres(t *testing.T) (*ownServer, string) {
	t.Helper()
	return startOwn(t, "postgres", func(dir, port string) ([]string, string) {
		return []string{"TUTTI_SERVICES_DIR=" + dir, "TUTTI_POSTGRES_PORT=" + port},
			filepath.Join(dir, "postgres", "node-"+port, "data", "postmaster.pid")
	})
}

// startElasticsearch starts an Elasticsearch of the test, and returns its URL.
func startElasticsearch(t *testing.T, options ...string) (*ownServer, string) {
	t.Helper()
	return startOwn(t, "engine", func(dir, port string) ([]string, string) {
		node := filepath.Join(dir, "node")
		return []string{"TUTTI_ENGINE_NODE=" + node, "TUTTI_ENGINE_PORT=" + port, "TUTTI_ES_HEAP=512m"}, filepath.Join(node, "pid")
	}, options...)
}

func (s *ownServer) script(name string) *exec.Cmd {
	cmd := exec.Command(filepath.Join("..", "..", "deploy", "local", s.name, name), s.options...)
	cmd.Env = s.environ
	return cmd
}

func (s *ownServer) start() (url string) {
	s.t.Helper()
	cmd := s.script("start")
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("starting %s: %v\n%s", s.name, err, log.String())
	}
	line, _, _ := strings.Cut(string(out), "\n")
	_, url, _ = strings.Cut(line, "=")
	return url
}

// signal sends a signal to the server's first process, and to all others unless it is SIGKILL, which they notice.
func (s *ownServer) signal(signal syscall.Signal) {
	s.t.Helper()
	record, err := os.ReadFile(s.record)
	if err != nil {
		s.t.Fatal(err)
	}
	first, err := strconv.Atoi(strings.Fields(string(record))[0])
	if err != nil {
		s.t.Fatal(err)
	}
	processes := []int{first}
	if signal != syscall.SIGKILL {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", first, first))
		if err != nil {
			s.t.Fatal(err)
		}
		for text := range strings.FieldsSeq(string(children)) {
			if id, err := strconv.Atoi(text); err == nil {
				processes = append(processes, id)
			}
		}
	}
	for i, id := range processes {
		if err := syscall.Kill(id, signal); err != nil && (i == 0 || !errors.Is(err, syscall.ESRCH)) {
			s.t.Fatal(err)
		}
	}
}

// TestPostgresOutages: while PostgreSQL is killed, frozen, closed or blocked, /ready names the store, every request is answered in bounded
// time with 503 and a message, and triggers are accepted. Once it is back all works without a restart, and nothing that was answered with
// success is lost or stored twice.
func TestPostgresOutages(t *testing.T) {
	t.Parallel()
	modes := []string{"killed", "closed", "blocked"}
	if os.Getenv(outagesVariable) != "" { // the longest one, which for tutti differs little from blocked
		modes = append(modes, "frozen")
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			var address string
			var out, back func()
			switch mode {
			case "killed", "frozen":
				var server *ownServer
				server, address = startPostgres(t)
				out, back = func() { server.signal(syscall.SIGKILL) }, func() { server.start() }
				if mode == "frozen" {
					out, back = func() { server.signal(syscall.SIGSTOP) }, func() { server.signal(syscall.SIGCONT) }
				}
			default:
				var relay *storetest.Relay
				relay, address = storetest.PostgresRelay(t)
				out, back = relay.Down, relay.Up
				if mode == "blocked" {
					out, back = relay.Block, relay.Unblock
				}
			}
			b := newBuiltIn(t, plan{store: address})
			b.client.Timeout = answeredWithin
			b.startReady()
			b.prepareStudies("S1")
			c := newClient()
			work := func() {
				t.Helper()
				for n := range 5 {
					if !c.once(b, b.payload("S1", ""), "S1", n) {
						t.Errorf("a submission failed: %v", c.faults)
					}
				}
			}
			work()
			b.awaitConverged()
			ids := make([]string, 0, len(c.published))
			for id := range c.published {
				ids = append(ids, id)
			}
			out()
			ended := false
			defer func() { // a frozen server cannot be stopped
				if !ended {
					back()
				}
			}()
			b.amidOutage(c, ids)
			back()
			ended = true
			b.eventually(wait, func() (bool, string) {
				a := b.ready()
				return a.get("components.store").String() == "up" && a.status == http.StatusOK, string(a.raw)
			})
			work()
			b.awaitConverged()
			c.check(b)
			b.wantNoDeadLetters()
		})
	}
}

// amidOutage sends requests while the store is out.
func (b *builtIn) amidOutage(c *client, ids []string) {
	b.t.Helper()
	b.eventually(wait, func() (bool, string) {
		began := time.Now()
		a := b.ready()
		if took := time.Since(began); took > readyWithin {
			b.t.Errorf("/ready answered after %s", took)
		}
		return a.get("components.store").String() == "down" && strings.Contains(a.get("reasons").Raw, "store"), string(a.raw)
	})
	var work sync.WaitGroup
	timed := func(what, method, path, body string, status int) {
		work.Go(func() {
			began := time.Now()
			a, err := b.send(method, path, body)
			took := time.Since(began)
			b.t.Logf("%s: %d after %s: %.200s", what, a.status, took.Round(time.Millisecond), a.raw)
			if err != nil || a.status != status || status == http.StatusServiceUnavailable && (a.get("message").String() == "" || a.header.Get("Retry-After") == "") {
				b.t.Errorf("%s: %d %s, %v after %s, want %d", what, a.status, a.raw, err, took, status)
			}
		})
	}
	for range 3 {
		payload := b.payload("S1", "")
		c.note(func() { c.numbered[gjson.Get(payload, "experiment.number").Int()] = true })
		timed("submitting", http.MethodPost, "/submit/S1", payload, http.StatusServiceUnavailable)
	}
	timed("reading", http.MethodGet, "/studies/all", "", http.StatusServiceUnavailable)
	timed("unpublishing", http.MethodPut, statePath("S1", "suppress", "none"), "", http.StatusServiceUnavailable)
	for _, id := range ids {
		timed("requesting indexing", http.MethodPost, "/index/repository/"+builtInCode+"/organization/S1/id/"+id, "", http.StatusAccepted)
	}
	work.Wait()
}

// TestEngineOutages: while the engine is closed or blocked, /ready names the index, triggers are accepted, and searches are answered in bounded
// time with an error. Once it is back, all that was accepted is in the index without a restart.
func TestEngineOutages(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"closed", "blocked"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := newWorld(t, settings{more: catalogueDir(dir)})
			folder{"a/base.json": based("a", aliasWord, "")}.write(w, dir)
			engine, err := url.Parse(w.engine.url())
			if err != nil {
				t.Fatal(err)
			}
			relay := storetest.NewRelay(t, engine.Host)
			out, back := relay.Down, relay.Up
			if mode == "blocked" {
				out, back = relay.Block, relay.Unblock
			}
			plain := strings.Replace(w.yaml(), engine.Host, relay.Addr(), 1)
			w.set.configuration = func(*world) string { return plain }
			w.client.Timeout = answeredWithin
			ids := w.fill("S1", 60)
			w.start()
			w.awaitPaused(false)
			w.run("", "", core.JobSucceeded)
			w.awaitAvailable("a")
			out()
			for i, id := range ids[:30] {
				if i%3 == 0 {
					w.song.SetState(id, "UNPUBLISHED")
				} else {
					w.put("S1", id, `"changed":true`)
				}
				w.trigger("S1", id)
			}
			began := time.Now()
			a, err := (&builtIn{world: w}).send(http.MethodPost, "/a/graphql", `{"query":"{a{hits{total}}}"}`)
			t.Logf("search: %d after %s: %.300s", a.status, time.Since(began).Round(time.Millisecond), a.raw)
			if err != nil || a.get("errors.0.message").String() == "" {
				t.Errorf("search: %d %s, %v", a.status, a.raw, err)
			}
			w.awaitPaused(true)
			back()
			w.awaitPaused(false)
			w.awaitConverged(wait)
			if letters := w.deadLettersByRecord(); len(letters) != 0 {
				t.Errorf("dead letters: %+v", letters)
			}
		})
	}
}

// TestElasticsearchOutages: while a real Elasticsearch is killed, frozen, or has the index closed or blocked, in the middle of indexing, /ready
// names the reason, each state is one line of the log, and triggers are accepted. Once it is back, all that was accepted is in the index without
// a restart, and nothing has become a dead letter.
func TestElasticsearchOutages(t *testing.T) {
	t.Parallel()
	server, address := startElasticsearch(t)
	w := newWorld(t, settings{pageSize: 20, elasticsearch: address})
	ids := w.fill("S1", 200)
	w.start()
	w.awaitPaused(false)
	w.run("", "", core.JobSucceeded)
	setting := func(name, value string) func() {
		return func() {
			w.byHand(http.MethodPut, "/"+w.alias+"/_settings", fmt.Sprintf(`{"index.blocks.%s":%s}`, name, value))
		}
	}
	post := func(path string) func() {
		return func() { w.byHand(http.MethodPost, "/"+w.alias+path, "") }
	}
	var jobs []string
	for _, outage := range []struct {
		name, component, says string
		out, back             func()
	}{
		{"closed", "degraded", "is closed; open it: POST /" + w.alias + "/_open", post("/_close"), post("/_open")},
		{"writes blocked", "degraded", "is blocked", setting("write", "true"), setting("write", "null")},
		{
			"flood stage", "degraded", "is over its flood-stage watermark; free disk space",
			setting("read_only_allow_delete", "true"), setting("read_only_allow_delete", "null"),
		},
		{"frozen", "down", "", func() { server.signal(syscall.SIGSTOP) }, func() { server.signal(syscall.SIGCONT) }},
		{"killed", "down", "", func() { server.signal(syscall.SIGKILL) }, func() { server.start() }},
	} {
		began := time.Now()
		logged := len(w.logs.all())
		jobs = append(jobs, w.startRun("", ""))
		end := w.change("S1", ids)
		w.awaitOutcomes(core.OutcomeIndexed, w.outcomes(core.OutcomeIndexed)+20)
		outage.out()
		var reason string
		func() {
			defer outage.back() // a frozen server cannot be stopped
			w.eventually(wait, func() (bool, string) {
				a := w.ready()
				reason = a.get("paused.0.reason").String()
				return a.get("components.index").String() == outage.component && reason != "" && strings.Contains(reason, outage.says) &&
					strings.Contains(a.get("reasons").String(), fmt.Sprintf("repository %s is paused: %s", code, reason)), string(a.raw)
			})
			w.tryPost(recordPath("S1", ids[0]))
		}()
		w.awaitPaused(false)
		changes := end()
		said, pause := false, map[string]int{}
		for _, line := range w.logs.all()[logged:] {
			switch l := gjson.Parse(line); l.Get("msg").String() {
			case "repository paused":
				why := l.Get("reason").String()
				said = said || why == reason
				if pause[why]++; pause[why] > 1 || len(pause) > 3 {
					t.Errorf("%s: in one pause the log says %v", outage.name, pause)
				}
			case "index takes writes":
				pause = map[string]int{}
			case "record will be retried":
				if l.Get("level").String() != slog.LevelDebug.String() && outage.name != "frozen" { // some time out when it answers again
					t.Errorf("%s: the log says %s", outage.name, line)
				}
			}
		}
		if !said {
			t.Errorf("%s: the log does not say %q", outage.name, reason)
		}
		t.Logf("%s: %d changes, %s, %q", outage.name, changes, time.Since(began).Round(time.Millisecond), reason)
	}
	for _, job := range jobs {
		w.awaitJob(job)
	}
	w.awaitConverged(wait)
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}
