//go:build services && linux

package app_test

import (
	"errors"
	"fmt"
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

// postgresServer is a PostgreSQL of one test.
type postgresServer struct {
	t       *testing.T
	environ []string
	dir     string
	port    string
}

// startPostgres starts a PostgreSQL of the test, and returns its URL.
func startPostgres(t *testing.T) (*postgresServer, string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	dir, err := os.MkdirTemp("", "tutti-postgres-") //nolint:usetesting // the server's user may enter it, but not the parents of t.TempDir
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &postgresServer{
		t: t, dir: dir, port: port, environ: append(os.Environ(), "TUTTI_SERVICES_DIR="+dir, "TUTTI_POSTGRES_PORT="+port),
	}
	t.Cleanup(func() {
		if out, err := p.script("stop").CombinedOutput(); err != nil {
			t.Errorf("stopping PostgreSQL: %v\n%s", err, out)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return p, p.start()
}

func (p *postgresServer) script(name string) *exec.Cmd {
	cmd := exec.Command(filepath.Join("..", "..", "deploy", "local", "postgres", name))
	cmd.Env = p.environ
	return cmd
}

func (p *postgresServer) start() (url string) {
	p.t.Helper()
	cmd := p.script("start")
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("starting PostgreSQL: %v\n%s", err, log.String())
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(line, "TUTTI_TEST_POSTGRES_URL=")
}

// signal sends a signal to the server's first process, and to all others unless it is SIGKILL, which they notice.
func (p *postgresServer) signal(signal syscall.Signal) {
	p.t.Helper()
	record, err := os.ReadFile(filepath.Join(p.dir, "postgres", "node-"+p.port, "data", "postmaster.pid"))
	if err != nil {
		p.t.Fatal(err)
	}
	first, err := strconv.Atoi(strings.Fields(string(record))[0])
	if err != nil {
		p.t.Fatal(err)
	}
	processes := []int{first}
	if signal != syscall.SIGKILL {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", first, first))
		if err != nil {
			p.t.Fatal(err)
		}
		for text := range strings.FieldsSeq(string(children)) {
			if id, err := strconv.Atoi(text); err == nil {
				processes = append(processes, id)
			}
		}
	}
	for i, id := range processes {
		if err := syscall.Kill(id, signal); err != nil && (i == 0 || !errors.Is(err, syscall.ESRCH)) {
			p.t.Fatal(err)
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
				var server *postgresServer
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
