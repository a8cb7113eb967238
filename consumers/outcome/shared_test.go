package outcome

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
)

// letters are dead letters in memory, by repository, organization and record.
type letters map[[3]string]core.DeadLetter

func (l letters) Put(_ context.Context, d core.DeadLetter) error {
	l[[3]string{d.Repository, d.Organization, d.RecordID}] = d
	return nil
}

func (l letters) Clear(_ context.Context, repository, organization, id string, at core.Version, clears func(core.DeadLetter) bool) error {
	if key := [3]string{repository, organization, id}; (at == 0 || l[key].Version <= at) && clears(l[key]) {
		delete(l, key)
	}
	return nil
}

func (l letters) Has(repository, organization, id string) bool {
	_, has := l[[3]string{repository, organization, id}]
	return has
}

func (l letters) Find(_ context.Context, repository, organization, id string) (core.DeadLetter, error) {
	d, has := l[[3]string{repository, organization, id}]
	if !has {
		return d, core.NewError(core.CodeNotFound, "no such dead letter")
	}
	return d, nil
}

// TestVersionOfDeadLetters: a dead letter has the version of its result, and a result removes the dead letters up to its version; one that
// was stale those up to the version that the index has.
func TestVersionOfDeadLetters(t *testing.T) {
	stored := letters{}
	o := New(stored, nil, Config{Repository: core.Repository{Code: "a", IndexName: "x"}, Logger: slog.New(slog.DiscardHandler)})
	req := core.Request{ID: "r", Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: "a", Organization: "S", RecordID: "1", Cause: core.CauseREST}
	dated, removal := req, req
	dated.Cause, dated.AsOf, dated.ReceivedAt = core.CauseKafka, 2, time.Unix(0, 20)
	removal.Kind = core.KindRemove
	for name, tt := range map[string]struct {
		req     core.Request
		at      core.Version
		res     core.Result
		removed bool
	}{
		"newer":                         {req, 11, core.Result{Outcome: core.OutcomeIndexed}, true},
		"older":                         {req, 9, core.Result{Outcome: core.OutcomeIndexed}, false},
		"older removal":                 {removal, 9, core.Result{Outcome: core.OutcomeRemoved}, false},
		"stale, the index has a newer":  {req, 9, core.Result{Outcome: core.OutcomeStale, CurrentVersion: 11}, true},
		"stale, the index has an older": {req, 8, core.Result{Outcome: core.OutcomeStale, CurrentVersion: 9}, false},
		"dated, received later":         {dated, dated.ResultVersion(2), core.Result{Outcome: core.OutcomeIndexed}, true},
		"stale removal":                 {removal, 11, core.Result{Outcome: core.OutcomeStale, CurrentVersion: 12}, false},
	} {
		if err := o.StoreRejected(t.Context(), req, "1", 10, core.Result{Outcome: core.OutcomeRejected}); err != nil {
			t.Fatal(err)
		}
		if l := stored[[3]string{"a", "S", "1"}]; l.Version != 10 {
			t.Errorf("%s: version %d", name, l.Version)
		}
		if err := o.Settle(t.Context(), tt.req, "S", "1", tt.at, tt.res); err != nil || stored.Has("a", "S", "1") == tt.removed {
			t.Errorf("%s: removed %v: %v", name, !tt.removed, err)
		}
	}
}

// TestSettle: a conflict of any repository becomes a dead letter, which only its end removes; other dead letters stay as they are.
func TestSettle(t *testing.T) {
	stored := letters{}
	var published []core.Request
	var state core.SharedState
	o := New(stored, nil, Config{
		Repository: core.Repository{Code: "a", IndexName: "x"}, Logger: slog.New(slog.DiscardHandler),
		Shared: &Shared{
			State: func(context.Context, string, string) (core.SharedState, error) { return state, nil },
			Publish: func(_ context.Context, r core.Request) error {
				published = append(published, r)
				return nil
			},
		},
	})
	req := core.Request{ID: "r", Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: "a", Organization: "S", RecordID: "1", Cause: core.CauseREST}
	settle := func(outcome core.Outcome, blocks ...core.SharedBlock) {
		t.Helper()
		state = core.SharedState{Blocks: blocks, Conflicts: state.Conflicts}
		for _, b := range blocks {
			if c := (core.SharedConflict{Repository: b.Repository, Organization: b.Organization}); b.Conflict && !slices.Contains(state.Conflicts, c) {
				state.Conflicts = append(state.Conflicts, c)
			}
		}
		if err := o.Settle(t.Context(), req, "S", "1", 1, core.Result{Outcome: outcome, Shared: &state}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(reasons ...string) {
		t.Helper()
		var got []string
		for key, l := range stored {
			got = append(got, key[0]+" "+key[1]+" "+l.Reason)
		}
		slices.Sort(got)
		if diff := cmp.Diff(reasons, got); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
	}
	own, other := core.SharedBlock{Repository: "a", Organization: "S", RecordID: "1"}, core.SharedBlock{Repository: "b", Organization: "T", RecordID: "2"}
	lost, otherLost := own, other
	lost.Conflict, lost.Document = true, core.NewDeadLetterDocument([]byte(`{"lost":1}`))
	otherLost.Conflict, otherLost.Document = true, core.NewDeadLetterDocument([]byte(`{"other":1}`))

	settle(core.OutcomeIndexed, lost, other)
	want("a S conflict")
	if l := stored[[3]string{"a", "S", "1"}]; string(l.Document) != `{"lost":1}` || l.Request.ID != "r" {
		t.Errorf("%+v", l)
	}
	settle(core.OutcomeIndexed, own, otherLost) // the own record is the newer one now
	want("b T conflict")
	if l := stored[[3]string{"b", "T", "1"}]; string(l.Document) != `{"other":1}` || l.Request.Repository != "b" || l.Request.RecordID != "2" {
		t.Errorf("%+v", l)
	}
	otherLost.Document = nil // when it is settled again, the document of the other one is gone
	settle(core.OutcomeIndexed, own, otherLost)
	if l := stored[[3]string{"b", "T", "1"}]; string(l.Document) != `{"other":1}` {
		t.Errorf("%+v", l)
	}
	settle(core.OutcomeIndexed, own, other)
	want()

	settle(core.OutcomeIndexed, lost, other)
	settle(core.OutcomeRemoved, other)
	want()
	// A dead letter that a process left behind when it ended is removed by the check, and one that is true stays.
	check := func() {
		t.Helper()
		for key, l := range stored {
			l.Repository, l.Organization, l.RecordID = key[0], key[1], key[2]
			if err := o.CheckConflict(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
	}
	settle(core.OutcomeIndexed, lost, other)
	check()
	want("a S conflict")
	state.Blocks = []core.SharedBlock{own, other}
	check()
	want()
	// A write that changes nothing stores what is missing.
	state.Blocks = []core.SharedBlock{lost, other}
	settle(core.OutcomeStale, lost, other)
	want("a S conflict")
	settle(core.OutcomeStale, own, other)
	want()

	stored[[3]string{"a", "S", "1"}] = core.DeadLetter{Reason: core.ReasonRejected}
	stored[[3]string{"b", "T", "1"}] = core.DeadLetter{Reason: core.ReasonRejected}
	settle(core.OutcomeIndexed, own, other)
	want("b T rejected")
	settle(core.OutcomeIndexed, own, otherLost)
	want("b T rejected")

	hint := o.cfg.mappingHint(core.Result{Reason: "failed to parse field [sex] of type [long]"})
	if !strings.Contains(hint, `"sex"`) || !strings.Contains(hint, "another indexName") || strings.Contains(hint, "--rebuild") {
		t.Error(hint)
	}
	if len(published) != 0 {
		t.Errorf("%+v", published)
	}
	other.Fetch = true
	settle(core.OutcomeRemoved, other)
	if len(published) != 1 || published[0].Repository != "b" || published[0].Organization != "T" || published[0].RecordID != "2" ||
		published[0].Validate() != nil || published[0].ID == req.ID {
		t.Errorf("%+v", published)
	}
}
