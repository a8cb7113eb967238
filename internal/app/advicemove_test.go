package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"tutti/internal/app/storage"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/testkit"
)

// TestAdviceOfMovesThatFail: a move to servers that do not answer leaves the data folder as it was, as its hint says: it can be opened, and the move
// can be repeated.
func TestAdviceOfMovesThatFail(t *testing.T) {
	t.Parallel()
	gone := testkit.NewAddress(t)
	dir := t.TempDir()
	parse := func(more string) config.Config {
		cfg, err := config.Parse(fmt.Appendf(nil, "dataDir: %q\n%s", dir, more), nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	open := func() {
		s, err := store.Open(t.Context(), store.Config{Dir: filepath.Join(dir, "store")})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	open()
	for range 2 { // repeated
		for more, hint := range map[string]string{
			"queue: {url: 'nats://" + gone + "'}":                 "check queue.url and that nats-server runs there",
			"store: {url: 'postgres://u:s3cret@" + gone + "/db'}": "the data folder is as before, and can be used: fix the cause, then repeat the command",
		} {
			to := parse("server: {startTimeout: 1s}\n" + more) // a server may come
			_, err := storage.Move(t.Context(), parse(""), to, slog.New(slog.DiscardHandler), func(string) {})
			if core.CodeOf(err) != core.CodeUnavailable || core.HintOf(err) != hint {
				t.Errorf("%s: %v, hint %q, want %q", more, err, core.HintOf(err), hint)
			}
			open()
		}
	}
}

// TestAdviceOfInterruptedMoves: after a move that was interrupted, tutti starts with the previous configuration, and with the new one only once the
// move was repeated, as the hint says.
func TestAdviceOfInterruptedMoves(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.fill("S1", 3)
	w.run("", "", core.JobSucceeded)
	w.stop()
	parse := func() config.Config {
		cfg, err := config.Parse([]byte(w.yaml()), nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	before, url := parse(), queuetest.Serve(t, t.TempDir(), "").ClientURL()
	w.set.queueURL = url
	after := parse()
	ctx, interrupt := context.WithCancel(t.Context())
	if _, err := storage.Move(ctx, before, after, slog.New(slog.DiscardHandler), func(string) { interrupt() }); err == nil {
		t.Fatal("the move was not interrupted")
	}
	wantHint(t, w.newApp().Start(t.Context()), core.CodeConflict, "repeat tutti move, which completes it; until then only the previous configuration can be used")
	w.set.queueURL = ""
	w.start()
	w.stop()
	if _, err := storage.Move(t.Context(), before, after, slog.New(slog.DiscardHandler), func(string) {}); err != nil {
		t.Fatal(err)
	}
	w.set.queueURL = url
	w.start()
	w.awaitConverged(wait)
}
