package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/app"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// code is the repository of every world.
const code = "song.e2e"

// settings configure a world. Zero values are the program's defaults.
type settings struct {
	song testkit.SongConfig
	// lyric, when set, makes the world's repository a tabular one; its Song server is then unused.
	lyric           *testkit.LyricConfig
	pageSize        int
	concurrency     int
	shutdownTimeout time.Duration
	shutdownDelay   time.Duration
	maxPending      int
	queueURL        string
	queueReplicas   int
	maxDeliver      int
	batchBytes      int
	maxInFlight     int
	maxBodyBytes    int
	maxRecordBytes  int
	// givesUpSoon makes child processes give up Requests sooner.
	givesUpSoon bool
	// ackWait is Options.AckWait of child processes.
	ackWait time.Duration
	// repository is more of the repository's YAML, such as a token.
	repository string
	// more is YAML after the repository: more repositories first, then other top-level keys.
	more string
	// environ are variables of the environment, NAME=value.
	environ []string
	// faulty makes the engine one that can refuse requests, close connections and go down.
	faulty bool
	// elasticsearch is the address of a real Elasticsearch of the test, in the suite on services only.
	elasticsearch string
	// rates are the faults of a faulty engine between injectFaults(true) and injectFaults(false).
	rates testkit.FaultRates
	// configuration, when set, returns the configuration file; the other settings are then ignored.
	configuration func(w *world) string
}

// world is one Song server, one index and the tutti between them.
type world struct {
	t      *testing.T
	set    settings
	song   *testkit.SongServer
	lyric  *testkit.LyricServer // nil unless the settings ask for one
	engine engine
	dir    string
	alias  string
	logs   *logBuffer
	client *http.Client
	app    *app.App
	url    string
	// block is the last text of the repositories in a document that was found right; most documents have the same.
	block *atomic.Pointer[[]byte]
}

// newWorld returns a world whose tutti is not started.
func newWorld(t *testing.T, set settings) *world {
	t.Helper()
	if set.pageSize == 0 {
		set.pageSize = 100
	}
	if set.shutdownTimeout == 0 {
		set.shutdownTimeout = 10 * time.Second
	}
	if set.maxPending == 0 {
		set.maxPending = 200_000
	}
	if set.batchBytes == 0 {
		set.batchBytes = 2 << 20
	}
	if set.maxInFlight == 0 {
		set.maxInFlight = 4
	}
	if set.concurrency == 0 {
		set.concurrency = 4
	}
	if set.maxBodyBytes == 0 {
		set.maxBodyBytes = 10 << 20
	}
	if set.maxRecordBytes == 0 {
		set.maxRecordBytes = core.DefaultMaxRecordBytes
	}
	testkit.FreeCleanups(t)
	song, err := testkit.NewSong(set.song)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(song.Close)
	w := &world{
		block: new(atomic.Pointer[[]byte]),
		t:     t, set: set, song: song, dir: t.TempDir(), logs: &logBuffer{},
		alias:  fmt.Sprintf("e2e-%08x", rand.Uint32()),
		client: &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second},
	}
	t.Cleanup(w.client.CloseIdleConnections)
	if set.lyric != nil {
		if w.lyric, err = testkit.NewLyric(*set.lyric); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.lyric.Close)
	}
	w.engine = newEngine(t, w)
	return w
}

// startWorld returns a world whose tutti is started and whose index takes writes.
func startWorld(t *testing.T, set settings) *world {
	t.Helper()
	w := newWorld(t, set)
	w.start()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		return a.status == http.StatusOK && len(a.get("paused").Array()) == 0, string(a.raw)
	})
	return w
}

// yaml returns the configuration file of the world's tutti.
func (w *world) yaml() string {
	if w.set.configuration != nil {
		return w.set.configuration(w)
	}
	kind, url := "song", w.song.URL()
	if w.lyric != nil {
		kind, url = "lyric", w.lyric.URL()
	}
	return fmt.Sprintf(`
server: {listen: "127.0.0.1:0", shutdownTimeout: %s, shutdownDelay: %s, maxBodyBytes: %d}
dataDir: %q
log: {level: debug}
queue: {url: %q, replicas: %d, maxPending: %d}
index: {url: %q, replicas: 0, batchBytes: %d, maxInFlight: %d, maxRecordBytes: %d}
repositories:
  - code: %s
    type: %s
    url: %q
    indexName: %s
    name: Test repository
    organization: Example Institute
    country: CA
    pageSize: %d
    concurrency: %d
%s%s`, w.set.shutdownTimeout, w.set.shutdownDelay, w.set.maxBodyBytes, w.dir, w.set.queueURL, w.set.queueReplicas, w.set.maxPending, w.engine.url(), w.set.batchBytes,
		w.set.maxInFlight, w.set.maxRecordBytes, code, kind, url, w.alias, w.set.pageSize, w.set.concurrency, indent(w.set.repository), w.set.more)
}

func indent(yaml string) string {
	if yaml == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimSpace(yaml), "\n", "\n    ") + "\n"
}

// newApp returns an App with the world's configuration, not started.
func (w *world) newApp() *app.App {
	w.t.Helper()
	cfg, err := config.Parse([]byte(w.yaml()), w.set.environ)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range cfg.Alerts {
		cfg.Alerts[i].MinInterval = min(cfg.Alerts[i].MinInterval, 200*time.Millisecond) // a file cannot ask for less than 10 s
	}
	opts := app.Options{Logger: slog.New(slog.NewJSONHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	opts.MaxDeliver, opts.FolderEvery = w.set.maxDeliver, 200*time.Millisecond
	w.engine.replace(&opts)
	a, err := app.New(cfg, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// secondProcess returns the world of a second process, which shares everything but the data folder.
func (w *world) secondProcess() *world {
	other := *w
	other.dir = w.t.TempDir()
	return &other
}

// start starts the world's tutti, which is stopped at the end of the test.
func (w *world) start() {
	w.t.Helper()
	a := w.newApp()
	began := time.Now()
	if err := a.Start(w.t.Context()); err != nil {
		w.t.Fatalf("starting: %v\n%s", err, w.logs.tail())
	}
	w.app, w.url = a, a.URL()
	w.t.Logf("started in %s", time.Since(began).Round(time.Millisecond))
	w.t.Cleanup(func() {
		if err := a.Stop(context.WithoutCancel(w.t.Context())); err != nil {
			w.t.Errorf("stopping: %v", err)
		}
	})
	w.t.Cleanup(w.logState)
}

// stop stops the world's tutti and returns how long that took.
func (w *world) stop() time.Duration {
	w.t.Helper()
	began := time.Now()
	if err := w.app.Stop(context.WithoutCancel(w.t.Context())); err != nil {
		w.t.Errorf("stopping: %v", err)
	}
	took := time.Since(began)
	w.app = nil
	return took
}

// logState logs the state of a world whose test has failed.
func (w *world) logState() {
	if !w.t.Failed() {
		return
	}
	if w.app != nil {
		for _, path := range []string{"/ready", "/jobs?limit=5"} {
			if a, err := w.request(http.MethodGet, path); err == nil {
				w.t.Logf("GET %s: %s", path, a.raw)
			}
		}
		letters, _, err := w.app.Queue().DeadLetters().List(context.WithoutCancel(w.t.Context()), core.DeadLetterFilter{Limit: 5})
		for _, l := range letters {
			w.t.Logf("dead letter %s/%s: %s, %s: %s (%s)", l.Organization, l.RecordID, l.Reason, l.EngineType, l.EngineReason, l.Hint)
		}
		if err != nil {
			w.t.Logf("dead letters: %v", err)
		}
	}
	w.t.Logf("the last log lines:\n%s", w.logs.tail())
}

// logBuffer keeps all log lines.
type logBuffer struct {
	mu    sync.Mutex
	lines []string
}

// Write implements io.Writer; the handler writes a line at a time.
func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

func (l *logBuffer) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// tail returns the last lines, without those of requests and of the queue's server.
func (l *logBuffer) tail() string {
	lines := slices.DeleteFunc(l.all(), func(line string) bool {
		return strings.Contains(line, `"component":"http"`) || strings.Contains(line, `"component":"nats"`)
	})
	return strings.Join(lines[max(0, len(lines)-25):], "")
}
