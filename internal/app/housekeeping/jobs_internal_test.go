package housekeeping

import (
	"testing"
	"time"
)

func TestPruneAgain(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	for last, want := range map[string]bool{
		"": true, "nonsense": true,
		now.Format(time.RFC3339Nano):                                     false,
		now.Add(-PrunedEvery * 8 / 10).Format(time.RFC3339Nano):          false,
		now.Add(time.Millisecond - PrunedEvery).Format(time.RFC3339Nano): true,
		now.Add(time.Second).Format(time.RFC3339Nano):                    true,
	} {
		if got := pruneAgain(last, now); got != want {
			t.Errorf("last %q: %t", last, got)
		}
	}
}
