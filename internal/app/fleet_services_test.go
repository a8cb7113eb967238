//go:build services

package app_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/storetest"
	"tutti/internal/tools/testkit"
)

// fleetAckWait is the AckWait of a fleet's processes, and takeoverMargin how much later a killed process's pages may be read again.
const (
	fleetAckWait   = 5 * time.Second
	takeoverMargin = 5 * time.Second
)

// fleet is a world with several processes on three NATS servers, one PostgreSQL and one index. It has no tutti in the test's process.
type fleet struct {
	*world
	cluster *queuetest.Cluster
	queue   string // the NATS URLs
	members []*member

	mu    sync.Mutex
	pages []pageRead
	next  atomic.Uint64
}

// member is a process of a fleet.
type member struct {
	*world
	*child
	// ready is the last /ready.
	ready atomic.Bool
}

// pageRead is a call for a page of the Song server.
type pageRead struct {
	study  string
	offset int
	at     time.Time
}

// newFleet returns a fleet whose processes are not started. Song takes pause to serve a page; store is the URL of a PostgreSQL.
func newFleet(t *testing.T, set settings, store string, pause time.Duration) *fleet {
	t.Helper()
	cluster, err := queuetest.StartCluster(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	f := &fleet{cluster: cluster, queue: cluster.URLs(0)}
	set.queueURL, set.ackWait = f.queue, fleetAckWait
	set.song.BeforePage = func(_ *testkit.SongServer, _ int, call testkit.PageCall) {
		f.mu.Lock()
		f.pages = append(f.pages, pageRead{call.Study, call.Offset, time.Now()})
		f.mu.Unlock()
		time.Sleep(pause) // of the upstream
	}
	set.more += fmt.Sprintf("store: {url: %q}\n", store)
	dir := t.TempDir()
	set.more += catalogueDir(dir)
	f.world = newWorld(t, set)
	folder{"a/base.json": based("a", aliasWord, "")}.write(f.world, dir)
	t.Cleanup(f.logState)
	local := f.alias + "-local"
	f.addRepository(fmt.Sprintf("code: %s\ntype: local\nindexName: %s\n", builtInCode, local), local)
	return f
}

// launch starts n more processes, and waits until they are ready.
func (f *fleet) launch(n int) {
	f.t.Helper()
	for range n {
		m := &member{world: f.secondProcess()}
		m.child = m.startChild()
		f.members = append(f.members, m)
	}
	for _, m := range f.members {
		m.awaitPaused(false)
	}
	f.url = f.members[0].url
}

// relaunch stops the i-th process as an operator does, and starts it again.
func (f *fleet) relaunch(i int) {
	f.t.Helper()
	m := &member{world: f.members[i].secondProcess()}
	began := time.Now()
	if err := f.members[i].child.stop(); err != nil {
		f.t.Errorf("process %d stopped with %v", i, err)
	}
	f.t.Logf("process %d stopped in %s", i, time.Since(began).Round(time.Millisecond))
	m.child = m.startChild()
	f.mu.Lock()
	f.members[i] = m
	f.mu.Unlock()
	m.awaitPaused(false)
}

// wrote returns the number of documents that each process wrote.
func (f *fleet) wrote() []int {
	f.t.Helper()
	n := make([]int, len(f.members))
	for i, m := range f.members {
		n[i] = m.total("tutti_documents_total", `outcome="indexed"`, `index="`+f.alias+`"`)
	}
	return n
}

// repeated returns the studies of which a page was read more than once since a time, with when that was first.
func (f *fleet) repeated(since time.Time) map[string]time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, twice := map[pageRead]bool{}, map[string]time.Time{}
	for _, p := range f.pages {
		if p.at.Before(since) {
			continue
		}
		if _, known := twice[p.study]; seen[pageRead{study: p.study, offset: p.offset}] && !known {
			twice[p.study] = p.at
		}
		seen[pageRead{study: p.study, offset: p.offset}] = true
	}
	return twice
}

// fillStudies adds 8 studies of 300 records, or of an eighth of TUTTI_TEST_FLEET_RECORDS, and returns how many records.
func (f *fleet) fillStudies() (records int) {
	f.t.Helper()
	each := 300
	if text := os.Getenv("TUTTI_TEST_FLEET_RECORDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			f.t.Fatal(err)
		}
		each = n / 8
	}
	for i := range 8 {
		f.fill(fmt.Sprintf("S%d", i), each)
	}
	return 8 * each
}

// TestFleetBackfill: three processes read each page of a backfill once and all write. When one of them is killed in the middle of
// the next, the others take over its pages within AckWait, the job succeeds, and the index is the upstream's.
func TestFleetBackfill(t *testing.T) {
	t.Parallel()
	f := newFleet(t, settings{pageSize: 20}, storetest.PostgresURL(t), 20*time.Millisecond)
	records := f.fillStudies()
	f.launch(3)
	began := time.Now()
	f.run("", "", core.JobSucceeded)
	f.wantConverged()
	t.Logf("%d records in %s; written: %v", records, time.Since(began).Round(time.Millisecond), f.wrote())
	if twice := f.repeated(began); len(twice) != 0 {
		t.Errorf("pages were read twice, in the studies %v", slices.Collect(maps.Keys(twice)))
	}
	if slices.Contains(f.wrote(), 0) {
		t.Errorf("the processes wrote %v documents", f.wrote())
	}

	before := time.Now()
	job := f.startRun("", "")
	f.eventually(wait, func() (bool, string) {
		n := f.job(job).Get("totals.fetched").Int()
		return n > int64(records/3), fmt.Sprintf("%d of %d fetched", n, records)
	})
	killed := time.Now()
	f.members[2].kill()
	if j := f.awaitJob(job); j.Get("state").String() != string(core.JobSucceeded) {
		t.Errorf("job %s", j.Raw)
	}
	ended := time.Since(killed)
	f.awaitConverged(wait)
	// A list is reread from the page that was in flight: rows may have moved since.
	takeovers := f.repeated(before)
	for study, at := range takeovers {
		took := at.Sub(killed)
		t.Logf("%s was taken over after %s", study, took.Round(time.Millisecond))
		if took > fleetAckWait+takeoverMargin {
			t.Errorf("%s was taken over after %s, AckWait is %s", study, took, fleetAckWait)
		}
	}
	t.Logf("the job ended %s after the kill", ended.Round(time.Millisecond))
	if len(takeovers) == 0 {
		t.Error("the killed process had no page in flight")
	}
	if letters := f.deadLetters(""); len(letters) != 0 {
		t.Errorf("dead letters: %v", letters)
	}
}

// TestFleetOnce: three processes that start together remove old jobs once, and each retry of a request and of a dead letter is done by
// one of them.
func TestFleetOnce(t *testing.T) {
	t.Parallel()
	const records, failures = 40, 3
	f := newFleet(t, settings{}, storetest.PostgresURL(t), 0)
	f.launch(3)
	f.eventually(wait, func() (bool, string) { // housekeeping counts jobs after it has removed some
		for i, m := range f.members {
			if !strings.Contains(string(m.mustRequest(http.MethodGet, "/metrics", http.StatusOK).raw), "tutti_jobs{") {
				return false, fmt.Sprintf("process %d", i)
			}
		}
		return true, ""
	})
	if n := f.sum("tutti_housekeeping_runs_total"); n != 1 {
		t.Errorf("old jobs were removed %d times by processes that started together", n)
	}

	ids := f.fill("S1", records)
	for _, id := range ids {
		f.song.Fail(testkit.Fault{Path: regexp.MustCompile(id), Times: failures, Status: http.StatusServiceUnavailable})
	}
	for i, id := range ids {
		f.members[i%3].trigger("S1", id)
	}
	f.awaitConverged(wait)
	for _, id := range ids {
		if n := f.song.RecordRequests(id); n != failures+1 {
			t.Errorf("%s was fetched %d times, want %d", id, n, failures+1)
		}
	}

	letters := f.reject("S1", records)
	before := map[string]int{}
	for id := range letters {
		before[id] = f.song.RecordRequests(id)
		f.put("S1", id, fixed)
	}
	f.mustRequest(http.MethodPost, "/dead-letters/retry?repository="+code, http.StatusAccepted)
	f.awaitDeadLetters("", 0)
	for id, n := range before {
		if n = f.song.RecordRequests(id) - n; n != 1 {
			t.Errorf("%s was fetched %d times for one retry", id, n)
		}
	}
}

// sum returns a counter of GET /metrics summed over all processes.
func (f *fleet) sum(name string, labels ...string) (n int) {
	f.t.Helper()
	for _, m := range f.members {
		n += m.total(name, labels...)
	}
	return n
}

// TestFleetTimers: on three processes a repository is reconciled once per period, and each change of the built-in one is published once.
func TestFleetTimers(t *testing.T) {
	t.Parallel()
	const period, periods, changes = 10 * time.Second, 2, 60
	f := newFleet(t, settings{repository: fmt.Sprintf("reconcile: {every: %s}", period)}, storetest.PostgresURL(t), 0)
	f.fill("S1", 40)
	f.launch(3)
	at := func(i int) *builtIn { return &builtIn{world: f.members[i%3].world} }
	first := at(0)
	first.prepareStudies("S1")
	var work sync.WaitGroup
	payloads := make([]string, changes)
	for i := range payloads {
		payloads[i] = first.payload("S1", "")
	}
	for worker := range 6 {
		work.Go(func() {
			for i := worker; i < changes; i += 6 {
				a, err := at(i).send(http.MethodPost, "/submit/S1", payloads[i])
				if err == nil && a.status == http.StatusOK {
					a, err = at(i+1).send(http.MethodPut, statePath("S1", "publish", a.get("analysisId").String()), "")
				}
				if err != nil || a.status != http.StatusOK {
					t.Errorf("change %d: %v %s", i, err, a.raw)
				}
			}
		})
	}
	work.Wait()
	f.eventually(wait, func() (bool, string) {
		n := f.sum("tutti_outbox_events_total", `result="published"`)
		return n >= changes, fmt.Sprintf("%d changes published", n)
	})
	var runs []time.Time
	f.eventually(wait, func() (bool, string) {
		runs = runs[:0]
		for _, j := range f.mustRequest(http.MethodGet, "/jobs?limit=100&repository="+code, http.StatusOK).get("jobs").Array() {
			runs = append(runs, j.Get("queuedAt").Time())
		}
		return len(runs) > periods, fmt.Sprintf("%d runs", len(runs))
	})
	slices.SortFunc(runs, time.Time.Compare)
	for i := 1; i < len(runs); i++ {
		if gap := runs[i].Sub(runs[i-1]); gap < period-100*time.Millisecond || gap > 2*period {
			t.Errorf("run %d is %s after the one before, want %s", i, gap, period)
		}
	}
	if n := f.sum("tutti_outbox_events_total", `result="published"`); n != changes {
		t.Errorf("%d changes were published, want %d, each once", n, changes)
	}
	if n := f.sum("tutti_requests_received_total", `source="outbox"`); n != changes {
		t.Errorf("%d changes were received, want %d, each once", n, changes)
	}
	t.Logf("runs at %v", runs)
}

// drainDelay is server.shutdownDelay of a fleet behind a balancer, which polls /ready every readyPoll.
const (
	drainDelay = 2 * time.Second
	readyPoll  = 100 * time.Millisecond
)

// balance polls /ready of each process, as a balancer does, until stop is closed.
func (f *fleet) balance(stop <-chan struct{}) {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		for _, m := range f.current() {
			a, err := m.request(http.MethodGet, "/ready")
			m.ready.Store(err == nil && a.status == http.StatusOK)
		}
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

// current returns the processes.
func (f *fleet) current() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.members)
}

// balanced sends a request as a balancer does: to the ready processes in turn, or to any if none is, and to the next one when a process
// refuses the connection.
func (f *fleet) balanced(method, path, body string) (a answer, err error) {
	members := f.current()
	if ready := slices.DeleteFunc(slices.Clone(members), func(m *member) bool { return !m.ready.Load() }); len(ready) > 0 {
		members = ready
	}
	first := f.next.Add(1)
	for i := range members {
		b := builtIn{world: members[(first+uint64(i))%uint64(len(members))].world}
		if a, err = b.send(method, path, body); err == nil || !errors.Is(err, syscall.ECONNREFUSED) {
			return a, err
		}
	}
	return a, err
}

// TestFleetRollingRestart: each NATS server, PostgreSQL and each process is restarted in turn while clients read and request changes
// through a balancer. Every read is answered and no accepted request is lost.
func TestFleetRollingRestart(t *testing.T) {
	t.Parallel()
	database, store := storetest.PostgresRelay(t)
	f := newFleet(t, settings{shutdownDelay: drainDelay}, store, 0)
	ids := f.fill("S1", 300)
	f.launch(3)
	f.run("", "", core.JobSucceeded)
	(&builtIn{world: f.world}).prepareStudies("S1")
	f.awaitAvailable("a")

	stop := make(chan struct{})
	var clients sync.WaitGroup
	clients.Go(func() { f.balance(stop) })
	var mu sync.Mutex
	phase, answered, refused, accepted := "", map[string]int{}, map[string]int{}, 0
	each := func(do func(n int)) {
		clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
					do(n)
				}
			}
		})
	}
	read := func(name, method, path, body, want string) {
		each(func(int) {
			began := time.Now()
			a, err := f.balanced(method, path, body)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || a.status != http.StatusOK || !gjson.GetBytes(a.raw, want).Exists() || gjson.GetBytes(a.raw, "errors").Exists() {
				t.Errorf("%s amid %s after %s: %d %.300s %v", name, phase, time.Since(began), a.status, a.raw, err)
			}
			answered[name]++
		})
	}
	read("search", http.MethodPost, "/a/graphql", `{"query":"{a{hits{total}}}"}`, "data.a.hits.total")
	read("introspection", http.MethodGet, "/introspection/a", "", "catalogId")
	read("schema", http.MethodGet, "/schemas/plain", "", "version")
	each(func(n int) {
		id := ids[n%len(ids)]
		if n%5 == 0 {
			f.song.SetState(id, "UNPUBLISHED")
		} else {
			_ = f.song.Put("S1", fmt.Appendf(nil, `{"analysisId":%q,"studyId":"S1","analysisState":"PUBLISHED","change":%d}`, id, n))
		}
		for t.Context().Err() == nil { // as a client does that was told to retry
			a, err := f.balanced(http.MethodPost, recordPath("S1", id), "")
			mu.Lock()
			if err == nil && a.status == http.StatusAccepted {
				accepted++
				mu.Unlock()
				return
			}
			refused[fmt.Sprintf("%s: %d %v", phase, a.status, err)]++
			mu.Unlock()
			time.Sleep(20 * time.Millisecond) // as a client waits
		}
	})
	step := func(name string, do func()) {
		mu.Lock()
		phase = name
		before := maps.Clone(answered)
		mu.Unlock()
		began := time.Now()
		do()
		took := time.Since(began)
		f.eventually(wait, func() (bool, string) { // reads of each kind follow
			mu.Lock()
			defer mu.Unlock()
			for name, n := range answered {
				if n < before[name]+10 {
					return false, name
				}
			}
			return true, ""
		})
		for _, m := range f.members {
			m.awaitPaused(false)
		}
		t.Logf("%s: %s, ready again after %s", name, took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	}
	for i := range 3 {
		name := fmt.Sprintf("node%d", i)
		step("the restart of "+name, func() {
			f.cluster.Kill(name)
			if err := errors.Join(f.cluster.Restart(), f.cluster.Ready(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	step("the restart of PostgreSQL", func() {
		database.Down()
		<-database.Refused()
		database.Up()
	})
	for i := range f.members {
		step(fmt.Sprintf("the restart of process %d", i), func() { f.relaunch(i) })
	}
	close(stop)
	clients.Wait()
	f.url = f.members[0].url
	f.awaitConverged(wait)
	t.Logf("%d requests accepted, %v reads; refused and retried: %v", accepted, answered, refused)
	if letters := f.deadLetters(""); len(letters) != 0 {
		t.Errorf("dead letters: %v", letters)
	}
}
