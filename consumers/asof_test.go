package consumers_test

import (
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestRemovalBeforeSplitRecord: a Request that a page or a sweep publishes for one record does not undo a removal that was
// requested and done after the page's or the run's message and before that of the record.
func TestRemovalBeforeSplitRecord(t *testing.T) {
	t.Run("of a page", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.upstream.fill("A", 30)
			w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) { // until it is requested by itself
				return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded}, id == "A-0007"
			}
			w.removeBeforeRecordRequest("A-0007")
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
			w.removeBeforeRecordRequest("A-old-0000")
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

// TestOldRemoval: a removal as of an earlier version removes older documents, and is stale against newer ones, whose dead
// letters stay as well. Its tombstone keeps out only older writes.
func TestOldRemoval(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 3)
		w.boot(-1)
		version := func(age time.Duration) core.Version { return core.Version(time.Now().Add(-age).UnixNano()) }
		remove := func(id string, age time.Duration) {
			w.publish(core.Request{Kind: core.KindRemove, Scope: core.ScopeRecord, Organization: "A", RecordID: id, AsOf: version(age)})
			w.idle()
		}
		live := func(want ...string) {
			t.Helper()
			if got := slices.Sorted(maps.Keys(w.engine.live())); !slices.Equal(got, want) {
				t.Errorf("%v are there, want %v", got, want)
			}
		}
		w.indexAll("A-0000", "A-0001")
		w.idle()
		if err := w.store.Put(core.DeadLetter{Repository: "song", Organization: "A", RecordID: "A-0000"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		remove("A-0000", 2*time.Hour)
		live("A-0000", "A-0001")
		if n := len(w.store.dead()); n != 1 {
			t.Errorf("%d dead letters, want the one of the newer document", n)
		}
		remove("A-0001", 30*time.Minute)
		live("A-0000")
		remove("A-0002", 30*time.Minute)
		w.publish(core.Request{Scope: core.ScopeRecord, Organization: "A", RecordID: "A-0002", AsOf: version(40 * time.Minute)})
		w.idle()
		live("A-0000")
		w.index("A", "A-0002")
		w.idle()
		live("A-0000", "A-0002")
	})
}

// removeBeforeRecordRequest removes a document just before a Request for its record alone is stored. The repository then
// lists the record, published.
func (w *world) removeBeforeRecordRequest(id string) {
	w.onPublish = func(r core.Request) error {
		if r.Scope != core.ScopeRecord || r.RecordID != id {
			return nil
		}
		w.onPublish, w.engine.item = nil, nil
		time.Sleep(time.Millisecond)
		w.engine.drop(id)
		w.upstream.mu.Lock()
		defer w.upstream.mu.Unlock()
		w.upstream.unlisted = id
		return nil
	}
}

// TestRemovalThenLaterRequest: a removal that is still pending when its record is requested again, in a batch or by a run,
// and is then rejected as well, does not win over the later request.
func TestRemovalThenLaterRequest(t *testing.T) {
	for name, wish := range map[string]func(w *world){
		"of a batch": func(w *world) { w.indexAll(idsOf("A", 20)...) },
		"of a page":  func(w *world) { w.await(w.run("A", false)) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 20)
				refusing := w.refuse("A-0007", core.OpIndex, core.OpDelete)
				w.boot(-1)
				w.remove("A", "A-0007")
				eventually(t, "a refused removal", func() bool { return refusing.refused.Load() > 0 })
				wish(w)
				eventually(t, "the others", func() bool { return len(w.engine.live()) == 19 && !w.batchWaits() })
				refusing.over.Store(true)
				w.idle()
				w.verify()
			})
		})
	}
}

// TestRepublishedRemoval: a removal that is republished, because it was rejected many times, does not undo the write of a
// later Request.
func TestRepublishedRemoval(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 20)
		refusing := w.refuse("A-0007", core.OpDelete)
		w.boot(-1)
		w.remove("A", "A-0007")
		eventually(t, "a refused removal", func() bool { return refusing.refused.Load() > 0 })
		w.indexAll(idsOf("A", 20)...)
		eventually(t, "the removal published again", func() bool { return len(w.broker.published(core.ScopeRecord)) > 1 })
		refusing.over.Store(true)
		w.idle()
		w.verify()
	})
}

// refusal makes an index reject some writes until it is over.
type refusal struct {
	refused atomic.Int64
	over    atomic.Bool
}

// refuse makes the index reject operations on a document.
func (w *world) refuse(id string, ops ...core.WriteOp) *refusal {
	r := &refusal{}
	w.engine.item = func(written string, op core.WriteOp, _ []byte) (core.Result, bool) {
		if written != id || !slices.Contains(ops, op) || r.over.Load() {
			return core.Result{}, false
		}
		r.refused.Add(1)
		return core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded}, true
	}
	return r
}
