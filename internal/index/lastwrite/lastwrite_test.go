package lastwrite_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/lastwrite"
	"tutti/internal/tools/fakes"
)

// engine returns what a test says.
type engine struct {
	index.Index
	outcomes []core.Outcome
	err      error
}

func (e *engine) Write(context.Context, core.Batch) ([]core.Result, error) {
	var results []core.Result
	for _, o := range e.outcomes {
		results = append(results, core.Result{Outcome: o})
	}
	return results, e.err
}

func (e *engine) Swap(context.Context, index.Spec, string, string) error { return e.err }

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// TestAt: only what changed the documents that readers of an alias see counts as a write to it.
func TestAt(t *testing.T) {
	failed := errors.New("no answer")
	swap := func(x *lastwrite.Index) { _ = x.Swap(t.Context(), index.Spec{Alias: "a"}, "a-next", "") }
	for name, tt := range map[string]struct {
		engine engine
		run    func(*lastwrite.Index)
		want   time.Time
	}{
		"indexed":       {engine{outcomes: []core.Outcome{core.OutcomeRejected, core.OutcomeIndexed}}, nil, noon},
		"removed":       {engine{outcomes: []core.Outcome{core.OutcomeRemoved}}, nil, noon},
		"nothing new":   {engine{outcomes: []core.Outcome{core.OutcomeStale, core.OutcomeRejected, core.OutcomeRetry}}, nil, time.Time{}},
		"no answer":     {engine{err: failed}, nil, time.Time{}},
		"swapped":       {engine{}, swap, noon},
		"not swapped":   {engine{err: failed}, swap, time.Time{}},
		"another alias": {engine{outcomes: []core.Outcome{core.OutcomeIndexed}}, func(x *lastwrite.Index) { _, _ = x.Write(t.Context(), core.Batch{Index: "a-next"}) }, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			x := lastwrite.New(&tt.engine, func() time.Time { return noon })
			if tt.run != nil {
				tt.run(x)
			} else {
				results, err := x.Write(t.Context(), core.Batch{Index: "a"})
				if len(results) != len(tt.engine.outcomes) || !errors.Is(err, tt.engine.err) {
					t.Errorf("got %v, %v", results, err)
				}
			}
			if got := x.At("a"); !got.Equal(tt.want) {
				t.Errorf("written at %v, want %v", got, tt.want)
			}
		})
	}
}

// TestShare: a process knows the writes of others and those before its start, and never an older time.
func TestShare(t *testing.T) {
	written := func(at time.Time) *lastwrite.Index {
		x := lastwrite.New(&engine{outcomes: []core.Outcome{core.OutcomeIndexed}}, func() time.Time { return at })
		if !at.IsZero() {
			_, _ = x.Write(t.Context(), core.Batch{Index: "a"})
		}
		return x
	}
	shared := &fakes.Cells{}
	first, second, restarted := written(noon), written(noon.Add(time.Second)), written(time.Time{})
	for _, x := range []*lastwrite.Index{first, second, first, restarted} {
		if err := x.Share(t.Context(), shared, []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
	}
	for i, x := range []*lastwrite.Index{first, second, restarted} {
		if got := x.At("a"); !got.Equal(noon.Add(time.Second)) || !x.At("b").IsZero() {
			t.Errorf("process %d: written at %v", i, got)
		}
	}
	if len(shared.Values) != 1 {
		t.Errorf("cells %v", shared.Values)
	}
	shared.Values["written.a"] = "no time"
	if err := second.Share(t.Context(), shared, []string{"a"}); err != nil || shared.Values["written.a"] == "no time" {
		t.Errorf("an unreadable cell stays: %v, %v", shared.Values, err)
	}
}
