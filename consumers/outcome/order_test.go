package outcome

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"tutti/internal/core"
)

// errEnded ends what a process does where it is killed.
var errEnded = errors.New("the process has ended")

// steps are the calls of a process, which go on one at a time, when they are told to.
type steps struct {
	letters
	state   *core.SharedState
	next    chan bool // false kills the process
	waiting chan bool // false once it has ended
}

func (s *steps) step() error {
	s.waiting <- true
	if !<-s.next {
		return errEnded
	}
	return nil
}

func (s *steps) Put(ctx context.Context, d core.DeadLetter) error {
	if err := s.step(); err != nil {
		return err
	}
	return s.letters.Put(ctx, d)
}

func (s *steps) Clear(ctx context.Context, repository, organization, id string, at core.Version, clears func(core.DeadLetter) bool) error {
	if at > 0 {
		return nil // the settling of a conflict ends none by its version
	}
	if err := s.step(); err != nil {
		return err
	}
	return s.letters.Clear(ctx, repository, organization, id, at, clears)
}

func (s *steps) Find(ctx context.Context, repository, organization, id string) (core.DeadLetter, error) {
	if err := s.step(); err != nil {
		return core.DeadLetter{}, err
	}
	return s.letters.Find(ctx, repository, organization, id)
}

func (s *steps) outcomes(code string) *Outcomes {
	return New(s, nil, Config{
		Repository: core.Repository{Code: code, IndexName: "x"}, Logger: slog.New(slog.DiscardHandler),
		Shared: &Shared{
			State: func(context.Context, string, string) (core.SharedState, error) {
				if err := s.step(); err != nil {
					return core.SharedState{}, err
				}
				return *s.state, nil
			},
			Publish: func(context.Context, core.Request) error { return nil },
		},
	})
}

// conflictOrder is one order of the steps of processes that settle the conflicts of one document.
type conflictOrder struct {
	letters   letters
	state     core.SharedState
	version   core.Version
	processes []*steps
	ended     []bool
}

// start starts a process, which waits for its first step, and then does what it is for.
func (w *conflictOrder) start(t *testing.T, process func(*Outcomes) error) {
	s := &steps{w.letters, &w.state, make(chan bool), make(chan bool)}
	w.processes, w.ended = append(w.processes, s), append(w.ended, false)
	go func() {
		defer func() { s.waiting <- false }()
		if s.step() != nil {
			return
		}
		if err := process(s.outcomes("b")); err != nil && !errors.Is(err, errEnded) {
			t.Error(err)
		}
	}()
	<-s.waiting
}

// write writes a version of the record of repository b, which is in conflict with that of repository a or not, and settles it.
func (w *conflictOrder) write(version core.Version, conflict bool) func(*Outcomes) error {
	return func(o *Outcomes) error {
		result := core.Result{Outcome: core.OutcomeStale}
		if version > w.version {
			result.Outcome, w.version, w.state = core.OutcomeIndexed, version, conflictState(conflict)
		}
		written := w.state
		result.Shared = &written
		req := core.Request{Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: "b", Organization: "T", RecordID: "1"}
		return o.Settle(context.Background(), req, "T", "1", version, result)
	}
}

// check checks the dead letter of repository a.
func check(o *Outcomes) error {
	return o.settleConflicts(context.Background(), core.Request{}, "1", []core.SharedConflict{{Repository: "a", Organization: "S"}}, nil)
}

// conflictState is the state of a document in which the record of repository a was in conflict, and is so still or not.
func conflictState(conflict bool) core.SharedState {
	s := core.SharedState{
		Blocks:    []core.SharedBlock{{Repository: "a", Organization: "S", RecordID: "1", Conflict: conflict}, {Repository: "b", Organization: "T", RecordID: "1"}},
		Conflicts: []core.SharedConflict{{Repository: "a", Organization: "S"}},
	}
	if conflict {
		s.Blocks[0].Document = core.NewDeadLetterDocument([]byte(`{"a":1}`))
	}
	return s
}

// do lets a process do some steps; it is killed at the first one unless it goesOn.
func (w *conflictOrder) do(process, steps int, goesOn bool) {
	for ; steps > 0 && !w.ended[process]; steps-- {
		w.processes[process].next <- goesOn
		w.ended[process] = !<-w.processes[process].waiting
	}
}

// TestOrdersOfConflicts: a check, a process that writes a record, and one that writes it anew, do their steps in every order with few changes
// between them. The first two end as they are, or are killed: their Request was replaced by that of the third, so that it is not done again.
// In the end there is a dead letter if and only if the document has the conflict, but that of an ended one may be left to the next check.
func TestOrdersOfConflicts(t *testing.T) {
	const checker, older, newer, all = 0, 1, 2, 1 << 10
	most := [5]int{4, 8, 8, 4, 5} // about as many steps as each has until it waits for another one
	for variant := range 3 << 3 {
		first, second, killed, before := variant&1 > 0, variant&2 > 0, variant&4 > 0, variant>>3
		for order := range most[0] * most[1] * most[2] * most[3] * most[4] {
			var n [5]int
			for i, rest := 0, order; i < len(n); i++ {
				n[i], rest = rest%most[i], rest/most[i]
			}
			w := &conflictOrder{letters: letters{}, state: conflictState(false)}
			if before > 0 {
				w.start(t, w.write(1, true))
				w.do(0, all, true)
				w.processes, w.ended = nil, nil
				w.state = conflictState(before == 1) // else the dead letter was left behind
			}
			w.start(t, check)
			w.start(t, w.write(2, first))
			w.start(t, w.write(3, second))
			w.do(checker, n[0], true)
			w.do(older, n[1], true)
			w.do(newer, n[2], true)
			w.do(checker, n[3], true)
			w.do(older, n[4], true)
			w.do(newer, all, true)
			w.do(checker, all, !killed)
			w.do(older, all, !killed)
			if has := w.letters.Has("a", "S", "1"); has != second && (second || !killed) {
				t.Fatalf("start %d, then conflict %v, then %v; steps of the check, the older, the newer, the check and the older write %v, killed %v: dead letter %v",
					before, first, second, n, killed, has)
			}
			if !second {
				w.start(t, check)
				w.do(len(w.processes)-1, all, true)
				if w.letters.Has("a", "S", "1") {
					t.Fatal("the next check leaves the dead letter")
				}
			}
		}
	}
}
