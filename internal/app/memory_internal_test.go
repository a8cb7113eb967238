package app

import (
	"testing"
	"time"

	"tutti/internal/config"
)

// TestHandlerMemory: the bodies of requests count in the process's budget.
func TestHandlerMemory(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load("", []string{"TUTTI_DATA_DIR=" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if bodies, payloads := a.routerConfig().Bodies, a.metadataPorts().Payloads; bodies != a.memory.Requests || payloads != a.memory.Payloads {
		t.Errorf("the handler's memory is %p for bodies and %p for payloads, want %p and %p", bodies, payloads, a.memory.Requests, a.memory.Payloads)
	}
}

func TestPruneAgain(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	for last, want := range map[string]bool{
		"": true, "nonsense": true,
		now.Format(time.RFC3339Nano):                                         false,
		now.Add(-jobsPrunedEvery * 8 / 10).Format(time.RFC3339Nano):          false,
		now.Add(time.Millisecond - jobsPrunedEvery).Format(time.RFC3339Nano): true,
		now.Add(time.Second).Format(time.RFC3339Nano):                        true,
	} {
		if got := pruneAgain(last, now); got != want {
			t.Errorf("last %q: %t", last, got)
		}
	}
}
