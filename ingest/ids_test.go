package ingest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/ingest"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
)

// listsFake stores nothing, and notes its calls.
type listsFake struct {
	note  func(string)
	store error
	open  func(repository string) (int, error)
}

func (l listsFake) Open(_ context.Context, repository string) (int, error) {
	if l.open == nil {
		return 0, nil
	}
	return l.open(repository)
}

func (l listsFake) StoreList(_ context.Context, _ string, list []idlist.List) error {
	l.note(fmt.Sprint("list ", list))
	return l.store
}

func (l listsFake) DropList(context.Context, string) error {
	l.note("drop")
	return nil
}

// TestIDs: the list is stored before the one Request, and the job after it. A list whose Request is certainly not stored is removed.
func TestIDs(t *testing.T) {
	full, lost := core.NewError(core.CodeOverloaded, "full"), core.NewError(core.CodeUnavailable, "lost")
	for name, tt := range map[string]struct {
		store, publish error
		code           core.Code
		calls          []string
	}{
		"stored":                     {nil, nil, "", []string{"list [{S1 [a b]}]", "request", "job"}},
		"the queue is full":          {nil, full, core.CodeOverloaded, []string{"list [{S1 [a b]}]", "request", "drop"}},
		"the Request may be stored":  {nil, lost, core.CodeUnavailable, []string{"list [{S1 [a b]}]", "request"}},
		"the list cannot be stored":  {full, nil, core.CodeOverloaded, []string{"list [{S1 [a b]}]", "drop"}},
		"the list may be stored now": {lost, nil, core.CodeUnavailable, []string{"list [{S1 [a b]}]"}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			note := func(call string) { calls = append(calls, call) }
			q := &queueFake{}
			q.publish = func(core.Request) error {
				note("request")
				return tt.publish
			}
			q.create = func(core.Job) error {
				note("job")
				return nil
			}
			s := newService(t, q, ingest.Config{Lists: listsFake{note: note, store: tt.store}})
			job, err := s.IDs(t.Context(), "song.ca", "S1", []idlist.List{{Organization: "S1", IDs: []string{"a", "b"}}}, "req-1")
			if core.CodeOf(err) != tt.code || !slices.Equal(calls, tt.calls) {
				t.Errorf("%v, calls %q, want %q", err, calls, tt.calls)
			}
			if err != nil {
				return
			}
			want := core.Job{
				ID: job.ID, Scope: core.ScopeIDs, Repository: "song.ca", Organization: "S1", IndexName: "analyses", State: core.JobQueued,
				Cause: core.CauseREST, RequestID: "req-1", QueuedAt: noon.UTC(),
			}
			if diff := cmp.Diff(want, q.All[job.ID]); diff != "" {
				t.Error(diff)
			}
		})
	}
	s := newService(t, &queueFake{}, ingest.Config{Lists: listsFake{note: func(string) { t.Error("a list was stored") }}})
	one := []idlist.List{{Organization: "S1", IDs: []string{"a"}}}
	for name, tt := range map[string]struct {
		repository string
		list       []idlist.List
		code       core.Code
		message    string
	}{
		"unknown repository": {"other", one, core.CodeNotFound, `repository "other" is not configured`},
		"empty":              {"song.ca", nil, core.CodeInvalid, "1 to 100000 ids of at most 1000 organizations"},
		"too many":           {"song.ca", []idlist.List{{Organization: "S1", IDs: slices.Repeat([]string{"a"}, idlist.MaxIDs+1)}}, core.CodeInvalid, "1 to 100000 ids"},
		"no organization":    {"song.ca", []idlist.List{{IDs: []string{"a"}}}, core.CodeInvalid, "organization is empty"},
		"control character":  {"song.ca", []idlist.List{{Organization: "S1", IDs: []string{"a\x00"}}}, core.CodeInvalid, "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.IDs(t.Context(), tt.repository, "", tt.list, "")
			wantError(t, err, tt.code, tt.message)
		})
	}
}

// TestIDsBound: while as many lists of a repository as allowed have not ended, including those that are being stored, no other one of it
// is stored.
func TestIDsBound(t *testing.T) {
	stored, open := 0, idlist.MaxOpen-1
	var s *ingest.Service
	postTo := func(repository string) error {
		_, err := s.IDs(t.Context(), repository, "S1", []idlist.List{{Organization: "S1", IDs: []string{"a"}}}, "")
		return err
	}
	post := func() error { return postTo("song.ca") }
	var amid, other error
	lists := listsFake{open: func(repository string) (int, error) {
		if repository != "song.ca" {
			return idlist.MaxOpen - 1, nil
		}
		return open, nil
	}}
	lists.note = func(string) {
		if stored++; stored == 1 {
			amid, other = post(), postTo("song.jp")
		}
	}
	s = newService(t, &queueFake{}, ingest.Config{Lists: &lists})
	if err := post(); err != nil || stored != 2 {
		t.Errorf("the last list that is allowed: %v, %d stored", err, stored)
	}
	if other != nil {
		t.Errorf("one of another repository meanwhile: %v", other)
	}
	if core.CodeOf(amid) != core.CodeOverloaded || core.HintOf(amid) != "retry when one has ended, or put the ids into fewer lists" {
		t.Errorf("another one before it ends: %v; %s", amid, core.HintOf(amid))
	}
	if err := post(); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	open++
	wantError(t, post(), core.CodeOverloaded, "100 lists of ids of the repository are waiting or in progress")
	if err := postTo("song.jp"); err != nil {
		t.Errorf("one of another repository: %v", err)
	}
	lists.open = func(string) (int, error) { return 0, core.NewError(core.CodeUnavailable, "down") }
	wantError(t, post(), core.CodeUnavailable, "down")
	if stored != 4 {
		t.Errorf("%d lists were stored", stored)
	}
	lists.open = nil
	if err := post(); err != nil {
		t.Errorf("after lists that were refused: %v", err)
	}
}

// TestRetryOfIDs: the dead letter of a list's Request is not retried as a run over the organization or the repository.
func TestRetryOfIDs(t *testing.T) {
	w := newWorld(t, nil)
	for name, r := range map[string]core.Request{
		"list": {Kind: core.KindIndex, Scope: core.ScopeIDs, Repository: "song.ca", JobID: "j"},
		"page": {Kind: core.KindIndex, Scope: core.ScopePage, Repository: "song.ca", Organization: "S1", JobID: "j", Page: &core.Page{IDs: true, Limit: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			id := w.letters.add(t, core.DeadLetter{Repository: "song.ca", Organization: r.Organization, Reason: core.ReasonCrashLoop, Request: &r})
			_, err := w.service.Retry(t.Context(), id, "")
			wantError(t, err, core.CodeConflict, "the dead letter is of a list of ids")
			if len(w.requests()) > 0 {
				t.Errorf("%+v", w.requests())
			}
		})
	}
}
