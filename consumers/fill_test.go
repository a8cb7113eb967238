package consumers_test

import (
	"context"
	"testing"
	"time"

	"tutti/consumers"
	"tutti/internal/core"
)

// TestFillCell: an index without a document of the repository is due to be filled, also when its first document arrives
// before anything else, and stays so. An index that an older version has filled is not.
func TestFillCell(t *testing.T) {
	cell := func(w *world) string {
		c, _ := w.store.get(cellKey(consumers.FillCell("song", "analyses")))
		return string(c.value)
	}
	for name, tt := range map[string]struct {
		before func(w *world)
		want   string
	}{
		"empty":                             {func(*world) {}, consumers.FillDue},
		"filled by an older version":        {func(w *world) { w.seed("A", 1) }, consumers.FillDone},
		"documents of another repository":   {func(w *world) { w.engine.put("X", 1, `{"repositories":[{"code":"other"}]}`) }, consumers.FillDue},
		"a request waits for the consumers": {func(w *world) { w.index("A", "A-0000") }, consumers.FillDue},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 5)
				tt.before(w)
				if err := w.engine.Refresh(); err != nil {
					t.Fatal(err)
				}
				w.engine.hold = func(context.Context, core.Batch) error {
					if err := w.engine.Refresh(); err != nil || cell(w) != tt.want {
						t.Errorf("the cell is %q before a write, want %q (%v)", cell(w), tt.want, err)
					}
					return nil
				}
				for range 2 {
					p := w.boot(-1)
					w.index("A", "A-0000")
					w.idle()
					if err := w.engine.Refresh(); err != nil {
						t.Fatal(err)
					}
					if got := cell(w); got != tt.want {
						t.Errorf("the cell is %q, want %q", got, tt.want)
					}
					if err := p.stop(t, time.Minute); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestFillCellAfterJobs: a run of the whole repository that has written the index is stored as such by the time it ends. That of one
// organization is not.
func TestFillCellAfterJobs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 5)
		w.upstream.fill("B", 5)
		cell := func() string {
			c, _ := w.store.get(cellKey(consumers.FillCell("song", "analyses")))
			return string(c.value)
		}
		w.boot(-1)
		for _, run := range []struct{ organization, want string }{{"A", consumers.FillDue}, {"", consumers.FillDone}} {
			job := w.run(run.organization, false)
			w.idle()
			w.ended(w.job(job), core.JobSucceeded, "")
			if got := cell(); got != run.want {
				t.Errorf("after a run of %q the cell is %q, want %q", run.organization, got, run.want)
			}
		}
	})
}
