package app_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/queue/embedded"
	"tutti/internal/queue/natsconn"
	"tutti/internal/report/recordtrace"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/testkit"
)

const (
	// killsVariable is the variable with how many SIGKILLs TestKills sends in all, killsDirVariable that with the folder of its progress,
	// killsSeedVariable that with the seed of a run without such a folder.
	killsVariable     = "TUTTI_TEST_KILLS"
	killsDirVariable  = "TUTTI_TEST_KILLS_DIR"
	killsSeedVariable = "TUTTI_TEST_KILLS_SEED"
	// killsOfRound is the number of kills of a round in a run with a folder, each of which has a queue and an index of its own.
	killsOfRound = 10
	// stuck is how long nothing may change while requests or jobs are left until they are taken for orphans. Requests that a server would
	// not deliver are published again after 32 s.
	stuck = 90 * time.Second
)

// killCounts are the results of kills.
type killCounts struct {
	Kills, Tutti, Queue int
	Operations          int
	// Lost are documents that the index must have and has not, or not as they are upstream, Resurrected those that it must not have, Orphans
	// messages, jobs and figures of the queue that stay although nothing is left to do.
	Lost, Resurrected, Orphans int
	// PublishedAgain are log lines about requests that the queue would not have delivered.
	PublishedAgain int
	// Failed are rounds that could not be completed.
	Failed int
	// Jobs are those that ended in another state than succeeded; Letters are dead letters.
	Jobs, Letters int
}

func (c *killCounts) add(o killCounts) {
	c.Kills, c.Tutti, c.Queue, c.Operations = c.Kills+o.Kills, c.Tutti+o.Tutti, c.Queue+o.Queue, c.Operations+o.Operations
	c.Lost, c.Resurrected, c.Orphans = c.Lost+o.Lost, c.Resurrected+o.Resurrected, c.Orphans+o.Orphans
	c.PublishedAgain, c.Failed = c.PublishedAgain+o.PublishedAgain, c.Failed+o.Failed
	c.Jobs, c.Letters = c.Jobs+o.Jobs, c.Letters+o.Letters
}

func (c *killCounts) String() string {
	return fmt.Sprintf("%d SIGKILLs (tutti %d, queue %d) amid %d requests: %d lost, %d resurrected, %d orphans; jobs not succeeded %d, "+
		"dead letters %d, requests published again %d times, rounds failed %d",
		c.Kills, c.Tutti, c.Queue, c.Operations, c.Lost, c.Resurrected, c.Orphans, c.Jobs, c.Letters, c.PublishedAgain, c.Failed)
}

// killProgress is what a run with a folder has stored in it.
type killProgress struct {
	Seed   uint64
	Rounds int
	killCounts
}

// TestKills: tutti, and the server of its queue, are killed at random instants amid requests, removals, notifications, runs and changes
// upstream, with documents of each kind. Afterwards the index is what the last request of each record asked for, nothing is left in the
// queue, and every figure says so; after a run it is what the upstream has.
func TestKills(t *testing.T) {
	dir := os.Getenv(killsDirVariable)
	if dir != "" {
		runKills(t, dir)
		return
	}
	t.Parallel()
	seed := rand.Uint64()
	if text := os.Getenv(killsSeedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d", killsSeedVariable, seed)
	for round := range 2 {
		t.Run(killRoundName(round), func(t *testing.T) {
			t.Parallel()
			var counts killCounts
			(&killRound{records: 8, kills: 3, ackWait: 3 * time.Second}).play(t, seed, round, &counts)
			t.Log(&counts)
		})
	}
}

func killRoundName(round int) string { return fmt.Sprintf("round %d", round) }

// runKills plays rounds until as many kills as killsVariable says have been sent in all, and goes on from what dir has.
func runKills(t *testing.T, dir string) {
	wanted, err := strconv.Atoi(cmp.Or(os.Getenv(killsVariable), "200"))
	if err != nil {
		t.Fatal(err)
	}
	lock, err := embedded.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Unlock() }()
	file := filepath.Join(dir, "progress.json")
	p := killProgress{Seed: rand.Uint64()}
	if data, err := os.ReadFile(file); err == nil {
		err = json.Unmarshal(data, &p)
		if err != nil {
			t.Fatal(err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for p.Kills < wanted {
		var counts killCounts
		round := &killRound{records: 60, kills: min(killsOfRound, wanted-p.Kills)}
		if !t.Run(killRoundName(p.Rounds), func(t *testing.T) { round.play(t, p.Seed, p.Rounds, &counts) }) && counts.clean() {
			counts.Failed++
		}
		p.Rounds++
		p.add(counts)
		data, err := json.MarshalIndent(p, "", "  ")
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("seed %d, %d rounds, %s", p.Seed, p.Rounds, &p.killCounts)
	}
	fmt.Println(&p.killCounts)
	if !p.clean() || p.Failed > 0 {
		t.Fail()
	}
}

// clean reports whether every round found what it must.
func (c *killCounts) clean() bool {
	return c.Lost == 0 && c.Resurrected == 0 && c.Orphans == 0 && c.Jobs == 0 && c.Letters == 0
}

// killKind is a repository of a killRound: its code and its kind of documents.
type killKind struct{ code, documents, alias string }

// killRound is one world that is killed again and again.
type killRound struct {
	*world
	records, kills int
	// ackWait replaces that of an external queue, 30 s, which the messages in flight at a kill wait for; 0 does not.
	ackWait time.Duration

	rng    *rand.Rand // of the test's goroutine
	counts *killCounts
	kinds  []killKind
	ids    []string
	// live is the world with the address of the process that runs.
	live  atomic.Pointer[world]
	child *child
	// nats is the external server, nil for the embedded one, and natsListen its address.
	nats       *child
	natsDir    string
	natsListen string

	accepted atomic.Int64
	changes  atomic.Int64
	mu       sync.Mutex
	jobs     map[string]struct{} // guarded by mu
	// removed are the records, by the code of the repository, whose last request was a removal; guarded by mu.
	removed map[string]map[string]bool
}

const killStudies = 2

// studyOf returns the study of the i-th record.
func (*killRound) studyOf(i int) string { return fmt.Sprintf("S%d", i%killStudies) }

// play plays the round of a number, odd ones on an external server of the queue.
func (k *killRound) play(t *testing.T, seed uint64, round int, counts *killCounts) {
	k.rng, k.counts = rand.New(rand.NewPCG(seed, uint64(round))), counts
	k.jobs, k.removed = map[string]struct{}{}, map[string]map[string]bool{}
	set := settings{pageSize: 10, concurrency: 2, ackWait: k.ackWait, song: testkit.SongConfig{
		BeforeRecord: func(*testkit.SongServer, string) { time.Sleep(5 * time.Millisecond) }, // of the upstream
		BeforePage:   func(*testkit.SongServer, int, testkit.PageCall) { time.Sleep(5 * time.Millisecond) },
	}}
	if round%2 == 1 {
		k.natsDir, k.natsListen = filepath.Join(t.TempDir(), "nats"), testkit.NewAddress(t)
		k.nats, set.queueURL = startNATS(t, k.natsDir, k.natsListen)
	}
	k.world = newWorld(t, set)
	k.kinds = []killKind{{code, "record", k.alias}, {"song.file", "file", k.alias + "-file"}, {"song.file-v4", "file-v4", k.alias + "-file-v4"}}
	for _, kind := range k.kinds[1:] {
		k.addRepository(fmt.Sprintf("code: %s\ntype: song\nurl: %q\nindexName: %s\ndocuments: %s\npageSize: 10\nconcurrency: 2\n",
			kind.code, k.song.URL(), kind.alias, kind.documents), kind.alias)
	}
	for _, kind := range k.kinds {
		k.removed[kind.code] = map[string]bool{}
	}
	for i := range k.records {
		k.ids = append(k.ids, fmt.Sprintf("r%03d", i))
		k.change(k.rng, i)
	}
	k.boot()

	k.amid(k.kills/2, k.disturb)
	k.quiesce()
	k.amid(k.kills-k.kills/2, k.settle)
	k.quiesce()
	k.readRecords()
	again := k.linesWith("would not have delivered any more")
	k.counts.PublishedAgain = len(again)
	t.Logf("published again: %s", again)
	if err := k.child.stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}

	k.start()
	k.check("after the last requests")
	k.runs()
	k.check("after a run")
	k.counts.Letters += len(k.deadLetters(""))
	for _, l := range k.deadLetters("") {
		t.Errorf("dead letter %s", l.Raw)
	}
	k.stop()
	k.checkQueue()
}

// boot starts tutti.
func (k *killRound) boot() {
	k.t.Helper()
	w := *k.world
	k.child = w.startChild()
	k.live.Store(&w)
}

// amid kills n times while each record's client sends its requests, and returns when they all have been accepted.
func (k *killRound) amid(n int, client func(rng *rand.Rand, record int)) {
	k.t.Helper()
	seed := k.rng.Uint64()
	var clients sync.WaitGroup
	ended := make(chan struct{})
	const workers = 4
	for worker := range workers {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(worker)))
			for record := worker; record < k.records; record += workers {
				client(rng, record)
			}
		})
	}
	go func() {
		defer close(ended)
		clients.Wait()
	}()
	for range n {
		until := k.accepted.Load() + 1 + k.rng.Int64N(int64(max(2, 3*k.records/max(n, 1))))
		k.eventually(5*time.Minute, func() (bool, string) { // or when the clients have ended, which their requests have not
			select {
			case <-ended:
				return true, ""
			default:
				return k.accepted.Load() >= until, fmt.Sprintf("%d requests accepted, want %d", k.accepted.Load(), until)
			}
		})
		<-time.After(rand.N(20 * time.Millisecond)) // for nothing: the kill shall meet the process anywhere
		k.killOne()
	}
	<-ended
}

// killOne kills tutti, the server of the queue or both, and starts again what it killed.
func (k *killRound) killOne() {
	k.t.Helper()
	which := 0
	if k.nats != nil {
		which = k.rng.IntN(3)
	}
	k.counts.Kills++
	if which != 1 {
		k.counts.Tutti++
		k.child.kill()
	}
	if which != 0 {
		k.counts.Queue++
		k.nats.kill()
		<-time.After(rand.N(50 * time.Millisecond)) // tutti shall meet its absence anywhere
		k.nats, _ = startNATS(k.t, k.natsDir, k.natsListen)
	}
	if which == 2 {
		k.counts.Kills++ // two processes
	}
	if which != 1 {
		k.boot()
	}
}

// change changes a record upstream: its body, its files and whether it is published or there at all.
func (k *killRound) change(rng *rand.Rand, i int) {
	id, study := k.ids[i], k.studyOf(i)
	if rng.IntN(20) == 0 {
		k.song.Delete(id)
		return
	}
	state := "PUBLISHED"
	if rng.IntN(4) == 0 {
		state = "UNPUBLISHED"
	}
	mark := k.changes.Add(1)
	var files []string
	for f := range 3 {
		if f == 0 || rng.IntN(2) == 0 {
			files = append(files, strings.Replace(fileIn(fmt.Sprintf("%s-%d", id, f), "1"), `"m"`, fmt.Sprintf(`"change-%d"`, mark), 1))
		}
	}
	body := fmt.Appendf(nil, `{"analysisId":%q,"studyId":%q,"analysisState":%q,"files":[%s]}`, id, study, state, strings.Join(files, ","))
	if err := k.song.Put(study, body); err != nil {
		k.t.Error(err)
	}
}

// send repeats a request until it is accepted, as a client does while tutti or its queue is down, and returns the answer.
func (k *killRound) send(method, path, body string) (a answer) {
	var err error
	for k.t.Context().Err() == nil {
		w := k.live.Load()
		if method == http.MethodPost {
			a, err = w.tryPostBody(path, body)
		} else {
			a, err = w.request(method, path)
		}
		switch {
		case err == nil && a.status == http.StatusAccepted:
			k.accepted.Add(1)
			return a
		case err == nil && a.status < 500 && a.status != http.StatusTooManyRequests:
			k.t.Errorf("%s %s: %d %s", method, path, a.status, a.raw)
			return a
		}
		<-time.After(20 * time.Millisecond) // as a client waits
	}
	return a
}

func (k *killRound) path(kind killKind, record int) string {
	return "/index/repository/" + kind.code + "/organization/" + k.studyOf(record) + "/id/" + k.ids[record]
}

// requestRecord sends one request for a record: a trigger, a removal or a notification.
func (k *killRound) requestRecord(rng *rand.Rand, kind killKind, record int, remove bool) {
	switch {
	case remove:
		k.send(http.MethodDelete, k.path(kind, record), "")
	case rng.IntN(3) == 0:
		state := "PUBLISHED"
		if a, there := k.song.Analysis(k.ids[record]); there {
			state = a.State
		}
		k.send(http.MethodPost, "/notifications/"+kind.code, songEvent(kind.code, k.studyOf(record), k.ids[record], state))
	default:
		k.send(http.MethodPost, k.path(kind, record), "")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.removed[kind.code][k.ids[record]] = remove
}

// disturb changes a record and sends bursts of requests for it, and begins runs.
func (k *killRound) disturb(rng *rand.Rand, record int) {
	for range 2 {
		if rng.IntN(3) > 0 {
			k.change(rng, record)
		}
		for _, kind := range k.kinds {
			for range 1 + rng.IntN(4) {
				k.requestRecord(rng, kind, record, rng.IntN(4) == 0)
			}
		}
		if rng.IntN(6) == 0 {
			k.beginRun(rng)
		}
	}
}

// beginRun begins a run of an organization or a repository.
func (k *killRound) beginRun(rng *rand.Rand) {
	path := "/index/repository/" + k.kinds[rng.IntN(len(k.kinds))].code
	if rng.IntN(3) > 0 {
		path += "/organization/" + k.studyOf(rng.IntN(killStudies))
	}
	a := k.send(http.MethodPost, path+"?force=true", "") // any number of records may have been unpublished
	k.mu.Lock()
	defer k.mu.Unlock()
	k.jobs[a.get("jobId").String()] = struct{}{}
}

// settle sends the last requests for a record: a trigger or a removal after others.
func (k *killRound) settle(rng *rand.Rand, record int) {
	k.change(rng, record)
	for _, kind := range k.kinds {
		for range rng.IntN(4) {
			k.requestRecord(rng, kind, record, rng.IntN(4) == 0)
		}
	}
	k.change(rng, record)
	for _, kind := range k.kinds {
		k.requestRecord(rng, kind, record, rng.IntN(4) == 0)
	}
}

// quiesce waits until all jobs have ended and nothing is pending, by every figure of the process that runs.
func (k *killRound) quiesce() {
	k.t.Helper()
	last, since := "", time.Now()
	for {
		left := k.left()
		if left == "" {
			return
		}
		if left != last {
			last, since = left, time.Now()
		}
		if time.Since(since) > stuck {
			k.counts.Orphans++
			k.t.Errorf("nothing has changed for %s: %s", stuck, left)
			return
		}
		<-time.After(50 * time.Millisecond) // between two polls
	}
}

// left describes what is left to do, "" for nothing.
func (k *killRound) left() string {
	var left []string
	get := func(path string) answer {
		a, err := k.live.Load().request(http.MethodGet, path)
		if err != nil || a.status != http.StatusOK {
			left = append(left, fmt.Sprintf("%s: %d %.300s %v", path, a.status, a.raw, err))
		}
		return a
	}
	if a := get("/ready"); a.get("status").String() != "healthy" || len(a.get("paused").Array()) > 0 {
		left = append(left, fmt.Sprintf("/ready: %s", a.raw))
	}
	for _, state := range []core.JobState{core.JobQueued, core.JobRunning, core.JobPaused} {
		for _, j := range get("/jobs?state=" + string(state)).get("jobs").Array() {
			left = append(left, fmt.Sprintf("job %s %s %s", j.Get("id"), state, j.Get("totals").Raw))
		}
	}
	for _, r := range get("/repositories").get("repositories").Array() {
		if pending, flying := r.Get("pending").Int(), r.Get("inFlight").Int(); pending+flying != 0 {
			left = append(left, fmt.Sprintf("%s has %d requests pending, %d in flight", r.Get("code"), pending, flying))
		}
	}
	for line := range strings.Lines(string(get("/metrics").raw)) {
		if strings.HasPrefix(line, "tutti_consumer_pending_messages{") && !strings.HasSuffix(line, " 0\n") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	return strings.Join(left, "\n")
}

// readRecords waits until the trace of no record says that a request of it is pending.
func (k *killRound) readRecords() {
	k.t.Helper()
	var left []string
	last, since := 0, time.Now()
	for {
		left = left[:0]
		for _, kind := range k.kinds {
			for record := range k.records {
				a := k.mustTrace(k.path(kind, record))
				if a.get("queue.status").String() != recordtrace.StatusNone {
					left = append(left, fmt.Sprintf("%s %s: %s", kind.code, k.ids[record], a.get("queue").Raw))
				}
			}
		}
		if len(left) == 0 {
			return
		}
		if len(left) != last {
			last, since = len(left), time.Now()
		}
		if time.Since(since) > stuck {
			k.t.Errorf("%d requests are said to be pending for %s:\n%s", last, stuck, strings.Join(left[:min(len(left), 5)], "\n"))
			return // checkQueue counts them
		}
		<-time.After(50 * time.Millisecond) // between two polls
	}
}

func (k *killRound) mustTrace(path string) answer {
	k.t.Helper()
	return k.live.Load().mustRequest(http.MethodGet, path, http.StatusOK)
}

// runs changes records upstream in silence and runs every repository; then no removal counts any more.
func (k *killRound) runs() {
	k.t.Helper()
	for i := range k.records {
		if k.rng.IntN(3) == 0 {
			k.change(k.rng, i)
		}
	}
	for _, kind := range k.kinds {
		id := k.mustRequest(http.MethodPost, "/index/repository/"+kind.code+"?force=true", http.StatusAccepted).get("jobId").String()
		k.jobs[id] = struct{}{}
		k.awaitJob(id)
		clear(k.removed[kind.code])
	}
	k.counts.Operations = int(k.accepted.Load())
	for id := range k.jobs {
		if j := k.job(id); j.Get("state").String() != string(core.JobSucceeded) {
			k.counts.Jobs++
			k.t.Errorf("job %s", j.Raw)
		}
	}
}

// changeIn finds the change of which a document is.
var changeIn = regexp.MustCompile(`"change-(\d+)"`)

// check compares the index of every kind of documents with the upstream without the removed records.
func (k *killRound) check(when string) {
	k.t.Helper()
	for _, kind := range k.kinds {
		want := map[string]string{}
		for _, study := range k.song.Studies() {
			for _, a := range k.song.Analyses(study, "PUBLISHED") {
				if k.removed[kind.code][a.ID] {
					continue
				}
				change := string(changeIn.Find(a.Body))
				if kind.documents == "record" {
					want[a.ID] = change
					continue
				}
				for _, f := range gjson.GetBytes(a.Body, "files.#.objectId").Array() {
					want[f.String()] = change
				}
			}
		}
		w := *k.world
		w.alias = kind.alias
		got := map[string]string{}
		for id, source := range k.engine.documents(&w) {
			got[id] = string(changeIn.Find(source))
		}
		for id := range maps.Keys(got) {
			if _, wanted := want[id]; !wanted {
				k.counts.Resurrected++
			}
		}
		for id, change := range want {
			if got[id] != change {
				k.counts.Lost++
			}
		}
		if fault := difference(want, got); fault != "" {
			k.t.Errorf("%s, %s: %s", when, kind.documents, fault)
		}
	}
}

// checkQueue counts the messages that are left in the queue of a tutti that is stopped.
func (k *killRound) checkQueue() {
	k.t.Helper()
	var all map[string]string
	if k.nats != nil {
		all = queuetest.Messages(k.t, k.set.queueURL, nil, "REQUESTS")
	} else {
		server, err := embedded.Start(k.t.Context(), embedded.Config{Dir: filepath.Join(k.dir, "queue")})
		if err != nil {
			k.t.Fatal(err)
		}
		all = queuetest.Messages(k.t, "", server, "REQUESTS")
		if err := server.Stop(k.t.Context()); err != nil {
			k.t.Error(err)
		}
	}
	maps.DeleteFunc(all, func(subject, _ string) bool { return strings.HasPrefix(subject, natsconn.ProbePrefix) })
	k.counts.Orphans += len(all)
	if len(all) > 0 {
		k.t.Errorf("%d messages are left in the queue, such as %q", len(all), slices.Sorted(maps.Keys(all))[0])
	}
}

// linesWith returns the log lines that contain a text.
func (k *killRound) linesWith(text string) []string {
	return slices.DeleteFunc(k.logs.all(), func(line string) bool { return !strings.Contains(line, text) })
}
