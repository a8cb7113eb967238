package store_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"tutti/internal/core"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writingDir); dir != "" {
		if err := writeUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// wantError checks the code and message of an error.
func wantError(t *testing.T, err error, code core.Code, message string) {
	t.Helper()
	if core.CodeOf(err) != code || err == nil || core.MessageOf(err) != message {
		t.Errorf("got %s %q (%v), want %s %q", core.CodeOf(err), core.MessageOf(err), err, code, message)
	}
}
