package main

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/config"
)

// TestLogDurations: a JSON log has every duration in milliseconds under a key that says so, wherever it was added.
func TestLogDurations(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := logger(&out, config.Log{Format: "json", Level: "info"})
	log.With("timeout", 2*time.Second).Info("a call", slog.Duration("duration", 1500*time.Microsecond), "waited", time.Minute,
		slog.Group("call", slog.Duration("took", time.Hour)), "count", 3)
	line := gjson.ParseBytes(out.Bytes())
	for key, want := range map[string]float64{"timeout_ms": 2000, "duration_ms": 1.5, "waited_ms": 60_000, "call.took_ms": 3_600_000, "count": 3} {
		if got := line.Get(key); got.Type != gjson.Number || got.Float() != want {
			t.Errorf("%s is %s, want %v: %s", key, got.Raw, want, out.String())
		}
	}
	for _, key := range []string{"timeout", "duration", "waited", "call.took"} {
		if line.Get(key).Exists() {
			t.Errorf("%s has no unit: %s", key, out.String())
		}
	}
}
