package rebuild_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/rebuild"
)

// process is another process, which stops before each of its calls of the index and the cells until it is resumed.
type process struct {
	stopped, resume chan struct{}
	done            chan error
	ended           bool
	err             error
}

// stepCells and stepIndex are what a process calls.
type (
	stepCells struct {
		*crashingCells
		p *process
	}
	stepIndex struct {
		index.Index
		p *process
	}
)

func (c stepCells) Cell(ctx context.Context, name string) (string, uint64, error) {
	c.p.stop()
	return c.crashingCells.Cell(ctx, name)
}

func (c stepCells) SetCell(ctx context.Context, name, value string, revision uint64) error {
	c.p.stop()
	return c.crashingCells.SetCell(ctx, name, value, revision)
}

func (x stepIndex) Identity(ctx context.Context, of string) (string, error) {
	x.p.stop()
	return x.Index.Identity(ctx, of)
}

func (x stepIndex) Ensure(ctx context.Context, spec index.Spec) error {
	x.p.stop()
	return x.Index.Ensure(ctx, spec)
}

func (x stepIndex) Swap(ctx context.Context, spec index.Spec, from, identity string) error {
	x.p.stop()
	return x.Index.Swap(ctx, spec, from, identity)
}

func (x stepIndex) Drop(ctx context.Context, of, identity string) error {
	x.p.stop()
	return x.Index.Drop(ctx, of, identity)
}

func (p *process) stop() {
	p.stopped <- struct{}{}
	<-p.resume
}

// run runs do in another process, up to its first call.
func (w *world) run(do func(r *rebuild.Rebuild) error) *process {
	p := &process{stopped: make(chan struct{}), resume: make(chan struct{}), done: make(chan error)}
	r := rebuild.New(stepIndex{w.x.Index, p}, stepCells{w.cells, p}, index.Spec{Alias: alias}, "identity",
		func() (json.RawMessage, error) { return w.mapping, w.mappingErr })
	go func() { p.done <- do(r) }()
	p.await()
	return p
}

// await waits until the process stops or ends.
func (p *process) await() {
	select {
	case <-p.stopped:
	case p.err = <-p.done:
		p.ended = true
	}
}

// advance lets the process make n calls, a negative n for all. It reports whether it has made them.
func (p *process) advance(n int) bool {
	for ; n != 0 && !p.ended; n-- {
		p.resume <- struct{}{}
		p.await()
	}
	return n == 0
}

// interleaved runs check for every way in which the second of two processes acts while the first one is stopped, and is stopped itself
// until the first one has ended.
func interleaved(t *testing.T, prepare func(*world), first, second func(*rebuild.Rebuild) error, check func(w *world, first, second error)) {
	t.Helper()
	t.Parallel()
	shared := newWorld(t)
	met := 0
	for i := 0; ; i++ {
		for j := 1; ; j++ {
			w := shared.again()
			prepare(w)
			a, b := w.run(first), w.run(second)
			stopped := a.advance(i)
			acted := b.advance(j)
			a.advance(-1)
			b.advance(-1)
			check(w, a.err, b.err)
			if t.Failed() {
				t.Fatalf("the first was stopped after %d calls, the second made %d", i, j)
			}
			if !stopped {
				if met < 20 {
					t.Errorf("only %d meetings", met)
				}
				return
			}
			if met++; !acted {
				break
			}
		}
	}
}

// again returns a world of the same index, without what an earlier one has left in it.
func (w *world) again() *world {
	w.Helper()
	for _, name := range []string{alias, core.NextAlias(alias), core.PreviousAlias(alias)} {
		w.ok(w.x.Drop(w.Context(), name, ""))
	}
	return newWorldOn(w.T, w.x.Index)
}

// rebuilt makes the world one in which a rebuild has ended: alias has b, and the index before has a.
func (w *world) rebuilt() {
	w.Helper()
	w.ok(w.r.Begin(w.Context(), "rebuild", nil))
	w.fill("b", 2)
	w.ok(w.r.Finish(w.Context(), "rebuild"))
}

// TestTwoRollbacks: of two rollbacks that are requested at the same time, at most one moves the alias, wherever they meet; the other one
// returns the same or CodeConflict.
func TestTwoRollbacks(t *testing.T) {
	rollback := func(r *rebuild.Rebuild) error {
		return r.Rollback(t.Context(), func(_ context.Context, jobID string) (bool, error) { return jobID == "rebuild", nil },
			func() (string, error) { return "run", nil })
	}
	interleaved(t, (*world).rebuilt, rollback, rollback, func(w *world, first, second error) {
		for _, err := range []error{first, second} {
			if err != nil && core.CodeOf(err) != core.CodeConflict {
				w.Errorf("Rollback: %v", err)
			}
		}
		if first != nil && second != nil {
			w.Errorf("both failed: %v, %v", first, second)
		}
		w.holds(alias, "a")
		w.holds(core.PreviousAlias(alias), "b")
		w.missing(core.NextAlias(alias))
		w.serves()
	})
}

// TestTwoBegins: of a rebuild that begins in two processes at the same time, one index remains, and it is the one that the job fills.
func TestTwoBegins(t *testing.T) {
	begin := func(r *rebuild.Rebuild) error { return r.Begin(t.Context(), "job", nil) }
	for name, prepare := range map[string]func(*world){
		"nothing left":        func(*world) {},
		"left by another job": func(w *world) { w.ok(w.r.Begin(t.Context(), "before", nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			interleaved(t, prepare, begin, begin, func(w *world, first, second error) {
				w.ok(errors.Join(first, second))
				w.ok(w.r.Check(t.Context(), "job"))
				w.fill("b", 2)
				w.ok(w.r.Finish(t.Context(), "job"))
				w.holds(alias, "b")
				w.missing(core.NextAlias(alias))
			})
		})
	}
}

// TestLateBegin: a process that still begins a rebuild which another one has ended leaves no index behind.
func TestLateBegin(t *testing.T) {
	begin := func(r *rebuild.Rebuild) error { return r.Begin(t.Context(), "job", nil) }
	whole := func(r *rebuild.Rebuild) error {
		return errors.Join(r.Begin(t.Context(), "job", nil), r.Finish(t.Context(), "job"))
	}
	interleaved(t, func(*world) {}, begin, whole, func(w *world, first, second error) {
		w.ok(errors.Join(first, second))
		w.holds(alias)
		w.holds(core.PreviousAlias(alias), "a")
		w.missing(core.NextAlias(alias))
	})
}

// TestLateFinish: a process that still ends a rebuild which another one has ended does not replace the index by that of the next rebuild.
func TestLateFinish(t *testing.T) {
	finish := func(r *rebuild.Rebuild) error { return r.Finish(t.Context(), "job") }
	next := func(r *rebuild.Rebuild) error {
		return errors.Join(r.Finish(t.Context(), "job"), r.Begin(t.Context(), "next", nil))
	}
	interleaved(t, func(w *world) {
		w.ok(w.r.Begin(t.Context(), "job", nil))
		w.fill("b", 2)
	}, finish, next, func(w *world, first, second error) {
		w.ok(second)
		if first != nil && core.CodeOf(first) != core.CodeConflict {
			w.Errorf("Finish: %v", first)
		}
		w.holds(alias, "b")
		w.holds(core.NextAlias(alias))
		w.ok(w.r.Check(t.Context(), "next"))
	})
}

// TestBeginWhileFinished: a rebuild that begins while another process still moves the alias for the one before, whose job was cancelled,
// loses no write: what is written then is in the index that the alias stands for afterwards.
func TestBeginWhileFinished(t *testing.T) {
	t.Parallel()
	shared := newWorld(t)
	for i := 0; ; i++ {
		stopped := false
		for j := 1; ; j++ {
			w := shared.again()
			w.ok(w.r.Begin(t.Context(), "job", nil))
			w.fill("b", 2)
			finish := w.run(func(r *rebuild.Rebuild) error { return r.Finish(t.Context(), "job") })
			next := w.run(func(r *rebuild.Rebuild) error { return r.Begin(t.Context(), "next", nil) })
			stopped = finish.advance(i)
			acted := next.advance(j)
			w.write("c", 3)
			finish.advance(-1)
			next.advance(-1)
			w.ok(next.err)
			if finish.err != nil && core.CodeOf(finish.err) != core.CodeConflict {
				t.Errorf("Finish: %v", finish.err)
			}
			if _, found, err := w.x.Get(t.Context(), alias, "c"); !found || err != nil {
				t.Errorf("the index lacks what was written: %v", err)
			}
			w.ok(w.r.Check(t.Context(), "next"))
			if t.Failed() {
				t.Fatalf("the first was stopped after %d calls, the second made %d", i, j)
			}
			if !stopped || !acted {
				break
			}
		}
		if !stopped {
			return
		}
	}
}

// TestBeginWhileRolledBack: a rebuild that begins while another process still moves the alias back loses no write, nor the run that
// brings the index of the rollback up to date: what is written then is behind the alias, unless that run is queued, and always in the
// index that the rebuild fills.
func TestBeginWhileRolledBack(t *testing.T) {
	for name, rebuildFirst := range map[string]bool{"the rebuild later": false, "the rollback later": true} {
		t.Run(name, func(t *testing.T) {
			queued := false
			ended := func(_ context.Context, jobID string) (bool, error) { return jobID == "rebuild", nil }
			rollback := func(r *rebuild.Rebuild) error {
				return r.Rollback(t.Context(), ended, func() (string, error) { queued = true; return "run", nil })
			}
			begin := func(r *rebuild.Rebuild) error { return r.Begin(t.Context(), "next", nil) }
			first, second := rollback, begin
			if rebuildFirst {
				first, second = begin, rollback
			}
			interleaved(t, func(w *world) {
				queued = false
				w.rebuilt()
			}, first, second, func(w *world, rolledBack, began error) {
				if rebuildFirst {
					rolledBack, began = began, rolledBack
				}
				w.ok(began)
				w.write("c", 3)
				if rolledBack == nil {
					w.holds(alias, "a", "c")
					w.serves()
				} else if w.holds(alias, "b", "c"); core.CodeOf(rolledBack) != core.CodeConflict {
					w.Errorf("Rollback: %v", rolledBack)
				}
				if queued != (rolledBack == nil) {
					w.Errorf("the run is queued: %t; Rollback: %v", queued, rolledBack)
				}
				w.holds(core.NextAlias(alias), "c")
				w.ok(w.r.Finish(t.Context(), "next"))
				w.holds(alias, "c")
				w.missing(core.NextAlias(alias))
			})
		})
	}
}

// TestRebuildWhilePreviousIsDropped: a deletion of the index before the last rebuild which another process has begun does not delete the
// one that the next rebuild leaves behind.
func TestRebuildWhilePreviousIsDropped(t *testing.T) {
	ended := func(_ context.Context, jobID string) (bool, error) { return jobID == "rebuild", nil }
	drop := func(r *rebuild.Rebuild) error { return r.DropPrevious(t.Context(), ended) }
	whole := func(r *rebuild.Rebuild) error {
		return errors.Join(r.Begin(t.Context(), "next", nil), r.Finish(t.Context(), "next"))
	}
	check := func(w *world, dropped, rebuilt error) {
		w.ok(rebuilt)
		if dropped != nil && core.CodeOf(dropped) != core.CodeConflict {
			w.Errorf("DropPrevious: %v", dropped)
		}
		w.holds(alias)
		w.holds(core.PreviousAlias(alias), "b")
		w.missing(core.NextAlias(alias))
	}
	interleaved(t, (*world).rebuilt, drop, whole, check)
}

// TestDropPreviousWhileRolledBack: of a rollback and a deletion of the index that it returns to, one happens, and the alias serves.
func TestDropPreviousWhileRolledBack(t *testing.T) {
	ended := func(_ context.Context, jobID string) (bool, error) { return jobID == "rebuild", nil }
	rollback := func(r *rebuild.Rebuild) error {
		return r.Rollback(t.Context(), ended, func() (string, error) { return "run", nil })
	}
	drop := func(r *rebuild.Rebuild) error { return r.DropPrevious(t.Context(), ended) }
	check := func(w *world, rolledBack, dropped error) {
		codes := []core.Code{core.CodeConflict, core.CodeNotFound}
		switch {
		case rolledBack == nil && slices.Contains(codes, core.CodeOf(dropped)):
			w.holds(alias, "a")
			w.holds(core.PreviousAlias(alias), "b")
		case dropped == nil && slices.Contains(codes, core.CodeOf(rolledBack)):
			w.holds(alias, "b")
			w.missing(core.PreviousAlias(alias))
		default:
			w.Errorf("Rollback: %v, DropPrevious: %v", rolledBack, dropped)
		}
	}
	t.Run("the deletion later", func(t *testing.T) { interleaved(t, (*world).rebuilt, rollback, drop, check) })
	t.Run("the rollback later", func(t *testing.T) {
		interleaved(t, (*world).rebuilt, drop, rollback, func(w *world, dropped, rolledBack error) { check(w, rolledBack, dropped) })
	})
}

// serves fails unless the cell has the identity of the index behind the alias.
func (w *world) serves() {
	w.Helper()
	if identity, err := w.x.Identity(w.Context(), alias); err != nil || w.cells.Values["identity"] != identity {
		w.Errorf("the cell has the identity %q, want %q (%v)", w.cells.Values["identity"], identity, err)
	}
}
