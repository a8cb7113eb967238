package rebuild_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
)

// blockedIndex is an index some aliases of which take no writes.
type blockedIndex struct {
	index.Index
	closed map[string]bool
}

func (x *blockedIndex) Check(ctx context.Context, of string) error {
	if x.closed[of] {
		return core.NewError(core.CodeIndexBlocked, "the index "+of+" is closed")
	}
	return x.Index.Check(ctx, of)
}

func (x *blockedIndex) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	if !x.closed[b.Index] {
		return x.Index.Write(ctx, b)
	}
	results := make([]core.Result, len(b.Items))
	for i := range results {
		results[i] = core.Result{Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked, Type: "index_closed_exception"}
	}
	return results, nil
}

// begun returns a world in which a job fills an index, and the one that decides which indices take writes.
func begun(t *testing.T) (*world, *blockedIndex) {
	t.Helper()
	w := newWorld(t)
	x := &blockedIndex{Index: w.x.Index, closed: map[string]bool{}}
	w.x.Index = x
	w.ok(w.r.Begin(t.Context(), "job", nil))
	w.fill("b", 2)
	return w, x
}

// TestFilledIndexTakesNoWrites: a change that the index which is filled does not take reaches the serving index at once. The rebuild fails,
// also if the filled index takes writes again.
func TestFilledIndexTakesNoWrites(t *testing.T) {
	for again, message := range map[bool]string{
		false: "the index that was being filled takes no writes: the index analyses--next is closed",
		true:  "the index that was being filled took no writes for a time, and lacks changes",
	} {
		w, x := begun(t)
		x.closed[core.NextAlias(alias)] = true
		if !again {
			if err := w.r.Check(t.Context(), "job"); core.MessageOf(err) != message {
				t.Errorf("Check before a change: %v", err)
			}
		}
		w.write("c", 3)
		x.closed[core.NextAlias(alias)] = !again
		if again {
			w.write("c", 3)
		}
		w.failsBlocked(x, message)
	}
}

// failsBlocked fails unless the job cannot go on, and the next rebuild succeeds.
func (w *world) failsBlocked(x *blockedIndex, message string) {
	w.Helper()
	open := func() { x.closed = map[string]bool{} }
	defer open()
	for name, do := range map[string]func(context.Context, string) error{"Begin": w.begin, "Check": w.r.Check, "Finish": w.r.Finish} {
		if err := do(w.Context(), "job"); core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != message {
			w.Errorf("%s: %v", name, err)
		} else if hint := core.HintOf(err); strings.Contains(message, " takes no writes") && hint != "start the rebuild again, which deletes it and fills another one" {
			w.Errorf("%s: the hint is %q", name, hint)
		}
	}
	w.discard("job", false)
	open() // the next rebuild fills another index
	w.missing(core.NextAlias(alias))
	w.holds(alias, "a", "c")
	w.ok(w.r.Begin(w.Context(), "second", nil))
	w.fill("e", 5)
	w.write("f", 6)
	w.ok(w.r.Finish(w.Context(), "second"))
	w.holds(alias, "e", "f")
}

// Refresh fails for a closed index.
func (x *blockedIndex) Refresh(ctx context.Context, of string) error {
	if err := x.Check(ctx, of); err != nil {
		return err
	}
	return x.Index.Refresh(ctx, of)
}

// TestFilledIndexClosedBeforeTheMove: a process ends between the step that says that the alias is moved and the move, and the filled index
// is closed: the job fails with the reason at the next start, writes go to the serving index alone, and the next rebuild starts anew.
func TestFilledIndexClosedBeforeTheMove(t *testing.T) {
	for name, next := range map[string]func(*world) error{
		"its job ends": func(w *world) error {
			const message = "the index that was being filled takes no writes: the index analyses--next is closed"
			for name, do := range map[string]func(context.Context, string) error{"Begin": w.begin, "Check": w.r.Check, "Finish": w.r.Finish} {
				if err := do(w.Context(), "job"); core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != message {
					w.Errorf("%s: %v", name, err)
				}
			}
			w.discard("job", false)
			return nil
		},
		"the next job begins": func(w *world) error { return w.r.Begin(w.Context(), "second", nil) },
		"its job is cancelled": func(w *world) error {
			return w.r.DiscardEnded(w.Context(), func(context.Context, string) (bool, error) { return true, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, x := begun(t)
			w.left = 1 // the step is set
			if err := w.r.Finish(t.Context(), "job"); !errors.Is(err, errCrash) {
				t.Fatalf("Finish: %v", err)
			}
			w.left = -1
			x.closed[core.NextAlias(alias)] = true
			results, err := w.mirror.Write(t.Context(), w.batch(alias, "c", 3))
			if err != nil || results[0].Outcome != core.OutcomeRetry { // the alias may be moved at any time
				t.Errorf("%+v, %v", results, err)
			}
			w.ok(next(w))
			x.closed = map[string]bool{}
			w.ok(w.r.Begin(t.Context(), "second", nil))
			w.write("c", 3)
			w.holds(alias, "a", "c")
			w.fill("e", 5)
			w.ok(w.r.Finish(t.Context(), "second"))
			w.holds(alias, "c", "e")
		})
	}
}

// TestBothIndicesTakeNoWrites: a rebuild whose two indices take no writes, as on a full disk, waits and then succeeds.
func TestBothIndicesTakeNoWrites(t *testing.T) {
	w, x := begun(t)
	x.closed = map[string]bool{alias: true, core.NextAlias(alias): true}
	results, err := w.mirror.Write(t.Context(), w.batch(alias, "c", 3))
	if err != nil || results[0].Outcome != core.OutcomeRetry {
		t.Errorf("%+v, %v", results, err)
	}
	for name, do := range map[string]func(context.Context, string) error{"Begin": w.begin, "Check": w.r.Check, "Finish": w.r.Finish} {
		if err := do(t.Context(), "job"); core.CodeOf(err) != core.CodeIndexBlocked {
			t.Errorf("%s: %v", name, err)
		}
	}
	x.closed = map[string]bool{}
	w.write("c", 3)
	w.ok(w.r.Finish(t.Context(), "job"))
	w.holds(alias, "b", "c")
}

// keptIndex is an index whose indices others read, so that none is deleted.
type keptIndex struct {
	index.Index
	kept bool
}

func (x *keptIndex) Drop(ctx context.Context, of, identity string) error {
	if x.kept {
		return index.Shared("analyses-1", of, []string{"portal"})
	}
	return x.Index.Drop(ctx, of, identity)
}

// TestBeginRefused: a rebuild does not begin while others read what an earlier one left behind, and says so each time. It begins once they
// do not. A rebuild that ends says as well that its index is kept.
func TestBeginRefused(t *testing.T) {
	w := newWorld(t)
	x := &keptIndex{Index: w.x.Index, kept: true}
	w.x.Index = x
	w.ok(w.r.Begin(t.Context(), "job", nil))
	if moved, err := w.r.Discard(t.Context(), "job"); moved || core.CodeOf(err) != core.CodeConflict {
		t.Errorf("Discard: %t, %v", moved, err)
	}
	w.discard("job", false)
	for range 2 {
		err := w.r.Begin(t.Context(), "next", nil)
		if core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != "the index analyses-1 is also read by other aliases: portal" {
			t.Errorf("Begin: %v", err)
		}
		w.holds(alias, "a")
		w.write("a", 2)
	}
	x.kept = false
	w.ok(w.r.Begin(t.Context(), "next", nil))
	w.fill("b", 3)
	w.ok(w.r.Finish(t.Context(), "next"))
	w.holds(alias, "b")
}
