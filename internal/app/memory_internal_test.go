package app

import (
	"testing"

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
