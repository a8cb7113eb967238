package embedded_test

import (
	"os"
	"path/filepath"
	"testing"

	"tutti/internal/core"
	"tutti/internal/queue/embedded"
	"tutti/internal/tools/testkit"
)

func start(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(t.Context()) })
	return s
}

// connects fails the test unless the server takes connections.
func connects(t *testing.T, s *embedded.Server) {
	t.Helper()
	conn, err := s.InProcessConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, embedded.Config{Dir: dir, Listen: testkit.NewAddress(t)})
	url := s.URL()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	connects(t, s)
	if !s.SyncsEveryWrite() {
		t.Error("acknowledged messages would be lost with the power after a restart")
	}
	if s.URL() != url {
		t.Errorf("it moved from %s to %s", url, s.URL())
	}
	if _, err := embedded.LockDir(dir); core.CodeOf(err) != core.CodeConflict {
		t.Errorf("the lock was released: %v", err)
	}
	if err := s.StorageError(); err != nil {
		t.Errorf("a fault of a server that can store: %v", err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("a stopped server was restarted: %v", err)
	}
}

func TestRestartWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	s := start(t, embedded.Config{Dir: dir})
	if err := os.Mkdir(filepath.Join(dir, ".room"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	connects(t, s)
}

func TestRestartThatFails(t *testing.T) {
	dir := t.TempDir()
	s := start(t, embedded.Config{Dir: dir})
	streams, away := filepath.Join(dir, "jetstream"), filepath.Join(dir, "away")
	if err := os.Rename(streams, away); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(streams, []byte("no folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); core.CodeOf(err) != core.CodeInternal {
		t.Fatalf("got %v", err)
	}
	if err := s.StorageError(); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("the fault of a server that does not run is %v", err)
	}
	if _, err := s.InProcessConn(); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("a connection to it gave %v", err)
	}
	if err := os.Remove(streams); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, streams); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	connects(t, s)
}
