//go:build services

package app_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/internal/app"
	"tutti/internal/app/backup"
	"tutti/internal/app/storage"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/metadata"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/subjects"
	"tutti/internal/store"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/storetest"
)

// moving is a tutti with the built-in repository and one of a Song, which is moved.
type moving struct{ *builtIn }

// newMove returns a world whose tutti is not started, and the configurations before and after its move.
func newMove(t *testing.T) (b moving, source, target string) {
	t.Helper()
	b = moving{newBuiltIn(t, plan{})}
	at := func(store, queue, index string) string {
		w := *b.world
		w.set.queueURL = queue
		text := plan{store: store}.yaml(&w)
		text = strings.Replace(text, fmt.Sprintf("index: {url: %q", b.engine.url()), fmt.Sprintf("index: {url: %q", index), 1)
		return text + fmt.Sprintf("  - {code: %s, type: song, url: %q, indexName: %s-song, name: Test repository, organization: Example Institute, country: CA}\n", code, b.song.URL(), b.alias)
	}
	source = at("", "", "")
	target = at(storetest.PostgresURL(t)+"&application_name="+b.alias, externalQueue(t), b.engine.url())
	b.set.configuration = func(*world) string { return source }
	return b, source, target
}

// ofSong returns a view of the world's Song repository.
func (b moving) ofSong() *world {
	view := *b.world
	view.alias = b.alias + "-song"
	return &view
}

// TestMove: a tutti with everything in its data folder continues on PostgreSQL, NATS and the engine: analyses, keys, dead letters and jobs
// are there, the index is filled, and what was moved is not used twice.
func TestMove(t *testing.T) {
	b, source, target := newMove(t)
	song := b.ofSong
	b.startReady()
	b.prepareStudies("S1")
	ids := make([]string, 5)
	for i := range ids {
		ids[i] = b.submit("S1")
		b.publish("S1", ids[i])
	}
	key := b.mustSend(http.MethodPost, "/keys", `{"name":"portal","scopes":["S1.WRITE"]}`, http.StatusOK).get("id").String()
	b.song.AddStudy("STUDY")
	song().put("STUDY", "good", `"amount":1`)
	song().run("", "", core.JobSucceeded)
	song().put("STUDY", "bad", `"amount":"text"`)
	song().trigger("STUDY", "bad")
	b.eventually(wait, func() (bool, string) {
		letters := b.deadLettersByRecord()
		return len(letters) == 1, fmt.Sprint(letters)
	})
	jobs := len(b.mustSend(http.MethodGet, "/jobs", "", http.StatusOK).get("jobs").Array())
	move := func() (storage.Moved, error) {
		return storage.Move(t.Context(), mustParseMove(t, source), mustParseMove(t, target), slog.New(slog.DiscardHandler), func(string) {})
	}
	refused := func(when, says string, err error) {
		if core.CodeOf(err) != core.CodeConflict || !strings.Contains(core.MessageOf(err)+core.HintOf(err), says) {
			t.Errorf("%s: %v (%s)", when, err, core.HintOf(err))
		}
	}
	_, err := move()
	refused("while it runs", "stop the server", err)
	b.stop()
	unreachable := mustParseMove(t, strings.Replace(target, mustParseMove(t, target).Store.URL.Reveal(), "postgres://u:p@127.0.0.1:1/d", 1))
	_, err = storage.Move(t.Context(), mustParseMove(t, source), unreachable, slog.New(slog.DiscardHandler), func(string) {})
	if core.CodeOf(err) != core.CodeUnavailable || !strings.Contains(core.HintOf(err), "repeat the command") {
		t.Errorf("without PostgreSQL: %v (%s)", err, core.HintOf(err))
	}
	for range 2 { // an error after the copies, such as a process that is killed, and the same command again
		moved, err := move()
		if err != nil || moved.Rows < 10 || moved.Messages < 3 || len(moved.Parts) != 3 {
			t.Fatalf("%+v, %v", moved, err)
		}
		_, err = move()
		refused("when it was moved", "was moved to another server", err)
		if err := os.Remove(filepath.Join(b.dir, ".moved")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := move(); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(mustParseMove(t, source), app.Options{})
	if err == nil {
		err = a.Start(t.Context())
	}
	refused("a start with the old configuration", "was moved to another server", err)

	b.set.configuration = func(*world) string { return target }
	b.dropAtEnd(b.alias + "-song")
	b.startReady()
	stored := b.storedAnalyses("PUBLISHED")
	for _, id := range ids {
		if _, is := stored[id]; !is || len(stored) != len(ids) {
			t.Errorf("%d analyses; %s: %t", len(stored), id, is)
		}
	}
	if keys := b.mustSend(http.MethodGet, "/keys", "", http.StatusOK); keys.get("keys.0.id").String() != key {
		t.Errorf("keys %s", keys.raw)
	}
	if got := len(b.mustSend(http.MethodGet, "/jobs", "", http.StatusOK).get("jobs").Array()); got < jobs {
		t.Errorf("%d jobs, want %d or more", got, jobs)
	}
	b.awaitConverged()
	song().put("STUDY", "bad", `"amount":2`)
	letter := b.deadLettersByRecord()["bad"]
	b.mustSend(http.MethodPost, "/dead-letters/"+letter.ID+"/retry", "", http.StatusAccepted)
	song().awaitConverged(wait)
	b.wantNoDeadLetters()
	b.publish("S1", b.submit("S1"))
	b.awaitConverged()
}

// TestMoveIndex: a move of the index alone, of a tutti whose store and queue are on servers, is refused while it runs. Then it requests the
// run that fills the new index.
func TestMoveIndex(t *testing.T) {
	t.Parallel()
	b, _, target := newMove(t)
	source := strings.Replace(target, fmt.Sprintf("index: {url: %q", b.engine.url()), `index: {url: ""`, 1)
	b.set.configuration = func(*world) string { return source }
	b.startReady()
	b.prepareStudies("S1")
	b.publish("S1", b.submit("S1"))
	move := func() (storage.Moved, error) {
		return storage.Move(t.Context(), mustParseMove(t, source), mustParseMove(t, target), slog.New(slog.DiscardHandler), func(string) {})
	}
	if _, err := move(); core.CodeOf(err) != core.CodeConflict || !strings.Contains(core.HintOf(err), "stop the server") {
		t.Errorf("while it runs: %v (%s)", err, core.HintOf(err))
	}
	b.stop()
	if moved, err := move(); err != nil || !slices.Equal(moved.Parts, []string{backup.PartIndex}) || moved.Rows+int64(moved.Messages) > 0 {
		t.Fatalf("%+v, %v", moved, err)
	}
	b.set.configuration = func(*world) string { return target }
	b.dropAtEnd(b.alias + "-song")
	b.startReady()
	b.awaitConverged()
}

// What TestMoveKilled moves.
const (
	movedAnalyses = 4000
	movedRequests = 3000
	movedLetters  = 1000
)

// fillStopped fills the store and the queue of a tutti that is stopped: analyses with their events, Requests, jobs and dead letters.
func (b moving) fillStopped() {
	t := b.t
	b.storeOf(func(ctx context.Context, s *store.Store) {
		r, err := metadata.New(s, takes{}, metadata.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b.addAnalyses(ctx, r, "S2", movedAnalyses)
	})
	b.song.AddStudy("STUDY")
	b.withSource(func(server *embedded.Server) {
		q, err := queue.ConnectInProcess(t.Context(), server, queue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var g errgroup.Group
		g.SetLimit(64)
		for i := range movedRequests {
			id := fmt.Sprintf("R%d", i)
			b.ofSong().put("STUDY", id, "")
			g.Go(func() error {
				return q.Publish(t.Context(), core.Request{
					ID: "r-" + id, Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: code, Organization: "STUDY", RecordID: id,
					Cause: core.CauseREST, ReceivedAt: time.Now(),
				})
			})
		}
		for i := range movedLetters {
			g.Go(func() error {
				return q.DeadLetters().Put(t.Context(), core.DeadLetter{
					Repository: code, Organization: "STUDY", RecordID: fmt.Sprintf("L%d", i), Reason: core.ReasonRejected, Document: []byte(`{"a":1}`),
				})
			})
		}
		for i := range 20 {
			g.Go(func() error {
				return q.Jobs().Create(t.Context(), core.Job{ID: fmt.Sprintf("job-%d", i), Scope: core.ScopeRepository, Repository: code, State: core.JobSucceeded})
			})
		}
		if err := errors.Join(g.Wait(), q.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
	})
}

// withSource calls use with the embedded queue's server of a tutti that is stopped.
func (b moving) withSource(use func(server *embedded.Server)) {
	b.t.Helper()
	server, err := embedded.Start(b.t.Context(), embedded.Config{Dir: filepath.Join(b.dir, "queue")})
	if err != nil {
		b.t.Fatal(err)
	}
	use(server)
	if err := server.Stop(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// messages returns the messages of all streams of tutti by subject, without probes and those about the move itself.
func messages(t *testing.T, url string, server queuetest.InProcess) map[string]string {
	t.Helper()
	all := queuetest.Messages(t, url, server, "REQUESTS", "DEAD_LETTERS", "SEEN_SIGNATURES", "KV_tutti_jobs")
	maps.DeleteFunc(all, func(subject, _ string) bool { return strings.HasPrefix(subject, natsconn.ProbePrefix) })
	for _, cell := range []string{"move_id", "moved_from", "moving", "run_all"} {
		delete(all, "$KV.tutti_jobs.slot."+subjects.EncodeToken(cell))
	}
	return all
}

// wantSame fails the test unless got has the messages of want.
func wantSame(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	wrong := 0
	for subject, message := range want {
		if got[subject] != message {
			wrong++
			if wrong == 1 {
				t.Errorf("%s: the message of %s is %.200q, want %.200q", what, subject, got[subject], message)
			}
		}
	}
	for subject := range got {
		if _, is := want[subject]; !is {
			t.Errorf("%s: a message of %s that was not there", what, subject)
		}
	}
	if wrong > 0 || len(got) != len(want) {
		t.Errorf("%s: %d messages, of %d; %d are missing or different", what, len(got), len(want), wrong)
	}
}

// moveKilled moves a tutti in another process, which is killed as soon as now returns true.
func (b moving) moveKilled(what, target string, now func() bool) {
	b.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+b.yaml(), moveVariable+"="+target)
	cmd.Stderr = b.logs
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !now() {
		select {
		case err := <-ended:
			b.t.Fatalf("the move ended before it was killed %s: %v\n%s", what, err, b.logs.tail())
		default:
		}
	}
	_ = cmd.Process.Kill()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
		b.t.Fatalf("the move was not killed %s: %v\n%s", what, err, b.logs.tail())
	}
	if _, err := os.Stat(filepath.Join(b.dir, ".moved")); !errors.Is(err, os.ErrNotExist) {
		b.t.Fatalf("a move that was killed %s is recorded as done: %v", what, err)
	}
}

// TestMoveKilled: a move that is killed while it copies rows, Requests and dead letters, and is repeated each time, loses nothing and
// copies nothing twice. The source remains as it was. The tutti on the new servers works off what was pending.
func TestMoveKilled(t *testing.T) {
	t.Parallel()
	b, source, target := newMove(t)
	to := mustParseMove(t, target)
	b.startReady()
	b.prepareStudies("S1")
	b.stop()
	b.fillStopped()
	var tables, rows []string
	readRows := func(s *store.Store) []string { return storetest.Rows(t, s, tables) }
	b.storeOf(func(_ context.Context, s *store.Store) {
		tables = storetest.Tables(t, s)
		rows = readRows(s)
	})
	var pending map[string]string
	b.withSource(func(server *embedded.Server) { pending = messages(t, "", server) })
	if len(rows) < movedAnalyses || len(pending) < movedRequests+movedLetters {
		t.Fatalf("%d rows and %d messages to move", len(rows), len(pending))
	}

	moved := storetest.OpenConfig(t, store.Config{URL: strings.Replace(to.Store.URL.Reveal(), "application_name="+b.alias, "application_name=test", 1)})
	b.moveKilled("while it copies rows", target, func() (inserting bool) {
		if err := moved.Read().QueryRowContext(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE application_name = $1 AND query LIKE 'INSERT INTO analysis (%')`, b.alias).Scan(&inserting); err != nil {
			t.Fatal(err)
		}
		return inserting
	})
	if got := readRows(moved); len(got) > 0 {
		t.Errorf("%d rows of a transaction that was killed", len(got))
	}
	stored := queuetest.Counter(t, to.Queue.URL.Reveal())
	b.moveKilled("while it copies Requests", target, func() bool { return stored("REQUESTS") >= movedRequests/4 })
	if n := stored("REQUESTS"); n >= movedRequests {
		t.Errorf("the kill came after %d Requests: that proves nothing", n)
	}
	b.moveKilled("while it copies dead letters", target, func() bool { return stored("DEAD_LETTERS") >= movedLetters/4 })
	if n := stored("DEAD_LETTERS"); n >= movedLetters {
		t.Errorf("the kill came after %d dead letters: that proves nothing", n)
	}

	if _, err := storage.Move(t.Context(), mustParseMove(t, source), to, slog.New(slog.DiscardHandler), func(string) {}); err != nil {
		t.Fatal(err)
	}
	if got := readRows(moved); !slices.Equal(got, rows) {
		t.Errorf("the rows differ after the move: %d, want %d", len(got), len(rows))
	}
	wantSame(t, "moved", messages(t, to.Queue.URL.Reveal(), nil), pending)
	b.storeOf(func(_ context.Context, s *store.Store) {
		if got := readRows(s); !slices.Equal(got, rows) {
			t.Errorf("the move changed the rows of the source: %d, want %d", len(got), len(rows))
		}
	})
	b.withSource(func(server *embedded.Server) { wantSame(t, "source", messages(t, "", server), pending) })

	b.set.configuration = func(*world) string { return target }
	b.dropAtEnd(b.alias + "-song")
	b.startReady()
	b.awaitConverged()
	b.ofSong().awaitConverged(wait)
}

func mustParseMove(t *testing.T, yaml string) config.Config {
	t.Helper()
	cfg, err := config.Parse([]byte(yaml), nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
