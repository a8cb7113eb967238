package consumers_test

import (
	"context"
	"testing"
	"time"

	"tutti/consumers"
	"tutti/internal/core"
)

var errForeignNotFound = core.WrapError(core.CodeUpstream, "the repository answered 404 with a page of HTML", core.ErrForeignNotFound)

// TestForeignNotFound: a 404 in words that are not the upstream's own is retried for ten minutes, whichever process has
// the record then, and becomes a dead letter only afterwards.
func TestForeignNotFound(t *testing.T) {
	tests := []struct {
		name    string
		first   error         // what the upstream answers before the 404
		at, end time.Duration // when it answers 404
		dead    bool
	}{
		{"a moment", nil, 0, 3 * time.Second, false},
		{"nine minutes", nil, 0, 9 * time.Minute, false},
		{"longer", nil, 0, time.Hour, true},
		{"nine minutes, long after the request", unavailable("the repository answered 502"), 30 * time.Minute, 39 * time.Minute, false},
	}
	for _, tt := range tests {
		for _, batched := range []bool{false, true} {
			t.Run(tt.name+map[bool]string{true: ", of a batch"}[batched], func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					w.cfg = consumers.Config{} // the delays of a deployment
					w.upstream.fill("A", 2)
					began := time.Now()
					w.upstream.onRecord = func(_ context.Context, _, id string) error {
						switch took := time.Since(began); {
						case id != "A-0000" || took >= tt.end:
							return nil
						case took < tt.at:
							return tt.first
						default:
							return errForeignNotFound
						}
					}
					p := w.boot(-1)
					if batched {
						w.indexAll("A-0000", "A-0001")
					} else {
						w.index("A", "A-0000")
						w.index("A", "A-0001")
					}
					time.Sleep(tt.at + 5*time.Minute)
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
					if d.Reason != core.ReasonUpstream || took < 10*time.Minute || took > 12*time.Minute {
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
