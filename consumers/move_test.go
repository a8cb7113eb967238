package consumers_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"tutti/internal/core"
)

// moved is what happened to a record at its upstream while its document still names organization A.
var moved = map[string]func(w *world, id string){
	"moved":                 func(w *world, id string) { w.upstream.move(id, "B") },
	"moved and unpublished": func(w *world, id string) { w.upstream.move(id, "B"); unpublish(w, "B", id) },
	"moved and deleted":     func(w *world, id string) { w.upstream.move(id, "B"); remove(w, "B", id) },
	"moved, A is gone":      func(w *world, id string) { w.upstream.move(id, "B"); w.upstream.vanish("A") },
	"moved twice":           func(w *world, id string) { w.upstream.move(id, "B"); w.upstream.move(id, "C") },
}

func unpublish(w *world, org, id string) {
	w.upstream.edit(org, id, func(r *record) { r.state = "UNPUBLISHED" })
}

func remove(w *world, org, id string) {
	w.upstream.change(org, func(l []record) []record {
		return slices.DeleteFunc(l, func(r record) bool { return r.id == id })
	})
}

// triggers make tutti request the record then.
var triggers = map[string]func(w *world, id string){
	"trigger under A":               func(w *world, id string) { w.index("A", id) },
	"trigger under B":               func(w *world, id string) { w.index("B", id) },
	"trigger under C":               func(w *world, id string) { w.index("C", id) },
	"trigger under no organization": func(w *world, id string) { w.index("none", id) },
	"batch":                         func(w *world, id string) { w.indexAll(id) },
	"run of A":                      func(w *world, _ string) { w.run("A", false) },
	"run of the repository":         func(w *world, _ string) { w.run("", false) },
}

// TestMovedRecord: a record's id is unique in its repository. The fetched record decides about the document of that id,
// whatever organization the document names, whether the upstream names the record's organization, as Lyric does, or not.
func TestMovedRecord(t *testing.T) {
	for _, named := range []bool{false, true} {
		for what, change := range moved {
			for how, ask := range triggers {
				if what == "moved, A is gone" && how == "run of A" {
					continue // what cannot be read, or would be removed whole, is not swept
				}
				t.Run(fmt.Sprintf("named %t/%s/%s", named, what, how), func(t *testing.T) {
					in(t, func(t *testing.T, w *world) {
						w.upstream.nonOverlapping = named
						for _, org := range []string{"A", "B", "C"} {
							w.upstream.fill(org, 20)
						}
						w.boot(-1)
						w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
						change(w, "A-0007")
						ask(w, "A-0007")
						w.idle()
						if got, want := w.engine.live()["A-0007"], w.upstream.model()["A-0007"]; got != want {
							t.Errorf("the document is %q, want %q", got, want)
						}
						if letters := w.store.dead(); len(letters) > 0 {
							t.Errorf("dead letters: %v", letters)
						}
					})
				})
			}
		}
	}
}

// TestMoveDoesNotLoop: an upstream that contradicts itself gets one call per organization, and the document stays.
func TestMoveDoesNotLoop(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, org := range []string{"A", "B", "C"} {
			w.upstream.fill(org, 5)
		}
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		want := w.engine.live()
		w.upstream.change("A", func(l []record) []record { l[3].org = "B"; return l })
		w.upstream.change("B", func(l []record) []record { return append(l, record{id: "A-0003", org: "A", state: published}) })
		for _, org := range []string{"A", "B", "C"} {
			before := w.upstream.requestsFor("A-0003")
			w.index(org, "A-0003")
			w.idle()
			if n := w.upstream.requestsFor("A-0003") - before; n > 3 {
				t.Errorf("under %s: asked %d times, want at most once under each of 3 organizations", org, n)
			}
			w.same(want)
		}
	})
}

// TestRemovalIsBoundToItsOrganization: a requested removal compares the organization that the document names, even if the
// record has moved.
func TestRemovalIsBoundToItsOrganization(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 2)
		w.upstream.fill("B", 2)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		want := w.engine.live()
		w.upstream.move("A-0001", "B")
		w.remove("B", "A-0001")
		w.idle()
		w.same(want)
		w.remove("A", "A-0001")
		w.idle()
		delete(want, "A-0001")
		w.same(want)
	})
}

// TestRecordOfAnotherRepository: a document that another repository has written to the same index is not removed.
func TestRecordOfAnotherRepository(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 2)
		unpublish(w, "A", "A-0001")
		for _, id := range []string{"theirs", "A-0001"} {
			w.engine.put(id, 1, `{"repositories":[{"code":"lyric"}],"studyId":"A"}`)
		}
		want := w.engine.live()
		w.boot(-1)
		w.index("A", "theirs")
		w.index("none", "theirs")
		w.index("A", "A-0001")
		w.idle() // a Request for the same record would replace it
		w.remove("A", "A-0001")
		w.idle()
		w.same(want)
		if n := w.upstream.requestsFor("A-0001"); n != 1 {
			t.Errorf("the unpublished record was asked for %d times", n)
		}
	})
}

// TestMovedRecordsReleaseTheirCalls: records whose documents stay, because they name the right organization, must not keep
// the calls and the memory that were needed to find that out.
func TestMovedRecordsReleaseTheirCalls(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const records = 5 // more than calls may be in flight
		w.upstream.fill("A", 1)
		w.upstream.fill("B", records)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		want := w.engine.live()
		held := 0
		var mu sync.Mutex
		w.upstream.release = func() func() {
			mu.Lock()
			defer mu.Unlock()
			held++
			return func() {
				mu.Lock()
				defer mu.Unlock()
				held--
			}
		}
		for i := range records {
			w.index("A", fmt.Sprintf("B-%04d", i))
		}
		w.idle()
		w.same(want)
		if held != 0 {
			t.Errorf("%d bodies are still held", held)
		}
	})
}

// TestDeadLettersOfAMovedRecord: the dead letter of a record that is settled under another organization names that one, and
// a success clears those of both.
func TestDeadLettersOfAMovedRecord(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 1)
		w.upstream.fill("B", 1)
		w.boot(-1)
		w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
		w.engine.item = func(id string, op core.WriteOp, _ []byte) (core.Result, bool) {
			return core.Result{Outcome: core.OutcomeRejected, Type: "x"}, op == core.OpIndex && id == "A-0000"
		}
		w.index("A", "A-0000")
		w.idle()
		w.upstream.move("A-0000", "B")
		w.index("A", "A-0000")
		w.idle()
		for _, org := range []string{"A", "B"} {
			if !w.store.Has("song", org, "A-0000") {
				t.Errorf("%s has no dead letter", org)
			}
		}
		w.engine.item = nil
		w.index("A", "A-0000")
		w.idle()
		w.verify()
		if letters := w.store.dead(); len(letters) > 0 {
			t.Errorf("dead letters: %v", letters)
		}
	})
}
