package consumers_test

import (
	"testing"
	"time"

	"tutti/internal/core"
)

// TestRemovalBeforeSplitRecord: what a page or a sweep asks for by itself does not undo a removal that was asked for, and
// done, after the page's or the run's message and before that of the record.
func TestRemovalBeforeSplitRecord(t *testing.T) {
	t.Run("of a page", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.upstream.fill("A", 30)
			w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) { // until it is asked for by itself
				return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded}, id == "A-0007"
			}
			w.removeBeforeAsked("A-0007")
			w.boot(-1)
			w.await(w.run("A", false))
			w.idle()
			if _, there := w.engine.live()["A-0007"]; there {
				t.Error("A-0007 is back")
			}
			if n := len(w.engine.live()); n != 29 {
				t.Errorf("%d documents, want 29", n)
			}
		})
	})
	t.Run("of a sweep", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.upstream.fill("A", 30)
			w.seed("A", 1)
			w.removeBeforeAsked("A-old-0000")
			w.boot(-1)
			w.await(w.run("A", false))
			w.idle()
			if _, there := w.engine.live()["A-old-0000"]; there {
				t.Error("A-old-0000 is back")
			}
			w.same(w.upstream.model())
		})
	})
}

// removeBeforeAsked removes a document just before a Request for its record alone is stored. The repository lists the
// record then, published.
func (w *world) removeBeforeAsked(id string) {
	w.onPublish = func(r core.Request) error {
		if r.Scope != core.ScopeRecord || r.RecordID != id {
			return nil
		}
		w.onPublish, w.engine.item = nil, nil
		time.Sleep(time.Millisecond)
		w.engine.drop(id)
		w.upstream.mu.Lock()
		defer w.upstream.mu.Unlock()
		w.upstream.alone = id
		return nil
	}
}
