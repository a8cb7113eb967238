package consumers_test

import (
	"context"
	"errors"
	"testing"

	"tutti/consumers"
	"tutti/internal/core"
)

// heldRebuild is a Rebuild whose Finish fails, while Discard reports whether another process has moved the alias.
type heldRebuild struct {
	noRebuild
	moved bool
}

func (heldRebuild) Begin(context.Context, string, consumers.Counts) error { return nil }

func (heldRebuild) Check(context.Context, string) error { return nil }

func (heldRebuild) Finish(context.Context, string) error {
	return core.NewError(core.CodeConflict, "the index that was being filled was deleted")
}

func (r heldRebuild) Discard(context.Context, string) (bool, error) { return r.moved, nil }

// TestRebuildEndedElsewhere: a consumer that would not replace the index, but finds that another one has, ends the job as that one does.
func TestRebuildEndedElsewhere(t *testing.T) {
	for moved, want := range map[bool]struct {
		state core.JobState
		code  string
	}{true: {core.JobSucceeded, ""}, false: {core.JobFailed, string(core.CodeConflict)}} {
		t.Run(string(want.state), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 3)
				w.rebuild = heldRebuild{moved: moved}
				w.boot(-1)
				w.ended(w.job(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID), want.state, want.code)
			})
		})
	}
}

// refusedRebuild is a Rebuild that cannot begin.
type refusedRebuild struct{ noRebuild }

func (refusedRebuild) Begin(context.Context, string, consumers.Counts) error {
	return errors.Join(&core.Error{Code: core.CodeConflict, Message: "an index has the name", Hint: "delete it"}, nil)
}

// TestRebuildCannotBegin: the job of a rebuild that cannot begin fails with the reason and its hint.
func TestRebuildCannotBegin(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 3)
		w.rebuild = refusedRebuild{}
		w.boot(-1)
		job := w.job(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID)
		w.ended(job, core.JobFailed, string(core.CodeConflict))
		if want := "an index has the name; delete it"; job.Error.Message != want {
			t.Errorf("the error is %q, want %q", job.Error.Message, want)
		}
	})
}
