package rebuild_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/rebuild"
	"tutti/internal/tools/fakes"
)

var errCrash = core.NewError(core.CodeUnavailable, "the process ended")

// crashingCells are cells that fail before or after a change.
type crashingCells struct {
	*fakes.Cells
	step func() error
}

func (c *crashingCells) SetCell(ctx context.Context, name, value string, revision uint64) error {
	if err := c.step(); err != nil {
		return err
	}
	if err := c.Cells.SetCell(ctx, name, value, revision); err != nil {
		return err
	}
	return c.step()
}

// crashing is an index that fails before or after its changes.
type crashing struct {
	index.Index
	step func() error
}

func (x *crashing) around(change func() error) error {
	if err := x.step(); err != nil {
		return err
	}
	return errors.Join(change(), x.step())
}

func (x *crashing) Ensure(ctx context.Context, spec index.Spec) error {
	return x.around(func() error { return x.Index.Ensure(ctx, spec) })
}

func (x *crashing) Swap(ctx context.Context, spec index.Spec, from, identity string) error {
	return x.around(func() error { return x.Index.Swap(ctx, spec, from, identity) })
}

func (x *crashing) Drop(ctx context.Context, alias, identity string) error {
	return x.around(func() error { return x.Index.Drop(ctx, alias, identity) })
}

// world is an index that serves one document, and what a rebuild of it needs.
type world struct {
	*testing.T
	x      *crashing
	cells  *crashingCells
	mirror *rebuild.Mirror
	r      *rebuild.Rebuild
	// left is the number of steps until the process ends, negative for never.
	left int
	// mapping is the mapping file.
	mapping    json.RawMessage
	mappingErr error
}

const alias = "analyses"

func newWorld(t *testing.T) *world {
	t.Helper()
	x, err := embedded.Open(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return newWorldOn(t, x)
}

// newWorldOn returns a world of an engine without indices.
func newWorldOn(t *testing.T, x index.Index) *world {
	t.Helper()
	w := &world{T: t, x: &crashing{Index: x}, cells: &crashingCells{Cells: &fakes.Cells{}}, left: -1}
	step := func() error {
		if w.left == 0 {
			return errCrash
		}
		w.left--
		return nil
	}
	w.x.step, w.cells.step = step, step
	spec := index.Spec{Alias: alias}
	w.mirror, w.r = rebuild.NewMirror(w.x, w.cells), rebuild.New(w.x, w.cells, spec, "identity", func() (json.RawMessage, error) { return w.mapping, w.mappingErr })
	w.ok(x.Ensure(t.Context(), spec))
	w.write("a", 1)
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// batch returns a batch of one document.
func (w *world) batch(to, id string, v core.Version) core.Batch {
	write := core.Write{Op: core.OpIndex, ID: id, Version: v, Document: []byte(`{}`)}
	b := core.Batch{Index: to, Items: []core.BatchItem{{ID: id, Version: v}}}
	b.Body, b.Items[0].DocStart, b.Items[0].DocEnd = w.x.Encode(nil, write)
	b.Items[0].End = len(b.Body)
	return b
}

// write writes a document as all processes do, fill one as a rebuild's page does.
func (w *world) write(id string, v core.Version) {
	w.Helper()
	w.writeTo(alias, id, v)
}

func (w *world) fill(id string, v core.Version) {
	w.Helper()
	w.writeTo(core.NextAlias(alias), id, v)
}

func (w *world) writeTo(to, id string, v core.Version) {
	w.Helper()
	results, err := w.mirror.Write(w.Context(), w.batch(to, id, v))
	if err != nil || len(results) != 1 || results[0].Outcome != core.OutcomeIndexed {
		w.Fatalf("writing %s: %+v, %v", id, results, err)
	}
}

// holds fails unless an alias has exactly the given documents.
func (w *world) holds(of string, ids ...string) {
	w.Helper()
	n, err := w.x.Count(w.Context(), of, core.IndexScope{})
	if err != nil || n != int64(len(ids)) {
		w.Errorf("%s has %d documents, %v, want %v", of, n, err, ids)
	}
	for _, id := range ids {
		if _, found, err := w.x.Get(w.Context(), of, id); !found || err != nil {
			w.Errorf("%s lacks %s: %v", of, id, err)
		}
	}
}

func (w *world) missing(of string) {
	w.Helper()
	if err := w.x.Check(w.Context(), of); !errors.Is(err, core.ErrIndexMissing) {
		w.Errorf("%s: %v, want that it is missing", of, err)
	}
}

func TestRebuild(t *testing.T) {
	w := newWorld(t)
	w.ok(w.r.Begin(t.Context(), "job", nil))
	w.fill("b", 2)
	w.write("c", 3)
	w.holds(alias, "a", "c")
	w.ok(w.r.Begin(t.Context(), "job", nil))
	w.ok(w.r.Check(t.Context(), "job"))
	for range 2 {
		w.ok(w.r.Finish(t.Context(), "job"))
		w.ok(w.r.Begin(t.Context(), "job", nil))
		w.ok(w.r.Check(t.Context(), "job"))
	}
	w.holds(alias, "b", "c")
	w.holds(core.PreviousAlias(alias), "a", "c")
	w.missing(core.NextAlias(alias))
	w.write("d", 4)
	w.holds(alias, "b", "c", "d")
	w.holds(core.PreviousAlias(alias), "a", "c")
	if identity, err := w.x.Identity(t.Context(), alias); err != nil || w.cells.Values["identity"] != identity {
		t.Errorf("the cell has the identity %q, want %q (%v)", w.cells.Values["identity"], identity, err)
	}
}

// TestMappingFile: a rebuild reads the mapping file again, and does not begin with one that cannot be read.
func TestMappingFile(t *testing.T) {
	w := newWorld(t)
	w.mappingErr = core.NewError(core.CodeInvalid, "m.json is not JSON")
	if err := w.r.Begin(t.Context(), "job", nil); core.CodeOf(err) != core.CodeInvalid {
		t.Fatal(err)
	}
	w.missing(core.NextAlias(alias))
	w.mapping, w.mappingErr = json.RawMessage(`{"properties":{"n":{"type":"long"}}}`), nil
	w.ok(w.r.Begin(t.Context(), "job", nil))
	w.mappingErr = core.NewError(core.CodeInvalid, "m.json is not JSON")
	w.ok(w.r.Finish(t.Context(), "job"))
	if raw, err := w.x.Mapping(t.Context(), alias); err != nil || string(raw) != `{"_meta":{"tutti":{"types":"declared"}},"dynamic":"strict","properties":{"n":{"type":"long"}}}` {
		t.Errorf("the mapping is %s, %v", raw, err)
	}
}

// TestCrashes ends the process at every step of a rebuild: it continues from there, and loses nothing.
func TestCrashes(t *testing.T) {
	crashes := 0
	for steps := 0; ; steps++ {
		w := newWorld(t)
		w.left = steps
		crashed := false
		until := func(do func() error) {
			t.Helper()
			for {
				err := do()
				if err == nil {
					return
				}
				if !errors.Is(err, errCrash) {
					t.Fatalf("crash at step %d: %v", steps, err)
				}
				crashed, w.left = true, -1
				w.write(fmt.Sprint("after ", steps), 10)
			}
		}
		until(func() error { return w.r.Begin(t.Context(), "job", nil) })
		w.fill("b", 2)
		w.write("c", 3)
		if crashed { // a page, which every process reads after Begin
			w.fill(fmt.Sprint("after ", steps), 10)
		}
		until(func() error { return w.r.Finish(t.Context(), "job") })
		want := []string{"b", "c"}
		if crashed {
			want = append(want, fmt.Sprint("after ", steps))
		}
		w.holds(alias, want...)
		w.missing(core.NextAlias(alias))
		w.write("d", 4)
		w.holds(alias, append(want, "d")...)
		if !crashed {
			break
		}
		crashes++
	}
	if crashes < 12 {
		t.Errorf("only %d crashes", crashes)
	}
}

func TestDiscard(t *testing.T) {
	w := newWorld(t)
	w.ok(w.r.Begin(t.Context(), "job", nil))
	w.fill("b", 2)
	w.discard("another", false)
	w.ok(w.r.Check(t.Context(), "job"))
	for range 2 {
		w.discard("job", false)
	}
	w.missing(core.NextAlias(alias))
	w.holds(alias, "a")
	w.write("c", 3)
	w.holds(alias, "a", "c")
	if err := w.r.Check(t.Context(), "job"); core.CodeOf(err) != core.CodeConflict {
		t.Errorf("Check of a discarded job: %v", err)
	}
	if err := w.r.Finish(t.Context(), "job"); core.CodeOf(err) != core.CodeConflict {
		t.Errorf("Finish of a discarded job: %v", err)
	}
	w.ok(w.r.Begin(t.Context(), "second", nil))
	w.fill("d", 4)
	w.ok(w.r.Begin(t.Context(), "third", nil)) // the second has ended without being discarded
	w.holds(core.NextAlias(alias))
}

// TestDiscardEnded checks that a rebuild is completed whose job was cancelled after the alias had begun to move.
func TestDiscardEnded(t *testing.T) {
	w := newWorld(t)
	w.ok(w.r.Begin(t.Context(), "job", nil))
	w.fill("b", 2)
	ended := false
	isEnded := func(_ context.Context, id string) (bool, error) { return ended && id == "job", nil }
	w.ok(w.r.DiscardEnded(t.Context(), isEnded))
	w.holds(core.NextAlias(alias), "b")
	w.left = 2 // the step of the cell is set
	if err := w.r.Finish(t.Context(), "job"); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	w.left, ended = -1, true
	w.ok(w.r.DiscardEnded(t.Context(), isEnded))
	w.holds(alias, "b")
	w.missing(core.NextAlias(alias))
}

// TestDiscardMoved: a process that would delete the index of a job which another one has moved the alias to, or has begun to, reports that
// the alias has moved.
func TestDiscardMoved(t *testing.T) {
	for _, steps := range []int{2, -1} { // the step of the cell is set; the end
		w := newWorld(t)
		w.ok(w.r.Begin(t.Context(), "job", nil))
		w.fill("b", 2)
		w.left = steps
		if err := w.r.Finish(t.Context(), "job"); err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		w.left = -1
		w.discard("another", false)
		for range 2 {
			w.discard("job", true)
		}
		w.holds(alias, "b")
	}
}

// discard fails unless Discard reports whether the alias has moved.
func (w *world) discard(jobID string, want bool) {
	w.Helper()
	if moved, err := w.r.Discard(w.Context(), jobID); moved != want || err != nil {
		w.Errorf("Discard of %s: %t, %v, want %t", jobID, moved, err, want)
	}
}

// discarded returns the error of a Discard.
func discarded(_ bool, err error) error { return err }

// TestDeletedWhileMoving checks that a rebuild ends whose index was deleted after the process had ended in the middle of Finish.
func TestDeletedWhileMoving(t *testing.T) {
	w := newWorld(t)
	w.ok(w.r.Begin(t.Context(), "job", nil))
	w.left = 2 // the step of the cell is set
	if err := w.r.Finish(t.Context(), "job"); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	w.left = -1
	w.ok(w.x.Drop(t.Context(), core.NextAlias(alias), ""))
	before := w.cells.Values["identity"]
	if err := w.r.Finish(t.Context(), "job"); core.CodeOf(err) != core.CodeConflict {
		t.Errorf("Finish: %v", err)
	}
	w.discard("job", false)
	if now := w.cells.Values["identity"]; now != before {
		t.Errorf("the cell has the identity %q of the deleted index: the repository would be run again", now)
	}
	w.holds(alias, "a")
	w.ok(w.r.Begin(t.Context(), "second", nil))
	w.fill("b", 2)
	w.ok(w.r.Finish(t.Context(), "second"))
	w.holds(alias, "b")
}

// TestDeletedAnywhere: wherever an operator deletes the index that is being filled, or replaces it by an empty one, Finish fails for good
// or has moved the alias, which serves documents all the time.
func TestDeletedAnywhere(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		deletions := 0
		for step := 0; ; step++ {
			w := newWorld(t)
			w.ok(w.r.Begin(t.Context(), "job", nil))
			w.fill("b", 2)
			left, next := step, core.NextAlias(alias)
			w.meet(func() {
				if left--; left == -1 {
					w.ok(w.x.Index.Drop(t.Context(), next, ""))
					if replaced {
						w.ok(w.x.Index.Ensure(t.Context(), index.Spec{Alias: next}))
					}
				}
			})
			err := w.r.Finish(t.Context(), "job")
			w.meet(func() {})
			w.discard("job", err == nil)
			switch moved := err == nil; {
			case moved:
				w.holds(alias, "b")
			case core.MessageOf(err) == "the index that was being filled was deleted" && core.HintOf(err) == "start the rebuild again":
				w.holds(alias, "a")
			default:
				t.Fatalf("deleted at step %d: %v", step, err)
			}
			w.ok(w.r.Begin(t.Context(), "second", nil))
			w.fill("c", 3)
			w.ok(w.r.Finish(t.Context(), "second"))
			w.holds(alias, "c")
			if left >= 0 {
				break
			}
			deletions++
		}
		if deletions < 6 {
			t.Errorf("only %d deletions", deletions)
		}
	}
}

// TestDeleted checks that a rebuild fails whose index was deleted, or deleted and created again by a write to its name.
func TestDeleted(t *testing.T) {
	w := newWorld(t)
	w.ok(w.r.Begin(t.Context(), "job", nil))
	next := core.NextAlias(alias)
	w.ok(w.x.Drop(t.Context(), next, ""))
	w.write("c", 3)
	for _, created := range []bool{false, true} {
		if created {
			w.ok(w.x.Ensure(t.Context(), index.Spec{Alias: next}))
		}
		for name, do := range map[string]func(context.Context, string) error{"Begin": w.begin, "Check": w.r.Check, "Finish": w.r.Finish} {
			if err := do(t.Context(), "job"); core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != "the index that was being filled was deleted" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	w.holds(alias, "a", "c")
}

// TestMirrorOutcomes checks the outcome of a document that two indices treat differently.
func TestMirrorOutcomes(t *testing.T) {
	const indexed, stale, rejected, retry = core.OutcomeIndexed, core.OutcomeStale, core.OutcomeRejected, core.OutcomeRetry
	for _, c := range []struct{ own, next, want core.Outcome }{
		{indexed, indexed, indexed},
		{indexed, stale, indexed},
		{stale, indexed, stale},
		{indexed, rejected, rejected},
		{rejected, indexed, rejected},
		{indexed, retry, retry},
		{rejected, retry, retry},
		{retry, rejected, retry},
		{retry, indexed, retry},
	} {
		w := newWorld(t)
		w.ok(w.r.Begin(t.Context(), "job", nil))
		fake := &fakeEngine{Index: w.x, outcomes: map[string]core.Outcome{alias: c.own, core.NextAlias(alias): c.next}}
		results, err := rebuild.NewMirror(fake, w.cells).Write(t.Context(), w.batch(alias, "a", 2))
		if err != nil || results[0].Outcome != c.want {
			t.Errorf("%v and %v: %+v, %v, want %v", c.own, c.next, results, err, c.want)
		}
		if stale := results[0].NextVersion; (stale == 7) != (c.next == core.OutcomeStale) {
			t.Errorf("%v and %v: the next version is %d", c.own, c.next, stale)
		}
		if got := fmt.Sprint(fake.order); got != fmt.Sprint([]string{core.NextAlias(alias), alias}) {
			t.Errorf("the order of writes is %s", got)
		}
	}
}

// fakeEngine returns outcomes by alias.
type fakeEngine struct {
	index.Index
	outcomes map[string]core.Outcome
	order    []string
}

func (e *fakeEngine) Write(_ context.Context, b core.Batch) ([]core.Result, error) {
	e.order = append(e.order, b.Index)
	r := core.Result{Outcome: e.outcomes[b.Index]}
	if r.Outcome == core.OutcomeStale {
		r.CurrentVersion = 7
	}
	return []core.Result{r}, nil
}

// TestTwoProcesses: of two processes that end one rebuild at the same time, both succeed, wherever they meet.
func TestTwoProcesses(t *testing.T) {
	met := 0
	for step := 0; ; step++ {
		w := newWorld(t)
		w.ok(w.r.Begin(t.Context(), "job", nil))
		w.fill("b", 2)
		left, other := step, w.other()
		w.meet(func() {
			if left--; left == -1 {
				w.ok(other.Finish(t.Context(), "job"))
			}
		})
		w.ok(w.r.Finish(t.Context(), "job"))
		w.ok(w.r.Check(t.Context(), "job"))
		w.holds(alias, "b")
		w.holds(core.PreviousAlias(alias), "a")
		if left >= 0 {
			break
		}
		met++
	}
	if met < 6 {
		t.Errorf("the processes met at only %d steps", met)
	}
}

// TestBeginWhileDiscarded: a rebuild begins while another process deletes what the cancelled one before it has left behind, wherever
// they meet.
func TestBeginWhileDiscarded(t *testing.T) {
	for _, discards := range []bool{true, false} {
		met := 0
		for step := 0; ; step++ {
			w := newWorld(t)
			w.ok(w.r.Begin(t.Context(), "cancelled", nil))
			discard := func(r *rebuild.Rebuild) func() error {
				return func() error { return discarded(r.Discard(t.Context(), "cancelled")) }
			}
			begin := func(r *rebuild.Rebuild) func() error { return func() error { return r.Begin(t.Context(), "job", nil) } }
			first, second := begin(w.r), discard(w.other())
			if discards {
				first, second = discard(w.r), begin(w.other())
			}
			left := step
			w.meet(func() {
				if left--; left == -1 {
					w.ok(second())
				}
			})
			err := first()
			if left >= 0 {
				w.ok(err)
				break
			}
			met++
			if !discards { // the index that it creates may be deleted before it is the job's: the next attempt creates another one
				for range 2 {
					if err != nil && core.CodeOf(err) != core.CodeConflict {
						err = w.r.Begin(t.Context(), "job", nil)
					}
				}
			}
			if err != nil && (!discards || core.CodeOf(err) != core.CodeConflict) {
				t.Errorf("step %d: %v", step, err)
			}
			w.ok(w.r.Check(t.Context(), "job"))
			w.fill("b", 2)
		}
		if met < 4 {
			t.Errorf("the processes met at only %d steps", met)
		}
	}
}

// other returns the Rebuild of another process, which does not meet others.
func (w *world) other() *rebuild.Rebuild {
	spec := index.Spec{Alias: alias}
	return rebuild.New(w.x.Index, w.cells.Cells, spec, "identity", func() (json.RawMessage, error) { return w.mapping, w.mappingErr })
}

// meet calls f before and after each change of the world's own process.
func (w *world) meet(f func()) {
	step := func() error { f(); return nil }
	w.x.step, w.cells.step = step, step
}

// begin begins a rebuild whose fields no values decide.
func (w *world) begin(ctx context.Context, jobID string) error { return w.r.Begin(ctx, jobID, nil) }
