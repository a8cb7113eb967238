package rebuild_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/rebuild"
)

func TestRollback(t *testing.T) {
	w := newWorld(t)
	for name, err := range map[string]error{"Rollback": w.rollback(), "DropPrevious": w.r.DropPrevious(t.Context(), allEnded)} {
		if core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("%s before a rebuild: %v", name, err)
		}
	}
	w.ok(w.r.Begin(t.Context(), "job", nil))
	w.fill("b", 2)
	w.ok(w.r.Finish(t.Context(), "job"))
	w.ok(w.r.Begin(t.Context(), "second", nil))
	if err := w.rollback(); core.CodeOf(err) != core.CodeConflict {
		t.Errorf("Rollback during a rebuild: %v", err)
	}
	w.discard("second", false)
	w.ok(w.rollback())
	w.holds(alias, "a")
	w.holds(core.PreviousAlias(alias), "b")
	if identity, err := w.x.Identity(t.Context(), alias); err != nil || w.cells.Values["identity"] != identity {
		t.Errorf("the cell has the identity %q, want %q (%v)", w.cells.Values["identity"], identity, err)
	}
	w.write("c", 3)
	w.holds(alias, "a", "c")
	w.ok(w.rollback())
	w.holds(alias, "b")
	w.ok(w.r.DropPrevious(t.Context(), allEnded))
	w.missing(core.PreviousAlias(alias))
	w.holds(alias, "b")
}

// TestRollbackWithoutRun: a rollback whose run was not queued, because the queue did not take it or the process ended, leaves the index
// as one that was replaced, so that its next check queues the run.
func TestRollbackWithoutRun(t *testing.T) {
	w := newWorld(t)
	w.ok(w.r.Begin(t.Context(), "job", nil))
	w.fill("b", 2)
	w.ok(w.r.Finish(t.Context(), "job"))
	rebuilt := w.cells.Values["identity"]
	err := w.r.Rollback(t.Context(), allEnded, func() (string, error) { return "", core.NewError(core.CodeOverloaded, "the queue is full") })
	if core.CodeOf(err) != core.CodeOverloaded || !strings.HasPrefix(core.MessageOf(err), "the index was rolled back") {
		t.Errorf("the error is %v", err)
	}
	w.holds(alias, "a")
	if now := w.cells.Values["identity"]; now != rebuilt {
		t.Errorf("the cell has the identity %q, want %q of the index before", now, rebuilt)
	}
}

// TestRollbackResumed ends the process at every step of a rollback: the next one continues it, and does not move the alias again.
func TestRollbackResumed(t *testing.T) {
	crashes := 0
	for steps := 0; ; steps++ {
		w := newWorld(t)
		w.rebuilt()
		w.left = steps
		err := w.rollback()
		w.left = -1
		if err == nil {
			break
		}
		if !errors.Is(err, errCrash) {
			t.Fatalf("crash at step %d: %v", steps, err)
		}
		crashes++
		ended := func(_ context.Context, id string) (bool, error) { return id != "run", nil }
		err = w.r.Rollback(t.Context(), ended, func() (string, error) { return "run", nil })
		if err != nil && core.CodeOf(err) != core.CodeConflict {
			t.Errorf("crash at step %d: %v", steps, err)
		}
		w.holds(alias, "a")
		w.holds(core.PreviousAlias(alias), "b")
	}
	if crashes < 6 {
		t.Errorf("only %d crashes", crashes)
	}
}

// TestRollbackAfterCheck: once the check of the index has queued the run of a rollback that did not end, the request that is repeated as its
// error says does not move the alias again. The next one is another one.
func TestRollbackAfterCheck(t *testing.T) {
	w := newWorld(t)
	w.rebuilt()
	full := func() (string, error) { return "", core.NewError(core.CodeOverloaded, "the queue is full") }
	for range 2 {
		err := w.r.Rollback(t.Context(), allEnded, full)
		if hint := core.HintOf(err); core.CodeOf(err) != core.CodeOverloaded || hint != "request the rollback again; otherwise the next check of the index queues the run" {
			t.Error(err, hint)
		}
		w.holds(alias, "a")
	}
	identity, err := w.x.Identity(t.Context(), alias)
	w.ok(err)
	w.cells.Values["identity"] = identity
	if err := w.rollback(); core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != "the index was rolled back already, and its run is queued" ||
		core.HintOf(err) != "see the repository's jobs; request again to return to the other index" {
		t.Errorf("the repeated request: %v (%s)", err, core.HintOf(err))
	}
	w.holds(alias, "a")
	w.ok(w.rollback())
	w.holds(alias, "b")
	w.serves()
}

// TestBusy: while a rollback, or the deletion of the index before a rebuild, has not ended, the other one is refused, and can be tried again
// afterwards, as the hint says.
func TestBusy(t *testing.T) {
	for message, again := range map[string]core.Code{
		"the index is being rolled back": "", "the index before the last rebuild is being deleted": core.CodeNotFound,
	} {
		w := newWorld(t)
		w.rebuilt()
		first, other := w.rollback, func() error { return w.r.DropPrevious(t.Context(), allEnded) }
		if again != "" {
			first, other = other, first
		}
		w.left = 1 // it has begun
		if err := first(); !errors.Is(err, errCrash) {
			t.Fatalf("%v, want the crash", err)
		}
		w.left = -1
		if err := other(); core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != message || core.HintOf(err) != "see the repository's jobs, then try again" {
			t.Errorf("%v (%q), want %q", err, core.HintOf(err), message)
		}
		w.ok(first())
		if err := other(); core.CodeOf(err) != again {
			t.Errorf("%s: afterwards %v, want %q", message, err, again)
		}
	}
}

func (w *world) rollback() error {
	return w.r.Rollback(w.Context(), allEnded, func() (string, error) { return "run", nil })
}

func allEnded(context.Context, string) (bool, error) { return true, nil }

// sharedPrevious is an index whose index before a rebuild others read.
type sharedPrevious struct{ index.Index }

func (sharedPrevious) Drop(context.Context, string, string) error {
	return core.NewError(core.CodeConflict, "others read it")
}

// TestDropPreviousRefused: an index before the last rebuild that is not deleted, as others read it, can still be rolled back to.
func TestDropPreviousRefused(t *testing.T) {
	w := newWorld(t)
	w.rebuilt()
	r := rebuild.New(sharedPrevious{w.x}, w.cells, index.Spec{Alias: alias}, "identity", nil)
	if err := r.DropPrevious(t.Context(), allEnded); core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != "others read it" {
		t.Errorf("DropPrevious: %v", err)
	}
	w.ok(w.rollback())
	w.holds(alias, "a")
}
