//go:build services

package app_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/tools/testkit"
)

const (
	// upgradesVariable lists the upgrades to try, as FROM:TO with flavours of deploy/local/engine/start; none by default.
	upgradesVariable = "TUTTI_UPGRADES"
	// changeInterval is the time between two changes of records.
	changeInterval = 20 * time.Millisecond
	// errorWithin is how long a search may take to fail while there is no engine.
	errorWithin = 10 * time.Second
)

// TestUpgrade: an engine is stopped and its next major version started on its data and port, while records change 50 times a second.
// tutti pauses, continues by itself, and the index equals the repository; what was open before has an answer, and the new version is
// identified.
func TestUpgrade(t *testing.T) {
	for pair := range strings.FieldsSeq(os.Getenv(upgradesVariable)) {
		t.Run(pair, func(t *testing.T) {
			from, to, ok := strings.Cut(pair, ":")
			if !ok {
				t.Fatalf("%s: %q is not FROM:TO", upgradesVariable, pair)
			}
			tryUpgrade(t, from, to)
		})
	}
}

// directEngine is an engine without the proxies, which do not outlive it.
type directEngine struct{ *elasticEngine }

func (e directEngine) url() string { return e.direct }

func tryUpgrade(t *testing.T, from, to string) {
	own := newOwnNode(t)
	t.Setenv("TUTTI_TEST_ELASTICSEARCH_URL", own.start(from))
	w, _ := newCatalogued(t, settings{}, folder{"a/base.json": based("a", aliasWord, "")})
	w.engine = directEngine{w.engine.(*elasticEngine)}
	w.fill("STABLE", 300)
	ids := w.fill("S1", 200)
	w.start()
	w.run("", "", core.JobSucceeded)
	w.awaitAvailable("a")
	w.awaitConverged(wait)
	old := w.engineVersion()
	first := w.wantStable("null")
	stream := w.openStream()
	changes := w.change("S1", ids)
	w.awaitOutcomes(core.OutcomeRemoved, 10)

	jobs := []string{w.startRun("", "")}
	began := time.Now()
	own.stop()
	w.awaitPaused(true)
	t.Logf("stopped and paused after %s", time.Since(began).Round(time.Millisecond))
	if paused := w.metric("tutti_repository_paused", "repository", code); paused != 1 {
		t.Errorf("tutti_repository_paused is %v", paused)
	}
	jobs = append(jobs, w.startRun("", ""))
	asked := time.Now()
	if a := w.stable("null"); a.get("errors.0.message").String() == "" || time.Since(asked) > errorWithin {
		t.Errorf("a search without an engine, after %s: %s", time.Since(asked), a.raw)
	}

	began = time.Now()
	own.start(to)
	t.Logf("the new version started after %s", time.Since(began).Round(time.Millisecond))
	w.awaitPaused(false)
	w.awaitAvailable("a")
	t.Logf("resumed after %s", time.Since(began).Round(time.Millisecond))
	if paused := w.metric("tutti_repository_paused", "repository", code); paused != 0 {
		t.Errorf("tutti_repository_paused is %v", paused)
	}
	w.wantStable(first)
	stream.wantGone()
	w.wantIdentified(old)
	for _, job := range jobs {
		if j := w.awaitJob(job); j.Get("state").String() != string(core.JobSucceeded) {
			t.Errorf("a job that ran or waited: %s", j.Raw)
		}
	}
	indexed, removed := w.outcomes(core.OutcomeIndexed), w.outcomes(core.OutcomeRemoved)
	w.awaitOutcomes(core.OutcomeIndexed, indexed+10)
	w.awaitOutcomes(core.OutcomeRemoved, removed+10)
	t.Logf("%d changes", changes())
	w.awaitConverged(2 * time.Minute)
	t.Logf("converged after %s", time.Since(began).Round(time.Millisecond))
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
	if n := w.mustRequest(http.MethodGet, "/jobs?limit=10", http.StatusOK).get("jobs.#").Int(); n != 3 {
		t.Errorf("%d jobs, want the 3 that were started", n)
	}
}

// ownNode is an engine with its own data and port.
type ownNode struct {
	t   *testing.T
	env []string
	// flavour is the running one, "" for none.
	flavour string
}

func newOwnNode(t *testing.T) *ownNode {
	t.Helper()
	dir, err := os.MkdirTemp("", "tutti-upgrade-") //nolint:usetesting // another user runs the engine, and must reach the folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(testkit.NewAddress(t))
	n := &ownNode{t: t, env: append(os.Environ(), "TUTTI_ENGINE_NODE="+dir+"/node", "TUTTI_ENGINE_PORT="+port)}
	t.Cleanup(n.stop)
	return n
}

// start starts a flavour, and returns its URL.
func (n *ownNode) start(flavour string) string {
	n.t.Helper()
	n.flavour = flavour
	_, url, ok := strings.Cut(strings.TrimSpace(n.run("start")), "=")
	if !ok {
		n.t.Fatalf("starting %s printed no URL", flavour)
	}
	return url
}

// stop stops the engine, if it runs.
func (n *ownNode) stop() {
	n.t.Helper()
	if n.flavour != "" {
		n.run("stop")
		n.flavour = ""
	}
}

func (n *ownNode) run(script string) string {
	n.t.Helper()
	cmd := exec.Command("../../deploy/local/engine/"+script, n.flavour)
	var progress bytes.Buffer
	cmd.Env, cmd.Stderr = n.env, &progress
	out, err := cmd.Output()
	if err != nil {
		n.t.Fatalf("%s %s: %v\n%s", script, n.flavour, err, progress.String())
	}
	return string(out)
}

// change publishes, unpublishes, changes and deletes the records of a study, and triggers each, until the returned function is called.
// That returns the number of changes.
func (w *world) change(study string, ids []string) (end func() int) {
	stop, done := make(chan struct{}), make(chan struct{})
	n := 0
	go func() {
		defer close(done)
		tick := time.NewTicker(changeInterval)
		defer tick.Stop()
		for {
			id := ids[rand.IntN(len(ids))]
			switch rand.IntN(4) {
			case 0:
				w.song.SetState(id, "UNPUBLISHED")
			case 1:
				w.song.SetState(id, "PUBLISHED")
			case 2:
				w.song.Delete(id)
			default: // sometimes with a new field
				w.put(study, id, fmt.Sprintf(`"experiment":{"change":%d,"field%d":%d}`, n, n/100, n))
			}
			n++
			if !w.tryPost(recordPath(study, id)) {
				w.t.Errorf("the trigger of %s was refused", id)
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	end = sync.OnceValue(func() int {
		close(stop)
		<-done
		return n
	})
	w.t.Cleanup(func() { end() })
	return end
}

// stable requests a page of the records that do not change, after a cursor in JSON.
func (w *world) stable(after string) answer {
	w.t.Helper()
	q := graphql("", `query($a:JSON){a{hits(first:5,filters:{op:"in",content:{fieldName:"studyId",value:["STABLE"]}},
		sort:[{fieldName:"analysisId",order:asc}],searchAfter:$a){total edges{searchAfter node{id}}}}}`, `{"a":`+after+`}`)
	a, err := w.tryPostBody("/a/graphql", q.body)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// wantStable fails the test unless the page after a cursor is as wanted, and returns the cursor after it.
func (w *world) wantStable(after string) (next string) {
	w.t.Helper()
	a := w.stable(after)
	edges := a.get("data.a.hits.edges")
	if a.get("errors").Exists() || a.get("data.a.hits.total").Int() != 300 || edges.Get("#").Int() != 5 {
		w.t.Fatalf("after %s: %s", after, a.raw)
	}
	return edges.Get("4.searchAfter").Raw
}

// heldStream is a stream of documents that is held after its first page.
type heldStream struct {
	t       *testing.T
	release func()
	err     chan error
}

// openStream reads the first page of a stream of all documents.
func (w *world) openStream() *heldStream {
	w.t.Helper()
	release, opened := make(chan struct{}), make(chan struct{})
	s := &heldStream{t: w.t, release: sync.OnceFunc(func() { close(release) }), err: make(chan error, 1)}
	open := sync.OnceFunc(func() { close(opened) })
	var reading sync.WaitGroup
	reading.Go(func() {
		s.err <- w.app.Index().Stream(w.t.Context(), w.alias, index.StreamRequest{}, func([]index.Hit) error {
			open()
			<-release
			return nil
		})
	})
	w.t.Cleanup(func() {
		s.release()
		reading.Wait()
	})
	select {
	case <-opened:
	case err := <-s.err:
		w.t.Fatalf("a stream of the documents: %v", err)
	}
	return s
}

// wantGone continues the stream, and fails the test unless it says that its point in time is gone.
func (s *heldStream) wantGone() {
	s.t.Helper()
	s.release()
	select {
	case err := <-s.err:
		if core.CodeOf(err) != core.CodeUnavailable || !strings.Contains(core.MessageOf(err), "discarded its snapshot of the documents") {
			s.t.Errorf("a stream that was open: %v", err)
		}
	case <-time.After(wait):
		s.t.Error("a stream that was open hangs")
	}
}

// engineVersion returns the version that the engine reports.
func (w *world) engineVersion() string {
	w.t.Helper()
	_, body := w.engine.(directEngine).call(http.MethodGet, "/_cat/nodes?h=version", "")
	return strings.TrimSpace(string(body))
}

// wantIdentified fails the test unless the running tutti and tutti check identify the engine's version, which is not old.
func (w *world) wantIdentified(old string) {
	w.t.Helper()
	version := w.engineVersion()
	w.t.Logf("upgraded from %s to %s", old, version)
	if version == "" || version == old {
		w.t.Fatalf("the engine is %q, it was %q", version, old)
	}
	lines := w.logs.all()
	last := ""
	for _, line := range lines {
		if strings.Contains(line, `"identified the index engine"`) {
			last = line
		}
	}
	if !strings.Contains(last, `"version":"`+version+`"`) {
		w.t.Errorf("tutti identified last: %s", last)
	}
	cfg, err := config.Parse([]byte(w.yaml()), w.set.environ)
	if err != nil {
		w.t.Fatal(err)
	}
	var found []string
	for _, f := range check.Run(w.t.Context(), cfg, check.Options{}).Findings {
		found = append(found, f.Message)
	}
	if !strings.Contains(strings.Join(found, "\n"), " "+version+", cluster ") {
		w.t.Errorf("tutti check found %q", found)
	}
}
