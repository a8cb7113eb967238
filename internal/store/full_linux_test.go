package store_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
	"tutti/internal/tools/testkit"
)

// TestReadyOnAFullDisk fills the disk below SQLite, in a process with a file size limit: transactions fail, Ready returns the
// error, and with free space again everything works and all committed data is there.
func TestReadyOnAFullDisk(t *testing.T) {
	if !testkit.Alone(t) {
		return
	}
	dir := t.TempDir()
	signal.Ignore(syscall.SIGXFSZ)
	s := storetest.OpenConfig(t, store.Config{Dir: dir})
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	limit := func(l syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			t.Fatal(err)
		}
	}
	limit(syscall.Rlimit{Cur: 800 << 10, Max: was.Max})
	// Ready really writes: the log, which has no other writer, grows up to the limit.
	var err error
	for n := 0; err == nil; n++ {
		if n == 1000 {
			t.Fatal("Ready writes nothing")
		}
		err = s.Ready(t.Context())
	}
	wantUnavailable(t, err)
	limit(was)
	if err := s.Ready(t.Context()); err != nil {
		t.Fatalf("with free space again: %v", err)
	}
	var stored []string
	size, err := os.Stat(filepath.Join(dir, "tutti.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	limit(syscall.Rlimit{Cur: uint64(size.Size()) + 100<<10, Max: was.Max})
	large := strings.Repeat("x", 40<<10)
	for err == nil {
		id := fmt.Sprint(len(stored), large)
		if err = s.Update(t.Context(), insert(id)); err == nil {
			stored = append(stored, id)
		}
	}
	wantUnavailable(t, err)
	// A transaction that still fits does not prove that the failed one would.
	wantUnavailable(t, s.Ready(t.Context()))
	limit(was)
	if err := s.Ready(t.Context()); err != nil {
		t.Fatalf("with free space again: %v", err)
	}
	if err := s.Update(t.Context(), insert("afterwards")); err != nil {
		t.Fatal(err)
	}
	wantStudies(t, s, append(stored, "afterwards")...)
}

func wantUnavailable(t *testing.T, err error) {
	t.Helper()
	if core.CodeOf(err) != core.CodeUnavailable {
		t.Fatalf("got %v, want %s", err, core.CodeUnavailable)
	}
}
