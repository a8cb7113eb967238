//go:build !services

package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tutti/internal/app"
	"tutti/internal/app/backup"
	"tutti/internal/app/storage"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
	"tutti/internal/store"
)

// busy is a tutti with the built-in repository and one of a Song, which works while it is backed up.
type busy struct {
	*builtIn
	// song is the world of the Song's repository, in the same tutti.
	song *world
	// published and triggered are the analyses whose publication, and the records whose trigger, was acknowledged; changes counts them.
	mu                   sync.Mutex
	published, triggered []string
	changes              atomic.Int64
}

func startBusy(t *testing.T) *busy {
	t.Helper()
	b := &busy{builtIn: newBuiltIn(t, plan{})}
	b.addSong()
	b.startReady()
	b.prepareStudies("S1")
	b.share()
	return b
}

// addSong adds the Song's repository to the configuration.
func (b *busy) addSong() {
	songAlias, own := b.alias+"-song", b.set.configuration
	b.set.configuration = func(w *world) string {
		return own(w) + fmt.Sprintf(`  - {code: %s, type: song, url: %q, indexName: %s, name: Test repository, organization: Example Institute, country: CA}
`, code, w.song.URL(), songAlias)
	}
}

// share makes song a view of the tutti that runs.
func (b *busy) share() {
	view := *b.world
	view.alias = b.alias + "-song"
	b.song = &view
}

// work submits and publishes analyses, and changes records of the Song and triggers them, until ctx ends.
func (b *busy) work(ctx context.Context) (ended func()) {
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for ctx.Err() == nil {
				a, err := b.send(http.MethodPost, "/submit/S1", b.payload("S1", ""))
				id := a.get("analysisId").String()
				if err == nil && a.status == http.StatusOK {
					a, err = b.send(http.MethodPut, statePath("S1", "publish", id), "")
				}
				b.acknowledged(&b.published, id, a, err)
			}
		})
	}
	for n := range 3 {
		workers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("R%d-%d", n, i)
				b.song.put("STUDY", id, "")
				a, err := b.send(http.MethodPost, "/index/repository/"+code+"/organization/STUDY/id/"+id, "")
				b.acknowledged(&b.triggered, id, a, err)
			}
		})
	}
	return workers.Wait
}

func (b *busy) acknowledged(ids *[]string, id string, a answer, err error) {
	if err != nil || a.status/100 != 2 {
		b.t.Errorf("%s: status %d, %v: %s", id, a.status, err, a.raw)
		return
	}
	b.mu.Lock()
	*ids = append(*ids, id)
	b.mu.Unlock()
	b.changes.Add(1)
}

// paced is a writer that lets some changes be acknowledged before the head of each file, so that a backup spans many of them.
type paced struct {
	io.Writer
	b *busy
}

// headBytes is the size of a block of a tar archive; heads are written by block.
const headBytes = 512

// Write implements io.Writer.
func (p paced) Write(data []byte) (int, error) {
	if len(data) == headBytes {
		after := p.b.changes.Load() + 3
		p.b.eventually(wait, func() (bool, string) { return p.b.changes.Load() >= after, "no changes" })
	}
	return p.Writer.Write(data)
}

// backupSlowly backs a working tutti up into a folder. It returns what had been acknowledged before.
func (b *busy) backupSlowly(dir string) (published, triggered []string) {
	b.t.Helper()
	b.mu.Lock()
	published, triggered = slices.Clone(b.published), slices.Clone(b.triggered)
	b.mu.Unlock()
	archive, in := io.Pipe()
	go func() { _ = in.CloseWithError(b.app.Backup(b.t.Context(), paced{in, b})) }()
	if _, err := backup.Unpack(archive, dir); err != nil {
		b.t.Fatal(err)
	}
	return published, triggered
}

// restore restores a backup into a new folder, which becomes that of the returned world. It is not started.
func (b *busy) restore(dir string) *busy {
	b.t.Helper()
	view := *b.world
	view.dir, view.app = filepath.Join(b.t.TempDir(), "data"), nil
	other := &busy{builtIn: &builtIn{world: &view}}
	if _, err := storage.Restore(b.t.Context(), other.config(), slog.New(slog.DiscardHandler), dir); err != nil {
		b.t.Fatal(err)
	}
	return other
}

func (b *busy) config() config.Config {
	b.t.Helper()
	cfg, err := config.Parse([]byte(b.yaml()), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return cfg
}

// withQueue calls use with the queue of a world whose tutti is stopped.
func (b *busy) withQueue(use func(q *queue.Queue)) {
	b.t.Helper()
	server, err := embedded.Start(b.t.Context(), embedded.Config{Dir: filepath.Join(b.dir, "queue")})
	if err != nil {
		b.t.Fatal(err)
	}
	q, err := queue.ConnectInProcess(b.t.Context(), server, queue.Config{})
	if err != nil {
		b.t.Fatal(err)
	}
	use(q)
	for _, err := range []error{q.Close(b.t.Context()), server.Stop(b.t.Context())} {
		if err != nil {
			b.t.Error(err)
		}
	}
}

// missing returns the ids that are not among documents.
func missing[T any](ids []string, documents map[string]T) (none []string) {
	for _, id := range ids {
		if _, ok := documents[id]; !ok {
			none = append(none, id)
		}
	}
	return none
}

// TestBackupUnderLoad: of what was acknowledged before a backup began, nothing is missing after its restore, even without the runs that
// follow a restore: what is not in the index yet is in the queue or in the outbox. With them, the index is as the repositories are.
func TestBackupUnderLoad(t *testing.T) {
	b := startBusy(t)
	working, stop := context.WithCancel(t.Context())
	ended := b.work(working)
	dirs := make([]string, 2)
	var published, triggered [2][]string
	for i := range dirs {
		after := b.changes.Load() + 60
		b.eventually(wait, func() (bool, string) { return b.changes.Load() >= after, "no changes" })
		dirs[i] = filepath.Join(t.TempDir(), "backup")
		published[i], triggered[i] = b.backupSlowly(dirs[i])
	}
	stop()
	ended()
	b.stop()
	for i, dir := range dirs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			view := *b.world
			view.t = t
			r := (&busy{builtIn: &builtIn{world: &view}}).restore(dir)
			withoutRuns := i > 0
			if withoutRuns {
				r.withQueue(func(q *queue.Queue) {
					due, done, err := q.RunAllDue(t.Context())
					if due != queue.RunAllRecords || err != nil {
						t.Fatalf("%q is due, %v", due, err)
					}
					if err := done(); err != nil {
						t.Fatal(err)
					}
				})
			}
			r.startReady()
			r.share()
			t.Logf("%d analyses and %d records were acknowledged before, %d changes in all", len(published[i]), len(triggered[i]), b.changes.Load())
			if none := missing(published[i], r.storedAnalyses("PUBLISHED")); len(none) > 0 {
				t.Fatalf("%d analyses are not in the store: %v", len(none), none)
			}
			// Without a run, also what was published until the store was read must be in the outbox, the queue or the index.
			inStore := slices.Collect(maps.Keys(r.storedAnalyses("PUBLISHED")))
			r.eventually(wait, func() (bool, string) {
				analyses, records := missing(inStore, r.engine.documents(r.world)), missing(triggered[i], r.song.engine.documents(r.song))
				return len(analyses)+len(records) == 0, fmt.Sprintf("not in the index: analyses %v, records %v", analyses, records)
			})
			if withoutRuns {
				r.runLocal("", "?force=true", core.JobSucceeded)
				r.song.run("", "?force=true", core.JobSucceeded)
			}
			r.awaitConverged()
			r.song.awaitConverged(wait)
			r.wantNoDeadLetters()
		})
	}
}

// betweenParts is a writer that calls then before its first bytes: what a backup reads first was read, what it reads next was not.
type betweenParts struct {
	io.Writer
	then func()
	once sync.Once
}

// Write implements io.Writer.
func (p *betweenParts) Write(data []byte) (int, error) {
	p.once.Do(p.then)
	return p.Writer.Write(data)
}

// TestBackupStoreFirst: an analysis that is published while a backup is written, and whose change goes from the outbox into the queue, is
// not in the store of the backup without being in its outbox or queue. The index, which does not answer, cannot make up for it.
func TestBackupStoreFirst(t *testing.T) {
	b := &busy{builtIn: startBuiltIn(t, plan{set: settings{faulty: true}})}
	b.engine.setDown(true)
	publish := func() string {
		id := b.submit("S1")
		b.publish("S1", id)
		b.eventually(wait, func() (bool, string) {
			n := b.unpublishedEvents()
			return n == 0, fmt.Sprintf("%d events are in the outbox", n)
		})
		return id
	}
	before, during := publish(), ""
	dir := filepath.Join(t.TempDir(), "backup")
	archive, in := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		_, err := backup.Unpack(archive, dir)
		unpacked <- errors.Join(err, archive.CloseWithError(err))
	}()
	err := b.app.Backup(t.Context(), &betweenParts{Writer: in, then: func() { during = publish() }})
	_ = in.CloseWithError(err)
	if err := errors.Join(err, <-unpacked); err != nil {
		t.Fatal(err)
	}
	b.stop()
	r := b.restore(dir)
	r.withQueue(func(q *queue.Queue) { // without the runs that follow a restore
		due, done, err := q.RunAllDue(t.Context())
		if due != queue.RunAllRecords || err != nil {
			t.Fatalf("%q is due, %v", due, err)
		}
		if err := done(); err != nil {
			t.Fatal(err)
		}
	})
	r.engine.setDown(false)
	r.startReady()
	stored := r.storedAnalyses("PUBLISHED")
	if none := missing([]string{before}, stored); len(none) > 0 {
		t.Fatalf("%v was published before the backup, and is not in its store", none)
	}
	t.Logf("%d analyses are in the store of the backup; published meanwhile: %s", len(stored), during)
	r.awaitConverged()
}

// TestBackupContents: dead letters, jobs, saved sets, keys and analysis types are restored; the restored tutti accepts the key, and the
// dead letter can be retried.
func TestBackupContents(t *testing.T) {
	b := newBusyStopped(t)
	b.storeOf(func(ctx context.Context, s *store.Store) {
		if err := s.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO saved_set (id, owner, catalogue, type, path, user_id, sqon, size, created_at, used_at, expires_at, members)
				VALUES ('set-1', 'o', 'c', 't', 'p', 'u', '', 1, 1, 1, 9000000000000000, $1)`, []byte("members"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
	b.startReady()
	b.share()
	b.prepareStudies("S1")
	key := b.mustSend(http.MethodPost, "/keys", `{"name":"portal","scopes":["S1.WRITE"]}`, http.StatusOK).get("id").String()
	id := b.submit("S1")
	b.publish("S1", id)
	b.song.run("", "", core.JobSucceeded)
	letter := b.song.reject("STUDY", 1)["bad-STUDY-0"].Get("id").String()
	jobs := len(b.mustSend(http.MethodGet, "/jobs", "", http.StatusOK).get("jobs").Array())
	dir := filepath.Join(t.TempDir(), "backup")
	resp, err := b.client.Get(b.url + "/backup")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	m, err := backup.Unpack(resp.Body, dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{backup.PartStore, backup.PartQueue, backup.PartIndex}; !slices.Equal(m.Parts, want) || len(m.NotIncluded) > 0 {
		t.Errorf("parts %v, not included %v", m.Parts, m.NotIncluded)
	}
	b.stop()
	r := b.restore(dir)
	r.storeOf(func(ctx context.Context, s *store.Store) {
		var members []byte
		if err := s.Read().QueryRowContext(ctx, "SELECT members FROM saved_set WHERE id = 'set-1'").Scan(&members); err != nil || string(members) != "members" {
			t.Errorf("saved set %q, %v", members, err)
		}
	})
	r.startReady()
	r.share()
	if keys := r.mustSend(http.MethodGet, "/keys", "", http.StatusOK); keys.get("keys.0.id").String() != key {
		t.Errorf("keys %s", keys.raw)
	}
	r.mustSend(http.MethodGet, "/schemas/plain", "", http.StatusOK)
	r.mustSend(http.MethodGet, "/dead-letters/"+letter, "", http.StatusOK)
	if got := len(r.mustSend(http.MethodGet, "/jobs", "", http.StatusOK).get("jobs").Array()); got < jobs {
		t.Errorf("%d jobs, want %d or more", got, jobs)
	}
	r.awaitConverged()
	r.song.put("STUDY", "bad-STUDY-0", fixed)
	r.mustSend(http.MethodPost, "/dead-letters/"+letter+"/retry", "", http.StatusAccepted)
	r.song.awaitConverged(wait)
}

func newBusyStopped(t *testing.T) *busy {
	t.Helper()
	b := &busy{builtIn: newBuiltIn(t, plan{})}
	b.addSong()
	return b
}

// TestRestoreRefuses: a restore never mixes data, and leaves the folder as it was.
func TestRestoreRefuses(t *testing.T) {
	b := newBusyStopped(t)
	dir := filepath.Join(t.TempDir(), "backup")
	var archive bytes.Buffer
	if err := storage.WriteBackup(t.Context(), b.config(), slog.New(slog.DiscardHandler), "1.0", &archive); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Unpack(&archive, dir); err != nil {
		t.Fatal(err)
	}
	restore := func(yaml string) error {
		cfg, err := config.Parse([]byte(yaml), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = storage.Restore(t.Context(), cfg, slog.New(slog.DiscardHandler), dir)
		return err
	}
	wantError := func(err error, code core.Code, text string) {
		t.Helper()
		if core.CodeOf(err) != code || !strings.Contains(core.DisplayOf(err), text) {
			t.Errorf("got %v (%s), want %s with %q", err, core.CodeOf(err), code, text)
		}
	}
	wantError(restore(b.yaml()), core.CodeConflict, "is not empty")
	empty := t.TempDir()
	wantError(restore(fmt.Sprintf("dataDir: %q\nstore: {url: \"postgres://u:p@h/d\"}\n", empty)), core.CodeInvalid, "store.url")
	marker := filepath.Join(empty, ".moved") // which stays behind when the folder is emptied by a pattern such as *
	if err := os.WriteFile(marker, []byte(`{"parts":["store"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(restore(fmt.Sprintf("dataDir: %q\n", empty)), core.CodeConflict, "was moved to another server")
	if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "index", "index.db"), 10); err != nil {
		t.Fatal(err)
	}
	wantError(restore(fmt.Sprintf("dataDir: %q\n", empty)), core.CodeInvalid, "index/index.db")
	if entries, err := os.ReadDir(empty); len(entries) > 0 || err != nil {
		t.Errorf("a refused restore wrote %v, %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(empty, ".restoring"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(mustParse(t, fmt.Sprintf("server: {listen: \"127.0.0.1:0\"}\ndataDir: %q\n", empty)), app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantError(a.Start(t.Context()), core.CodeConflict, "a restore into the data folder")
}

// TestRestoreAfterMove: a data folder from which a part was moved to another server takes a backup of the parts that it still has.
func TestRestoreAfterMove(t *testing.T) {
	var archive bytes.Buffer
	out := backup.NewWriter(&archive, "1.0")
	out.NotIncluded(backup.PartStore)
	out.Part(backup.PartQueue)
	out.Part(backup.PartIndex)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	dir, data := filepath.Join(t.TempDir(), "backup"), t.TempDir()
	if _, err := backup.Unpack(&archive, dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(data, "store", "left"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, ".moved"), []byte(`{"parts":["store"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := mustParse(t, fmt.Sprintf("dataDir: %q\nstore: {url: \"postgres://u:p@h/d\"}\n", data))
	if _, err := storage.Restore(t.Context(), cfg, slog.New(slog.DiscardHandler), dir); err != nil {
		t.Errorf("Restore: %v (%s)", err, core.DisplayOf(err))
	}
	if _, err := os.Stat(filepath.Join(data, "store", "left")); err != nil {
		t.Error(err)
	}
}

func mustParse(t *testing.T, yaml string) config.Config {
	t.Helper()
	cfg, err := config.Parse([]byte(yaml), nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestBackupOneAtATime: a second backup is rejected while one is written, and a cancelled one ends.
func TestBackupOneAtATime(t *testing.T) {
	b := startBuiltIn(t, plan{})
	ctx, cancel := context.WithCancel(t.Context())
	first, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- b.app.Backup(ctx, in) }()
	if _, err := first.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if hint := b.mustSend(http.MethodGet, "/backup", "", http.StatusConflict).get("hint").String(); hint != "wait until it has ended" {
		t.Errorf("the hint is %q", hint)
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, first) }()
	if err := <-ended; core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("the cancelled backup returned %v", err)
	}
	_ = first.Close()
	b.mustSend(http.MethodGet, "/backup", "", http.StatusOK)
}
