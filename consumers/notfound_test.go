package consumers_test

import (
	"context"
	"testing"
	"time"

	"tutti/consumers"
	"tutti/internal/core"
)

var errForeignNotFound = core.WrapError(core.CodeUpstream, "the repository answered 404 with a page of HTML", core.ErrForeignNotFound)

// TestForeignNotFound: a 404 that the upstream did not write itself is retried for ten minutes, across processes, and makes
// a dead letter only afterwards, and only while the upstream answers other calls.
func TestForeignNotFound(t *testing.T) {
	type phase struct {
		until time.Duration
		err   error
	}
	outage := unavailable("the repository answered 502")
	tests := []struct {
		name   string
		phases []phase
		list   bool // the list of organizations fails too
		dead   bool
	}{
		{"a moment", []phase{{3 * time.Second, errForeignNotFound}}, false, false},
		{"nine minutes", []phase{{9 * time.Minute, errForeignNotFound}}, false, false},
		{"longer", []phase{{12 * time.Minute, errForeignNotFound}}, false, true},
		{"nine minutes after an outage", []phase{{30 * time.Minute, outage}, {39 * time.Minute, errForeignNotFound}}, false, false},
		{"nine minutes twice", []phase{
			{9 * time.Minute, errForeignNotFound}, {13 * time.Minute, outage}, {22 * time.Minute, errForeignNotFound},
		}, false, false},
		{"half an hour, as all calls", []phase{{30 * time.Minute, errForeignNotFound}}, true, false},
	}
	for _, tt := range tests {
		for _, batched := range []bool{false, true} {
			t.Run(tt.name+map[bool]string{true: ", of a batch"}[batched], func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					w.cfg = consumers.Config{} // the delays of a deployment
					w.upstream.fill("A", 2)
					began := time.Now()
					w.upstream.onRecord = func(_ context.Context, _, id string) error {
						for _, p := range tt.phases {
							if id == "A-0000" && time.Since(began) < p.until {
								return p.err
							}
						}
						return nil
					}
					if tt.list {
						w.upstream.onList = func() error { return w.upstream.onRecord(t.Context(), "A", "A-0000") }
					}
					p := w.boot(-1)
					if batched {
						w.indexAll("A-0000", "A-0001")
					} else {
						w.index("A", "A-0000")
						w.index("A", "A-0001")
					}
					time.Sleep(tt.phases[0].until / 2)
					_ = p.stop(t, time.Minute)
					w.boot(-1)
					within(t, time.Hour, "an empty queue", func() bool { return w.broker.size() == 0 })
					took := time.Since(began)
					d, dead := w.store.dead()["A-0000"]
					if !tt.dead {
						if dead {
							t.Errorf("dead letter after %s: %+v", took, d)
						}
						w.verify()
						return
					}
					if d.Reason != core.ReasonUpstream || took < 10*time.Minute || took > 11*time.Minute+5*time.Second {
						t.Errorf("after %s: %+v", took, d)
					}
					if d.Attempts < 15 || d.LastAt.Sub(d.FirstAt) < 10*time.Minute {
						t.Errorf("%d attempts from %s to %s", d.Attempts, d.FirstAt, d.LastAt)
					}
				})
			})
		}
	}
}
