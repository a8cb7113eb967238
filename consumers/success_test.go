package consumers_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/consumers"
	"tutti/internal/core"
)

// TestLastSuccess: a page or a record counts as a success when something of it is written, and not when all is rejected.
func TestLastSuccess(t *testing.T) {
	for name, tt := range map[string]struct {
		work    func(w *world)
		refused bool
		want    int
	}{
		"a page":            {func(w *world) { w.job(w.run("A", false)) }, false, 1},
		"a rejected page":   {func(w *world) { w.job(w.run("A", false)) }, true, 0},
		"a record":          {func(w *world) { w.index("A", "A-0000") }, false, 1},
		"a rejected record": {func(w *world) { w.index("A", "A-0000") }, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				reg := prometheus.NewRegistry()
				w.cfg.Metrics = consumers.NewMetrics(reg)
				w.upstream.fill("A", 5)
				w.engine.item = func(string, core.WriteOp, []byte) (core.Result, bool) {
					return core.Result{Outcome: core.OutcomeRejected, Type: "mapper_parsing_exception"}, tt.refused
				}
				w.boot(-1)
				tt.work(w)
				w.idle()
				n, err := testutil.GatherAndCount(reg, "tutti_last_success_timestamp_seconds")
				if err != nil || n != tt.want {
					t.Errorf("%d series, want %d (%v)", n, tt.want, err)
				}
			})
		})
	}
}
