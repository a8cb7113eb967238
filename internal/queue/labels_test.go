package queue_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// TestRemovedRepositoryKeepsItsName: metrics name a repository that was configured at an earlier start, and no other.
func TestRemovedRepositoryKeepsItsName(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "")
	for _, configured := range [][]string{{"song", "gone"}, {"song"}, {"song", "new"}} {
		reg := prometheus.NewRegistry()
		q := s.connect(t, queue.Config{Metrics: queue.NewMetrics(reg)})
		if _, err := q.MoveUnknown(t.Context(), configured); err != nil {
			t.Fatal(err)
		}
		for _, repository := range []string{"gone", "from outside"} {
			if err := q.DeadLetters().Put(t.Context(), core.DeadLetter{Repository: repository, RecordID: "A1", Reason: core.ReasonRejected}); err != nil {
				t.Fatal(err)
			}
		}
		want := `
# HELP tutti_dead_letters Stored dead letters, by reason.
# TYPE tutti_dead_letters gauge
tutti_dead_letters{reason="rejected",repository="gone"} 1
tutti_dead_letters{reason="rejected",repository="unknown"} 1
`
		eventually(t, "the metric", func() bool {
			return testutil.GatherAndCompare(reg, strings.NewReader(want), "tutti_dead_letters") == nil
		})
	}
}
