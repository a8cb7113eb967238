package consumers_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestDatedEvents: the events of a request topic are ordered by the times at which they were written, whenever they are
// read. An index event that is older than the stored version is dropped only if that is a removal.
func TestDatedEvents(t *testing.T) {
	const id = "A-0000"
	for name, test := range map[string]func(w *world, began time.Time){
		"removal behind an index event, both read late": func(w *world, began time.Time) {
			time.Sleep(10 * time.Minute)
			w.event(core.KindIndex, id, began)
			w.idle()
			w.event(core.KindRemove, id, began.Add(30*time.Second))
			w.idle()
			w.live()
		},
		"both read late, the index event in flight": func(w *world, began time.Time) {
			time.Sleep(10 * time.Minute)
			w.event(core.KindIndex, id, began)
			w.event(core.KindRemove, id, began.Add(30*time.Second))
			w.idle()
			w.live()
		},
		"read again": func(w *world, began time.Time) {
			w.event(core.KindIndex, id, began)
			w.idle()
			time.Sleep(30 * time.Second)
			w.event(core.KindRemove, id, time.Now())
			w.idle()
			w.live()
			time.Sleep(time.Hour)
			letter := core.DeadLetter{Repository: "song", Organization: "A", RecordID: id}
			if err := w.store.Put(letter); err != nil {
				w.t.Fatal(err)
			}
			w.event(core.KindIndex, id, began)
			w.idle()
			w.live()
			if len(w.store.dead()) != 1 {
				w.t.Error("the dead letter of a later failure is gone")
			}
			w.event(core.KindRemove, id, began.Add(30*time.Second))
			w.idle()
			w.live()
		},
		"read again after a later request to index": func(w *world, began time.Time) {
			time.Sleep(time.Hour)
			w.index("A", id)
			w.idle()
			w.event(core.KindIndex, id, began)
			w.idle()
			w.event(core.KindRemove, id, began.Add(30*time.Second))
			w.idle()
			w.verify()
		},
		"read again while a later request to index is in flight": func(w *world, began time.Time) {
			time.Sleep(time.Hour)
			w.index("A", id)
			w.event(core.KindIndex, id, began)
			w.event(core.KindRemove, id, began.Add(30*time.Second))
			w.idle()
			w.verify()
		},
		"update by a producer whose clock is behind": func(w *world, _ time.Time) {
			w.index("A", id)
			w.idle()
			w.upstream.edit("A", id, func(r *record) { r.rev = 7 })
			w.event(core.KindIndex, id, time.Now().Add(-time.Hour))
			w.idle()
			w.verify()
		},
		"unpublished, told by a producer whose clock is behind": func(w *world, _ time.Time) {
			w.index("A", id)
			w.idle()
			unpublish(w, "A", id)
			w.event(core.KindIndex, id, time.Now().Add(-time.Hour))
			w.idle()
			w.verify()
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 1)
				w.boot(-1)
				test(w, time.Now())
			})
		})
	}
}

// TestDatedEventWithRemoval: a removal stays that is done between reading the stored document and retrying the write of an
// index event.
func TestDatedEventWithRemoval(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		w.boot(-1)
		w.index("A", "A-0000")
		w.idle()
		writes := 0
		w.engine.item = func(id string, _ core.WriteOp, _ []byte) (core.Result, bool) {
			if writes++; writes == 2 { // the first is stale; the engine is locked
				w.engine.docs[id] = document{version: ahead(0), deleted: true}
			}
			return core.Result{}, false
		}
		time.Sleep(time.Minute)
		w.event(core.KindIndex, "A-0000", time.Now().Add(-time.Hour))
		w.idle()
		w.live()
		if writes != 2 {
			t.Errorf("%d writes, want 2", writes)
		}
	})
}

// event publishes the Request that ingest makes of an event written to the request topic at a given time.
func (w *world) event(kind core.Kind, id string, at time.Time) {
	w.t.Helper()
	w.publish(core.Request{
		Kind: kind, Scope: core.ScopeRecord, Organization: id[:1], RecordID: id, Cause: core.CauseKafka, AsOf: core.Version(at.UnixNano()),
	})
}

// live fails the test unless the index holds exactly these documents; without arguments, none.
func (w *world) live(want ...string) {
	w.t.Helper()
	if got := slices.Sorted(maps.Keys(w.engine.live())); !slices.Equal(got, want) {
		w.t.Errorf("documents %v, want %v", got, want)
	}
}
