package main

import (
	"bytes"
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
	log.With("timeout", 2*time.Second).WithGroup("call").Info("a call", "duration", 1500*time.Microsecond, "took", time.Hour, "count", 3)
	line := gjson.ParseBytes(out.Bytes())
	for key, want := range map[string]float64{"timeout_ms": 2000, "call.duration_ms": 1.5, "call.took_ms": 3_600_000, "call.count": 3} {
		if got := line.Get(key); got.Type != gjson.Number || got.Float() != want {
			t.Errorf("%s is %s, want %v: %s", key, got.Raw, want, out.String())
		}
	}
	for _, key := range []string{"timeout", "call.duration", "call.took"} {
		if line.Get(key).Exists() {
			t.Errorf("%s has no unit: %s", key, out.String())
		}
	}
}
