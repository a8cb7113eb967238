//go:build services

package app_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tutti/internal/app"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/storetest"
)

// TestMove: a tutti with everything in its data folder continues on PostgreSQL, NATS and the engine: analyses, keys, dead letters and jobs
// are there, the index is filled, and what was moved is not used twice.
func TestMove(t *testing.T) {
	var source, target string
	b := newBuiltIn(t, plan{})
	at := func(store, queue, index string) string {
		w := *b.world
		w.set.queueURL = queue
		text := plan{store: store}.yaml(&w)
		text = strings.Replace(text, fmt.Sprintf("index: {url: %q", b.engine.url()), fmt.Sprintf("index: {url: %q", index), 1)
		return text + fmt.Sprintf("  - {code: %s, type: song, url: %q, indexName: %s-song, name: Test repository, organization: Example Institute, country: CA}\n", code, b.song.URL(), b.alias)
	}
	source = at("", "", "")
	target = at(storetest.PostgresURL(t), externalQueue(t), b.engine.url())
	b.set.configuration = func(*world) string { return source }
	song := func() *world {
		view := *b.world
		view.alias = b.alias + "-song"
		return &view
	}

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
	parse := func(text string) config.Config {
		cfg, err := config.Parse([]byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	move := func() (app.Moved, error) {
		return app.Move(t.Context(), parse(source), parse(target), slog.New(slog.DiscardHandler))
	}
	refused := func(when, says string, err error) {
		if core.CodeOf(err) != core.CodeConflict || !strings.Contains(core.MessageOf(err)+core.HintOf(err), says) {
			t.Errorf("%s: %v (%s)", when, err, core.HintOf(err))
		}
	}
	_, err := move()
	refused("while it runs", "stop the server", err)
	b.stop()
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
	a, err := app.New(parse(source), app.Options{})
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
