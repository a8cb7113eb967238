//go:build !services

package app_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tutti/internal/app/backup"
	"tutti/internal/app/storage"
	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/tools/storetest"
	"tutti/internal/tools/testkit"
)

// command starts a command on the world's configuration in a child, which has begun when command returns.
func (w *world) command(variable, value string) *child {
	w.t.Helper()
	c, _, err := startProcess(w.t, w.logs, childVariable+"="+w.yaml(), variable+"="+value)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.logs.tail())
	}
	return c
}

// wait waits for the end of a child that runs a command.
func (c *child) wait() error {
	c.ended = true
	return c.cmd.Wait()
}

// timed runs a command to its end and returns how long that took.
func (w *world) timed(variable, value string) time.Duration {
	w.t.Helper()
	c, began := w.command(variable, value), time.Now()
	if err := c.wait(); err != nil {
		w.t.Fatalf("%v\n%s", err, w.logs.tail())
	}
	return time.Since(began)
}

// interrupted runs a command and kills it at a random instant, in one of ten cases after its end.
func (w *world) interrupted(took time.Duration, variable, value string) {
	w.t.Helper()
	c := w.command(variable, value)
	<-time.After(rand.N(took + took/10 + 1)) // for nothing: the kill shall meet the process anywhere
	c.kill()
}

// wantNoStart fails the test unless a tutti with the world's configuration does not start and says why.
func (w *world) wantNoStart(when, says string) {
	w.t.Helper()
	a := w.newApp()
	err := a.Start(w.t.Context())
	if err == nil {
		err = a.Stop(w.t.Context())
		w.t.Fatalf("%s: a tutti starts (and stops with %v)", when, err)
	}
	if core.CodeOf(err) != core.CodeConflict || !strings.Contains(core.DisplayOf(err), says) {
		w.t.Fatalf("%s: %v (%s), want %q", when, err, core.DisplayOf(err), says)
	}
}

// newFilled returns a stopped tutti with analyses in its store and index, and Requests of records of the Song that are not processed.
func newFilled(t *testing.T, analyses, requests int) *busy {
	t.Helper()
	b := newBusyStopped(t)
	b.startReady()
	b.share()
	b.prepareStudies("S1")
	for range analyses {
		id := b.submit("S1")
		b.publish("S1", id)
		b.published = append(b.published, id)
	}
	b.song.reject("STUDY", 1)
	b.stop()
	b.request(0, requests)
	return b
}

// request publishes Requests of records of the Song with the numbers from first on, while no tutti runs.
func (b *busy) request(first, n int) {
	b.t.Helper()
	b.withQueue(func(q *queue.Queue) {
		for i := first; i < first+n; i++ {
			id := fmt.Sprintf("R%d", i)
			b.song.put("STUDY", id, "")
			if err := q.Publish(b.t.Context(), core.Request{
				ID: "r-" + id, Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: code, Organization: "STUDY", RecordID: id,
				Cause: core.CauseREST, ReceivedAt: time.Now(),
			}); err != nil {
				b.t.Fatal(err)
			}
			b.triggered = append(b.triggered, id)
		}
	})
}

// wantAll starts the tutti and fails the test unless it has the analyses and the dead letter, and indexes all records.
func (b *busy) wantAll(published, triggered []string) {
	b.t.Helper()
	b.startReady()
	b.share()
	if none := missing(published, b.storedAnalyses("PUBLISHED")); len(none) > 0 {
		b.t.Errorf("%d analyses are lost: %v", len(none), none)
	}
	b.awaitConverged()
	b.eventually(wait, func() (bool, string) {
		none := missing(triggered, b.song.engine.documents(b.song))
		return len(none) == 0, fmt.Sprintf("records that are not indexed: %v", none)
	})
	if letters := b.deadLettersByRecord(); len(letters) != 1 {
		b.t.Errorf("%d dead letters, want 1: %+v", len(letters), letters)
	}
}

// TestBackupKilled: a backup that is killed at a random instant, as is the tutti that sends one, is whole or is refused, and the next one
// succeeds.
func TestBackupKilled(t *testing.T) {
	t.Parallel()
	b := newFilled(t, 20, 200)
	folder := func(name string, n int) string { return filepath.Join(t.TempDir(), fmt.Sprint(name, n)) }
	took := b.timed(backupVariable, folder("whole", 0))
	whole := 0
	check := func(dir string) {
		t.Helper()
		if _, err := backup.Open(dir); err == nil {
			whole++
			return
		} else if core.CodeOf(err) != core.CodeInvalid || !strings.Contains(core.MessageOf(err), "is not a complete backup") {
			t.Errorf("opening a backup that was killed: %v", err)
		}
		view := *b.world
		view.dir = t.TempDir()
		_, err := storage.Restore(t.Context(), (&busy{builtIn: &builtIn{world: &view}}).config(), slog.New(slog.DiscardHandler), dir)
		entries, readErr := os.ReadDir(view.dir)
		if core.CodeOf(err) != core.CodeInvalid || len(entries) > 0 || readErr != nil {
			t.Errorf("restoring a backup that was killed: %v; left %v, %v", err, entries, readErr)
		}
	}
	n := testkit.Cases(6)
	for i := range n {
		dir := folder("killed", i)
		b.interrupted(took, backupVariable, dir)
		check(dir)
	}
	for i := range n {
		process, dir := b.startChild(), folder("sender", i)
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			<-time.After(rand.N(took + 1)) // for nothing: the kill shall meet the process anywhere
			process.kill()
		}()
		resp, err := b.client.Get(b.url + "/backup")
		if err == nil {
			_, err = backup.Unpack(resp.Body, dir)
			_ = resp.Body.Close() // only read
		}
		<-killed
		if err == nil {
			check(dir)
		} else if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("a backup whose sender was killed left its folder: %v", err)
		}
	}
	t.Logf("a backup takes %s; %d of %d ended before the kill", took.Round(time.Millisecond), whole, 2*n)
	dir := folder("last", 0)
	b.timed(backupVariable, dir)
	b.restore(dir).wantAll(b.published, b.triggered)
}

// TestRestoreKilled: a restore that is killed at random instants is reported by the next start, and ends with the same data when it is
// repeated, without anything done by hand.
func TestRestoreKilled(t *testing.T) {
	t.Parallel()
	b := newFilled(t, 20, 200)
	dir := filepath.Join(t.TempDir(), "backup")
	b.timed(backupVariable, dir)
	view := *b.world
	r := &busy{builtIn: &builtIn{world: &view}}
	r.dir = filepath.Join(t.TempDir(), "whole")
	took := r.timed(restoreVariable, dir)
	r.dir = filepath.Join(t.TempDir(), "data")
	interrupted := func() bool {
		info, err := os.Lstat(filepath.Join(r.dir, ".restoring"))
		stored, _ := os.ReadDir(filepath.Join(r.dir, "store"))
		return err == nil && (info.Size() > 0 || len(stored) == 0) // it is emptied when all is restored
	}
	reported, ended := 0, false
	for i := 0; i < testkit.Cases(10) && !ended; i++ {
		r.interrupted(took, restoreVariable, dir)
		if interrupted() {
			reported++
			r.wantNoStart("after a restore that was killed", "was interrupted")
			continue
		}
		entries, _ := os.ReadDir(r.dir)
		ended = len(entries) > 0 // else it was killed before it began
	}
	if !ended {
		r.timed(restoreVariable, dir)
	}
	t.Logf("a restore takes %s; %d were interrupted", took.Round(time.Millisecond), reported)
	if interrupted() {
		t.Error("a restore that has ended is reported as interrupted")
	}
	// One that is killed when it has emptied its marker has ended.
	if err := os.WriteFile(filepath.Join(r.dir, ".restoring"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.wantAll(b.published, b.triggered)
}

// killedAfter runs a command whose queue is behind a relay, and kills it when it has sent so many bytes to it; false if it ended before.
func (w *world) killedAfter(relay *storetest.Relay, bytes int64, variable, value string) bool {
	w.t.Helper()
	reached, ended := relay.BlockAfter(bytes), make(chan struct{})
	c := w.command(variable, value)
	go func() {
		defer close(ended)
		_ = c.cmd.Wait()
	}()
	killed := false
	select {
	case <-reached:
		killed = true
		_ = c.cmd.Process.Kill()
		<-ended
		relay.Down() // what it had sent beyond is lost
		relay.Unblock()
		relay.Up()
	case <-ended:
		relay.BlockAfter(0)
	}
	c.ended = true
	_ = c.stdin.Close()
	return killed
}

// relayedQueue returns a relay to a NATS server, and its URL.
func relayedQueue(t *testing.T) (*storetest.Relay, string) {
	t.Helper()
	server, err := url.Parse(externalQueue(t))
	if err != nil {
		t.Fatal(err)
	}
	relay := storetest.NewRelay(t, server.Host)
	server.Host = relay.Addr()
	return relay, server.String()
}

// TestMoveQueueKilled: a move of the queue to another server that is killed after any number of bytes leaves the data folder usable, and is
// repeated to the same end, also after a tutti has worked on the folder in between. Until then no tutti starts on the other server.
func TestMoveQueueKilled(t *testing.T) {
	t.Parallel()
	b := newFilled(t, 5, 400)
	source := b.set.configuration
	relay, url := relayedQueue(t)
	target := func(w *world) string {
		own := *w
		own.set.queueURL = url
		return source(&own)
	}
	ofTarget := *b.world
	ofTarget.set.configuration = target
	// How much a move sends, with another server and a copy of the data.
	copied := filepath.Join(t.TempDir(), "backup")
	b.timed(backupVariable, copied)
	other := b.restore(copied)
	own := *other.world
	counting, elsewhere := relayedQueue(t)
	own.set.queueURL = elsewhere
	other.timed(moveVariable, source(&own))
	whole := counting.Sent()

	moved := func() bool {
		_, err := os.Stat(filepath.Join(b.dir, ".moved"))
		return err == nil
	}
	begun, next, kills := 0, 1000, int64(testkit.Cases(6))
	for i := range kills {
		if !b.killedAfter(relay, whole*(i+1)/(4*kills), moveVariable, target(b.world)) || moved() { // a repeated move sends less
			break
		}
		if _, err := os.Lstat(filepath.Join(b.dir, ".moving")); err != nil {
			continue
		}
		begun++
		ofTarget.wantNoStart("after a move that was killed", "was interrupted")
		if i%2 == 0 {
			before := len(b.logs.all())
			b.startReady()
			b.stop()
			if !strings.Contains(strings.Join(b.logs.all()[before:], ""), "a move to other servers was interrupted") {
				t.Error("the start after a move that was killed does not say so")
			}
		}
		b.request(next, 20)
		next += 20
	}
	t.Logf("a move sends %d bytes; %d of %d were killed while they copied", whole, begun, kills)
	if begun < int(kills)/2 {
		t.Errorf("%d of %d moves were killed while they copied", begun, kills)
	}
	if !moved() {
		b.timed(moveVariable, target(b.world))
	}
	b.wantNoStart("after the move, with the old configuration", "was moved to another server")
	b.set.configuration = target
	b.wantAll(b.published, b.triggered)
	b.mustSend(http.MethodGet, "/ready", "", http.StatusOK)
}
