package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/queue/embedded"
	"tutti/internal/tools/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, queuetest.Outlive()...) }

func TestLockDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	lock, err := embedded.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = embedded.LockDir(dir)
	if core.CodeOf(err) != core.CodeConflict || !strings.Contains(core.MessageOf(err), dir) ||
		!strings.Contains(core.MessageOf(err), "another tutti") {
		t.Fatalf("a second lock gave %v", err)
	}
	for range 2 {
		if err := lock.Unlock(); err != nil {
			t.Fatal(err)
		}
	}
	again, err := embedded.LockDir(dir)
	if err != nil {
		t.Fatalf("after Unlock: %v", err)
	}
	if err := again.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestLockDirNotWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.LockDir(file); core.CodeOf(err) != core.CodeInternal {
		t.Fatalf("got %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	held := t.TempDir()
	lock, err := embedded.LockDir(held)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Unlock() })
	for name, tc := range map[string]struct {
		cfg  embedded.Config
		code core.Code
	}{
		"no folder":       {embedded.Config{}, core.CodeInvalid},
		"no port":         {embedded.Config{Dir: t.TempDir(), Listen: "localhost"}, core.CodeInvalid},
		"port no number":  {embedded.Config{Dir: t.TempDir(), Listen: "localhost:x"}, core.CodeInvalid},
		"negative size":   {embedded.Config{Dir: t.TempDir(), MaxStoreBytes: -1}, core.CodeInvalid},
		"folder is taken": {embedded.Config{Dir: held}, core.CodeConflict},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := embedded.Start(t.Context(), tc.cfg); core.CodeOf(err) != tc.code {
				t.Fatalf("got %v, want code %s", err, tc.code)
			}
		})
	}
}

func TestStartReportsABrokenStore(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "jetstream"), []byte("no folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := embedded.Start(ctx, embedded.Config{Dir: dir}); core.CodeOf(err) != core.CodeInternal {
		t.Fatalf("got %v", err)
	}
	lock, err := embedded.LockDir(dir)
	if err != nil {
		t.Fatalf("the folder stayed locked: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestStartStop(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		s, err := embedded.Start(t.Context(), embedded.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if s.URL() != "" {
			t.Errorf("a server in process listens on %s", s.URL())
		}
		if !s.SyncsEveryWrite() {
			t.Error("acknowledged messages would be lost with the power")
		}
		conn, err := s.InProcessConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestListen(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(s.URL(), "nats://127.0.0.1:") {
		t.Errorf("URL is %q", s.URL())
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}
