package embedded

import (
	"log/slog"
	"strings"
	"testing"
)

// TestRepeatedWarnings: a warning of the server that repeats is logged at its first and at doubled counts, and again after another one.
func TestRepeatedWarnings(t *testing.T) {
	var log strings.Builder
	l := newLogger(slog.New(slog.NewTextHandler(&log, nil)))
	for range 1000 {
		l.Warnf("state of %s not written", "a")
	}
	l.Warnf("another")
	l.Warnf("state of %s not written", "a")
	text := log.String()
	if n := strings.Count(text, "\n"); n != 12 || !strings.Contains(text, "count=512") || strings.Count(text, "count=1\n") != 3 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}
