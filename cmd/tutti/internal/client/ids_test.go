package client_test

import (
	"errors"
	"fmt"
	"testing"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/core"
	"tutti/internal/core/idlist"
)

// TestIDs: a list is sent in the format of its first line; the ids of a job are read with their outcomes, and a truncated response is an
// error.
func TestIDs(t *testing.T) {
	t.Parallel()
	f := newTutti()
	running, _ := f.start(t, "")
	c := newClient(t, client.Config{Server: "http://" + running.Addr().String() + "/base"})
	for list, want := range map[string]string{
		"a\nb\n":               `ids song "S 1" [{S 1 [a b]}]`,
		"\n{\"id\":\"a\"}\n":   `ids song "S 1" [{S 1 [a]}]`,
		"\ufeff{\"id\":\"x\"}": `ids song "S 1" [{S 1 [x]}]`,
	} {
		f.Calls = nil
		a, err := c.IndexIDs(t.Context(), "song", "S 1", []byte(list))
		if err != nil || a.JobID != "job-1" || a.IDs == 0 || fmt.Sprint(f.Calls) != "["+want+"]" {
			t.Errorf("%q: %+v %v %v", list, a, err, f.Calls)
		}
	}
	if _, err := c.IndexIDs(t.Context(), "song", "", []byte("S1\ta\nb")); core.CodeOf(err) != core.CodeInvalid ||
		core.MessageOf(err) != "line 2: no tab separates an organization and an id" {
		t.Errorf("%v", err)
	}
	last := 1
	f.change(core.JobChange{Job: &core.Job{ID: "job-1", Scope: core.ScopeIDs, State: core.JobSucceeded}})
	f.change(core.JobChange{Run: &core.OrganizationRun{Organization: "S1", LastPage: &last}})
	read := func(stop error) (ids []idlist.ID, err error) {
		err = c.JobIDs(t.Context(), "job-1", func(id idlist.ID) error {
			ids = append(ids, id)
			return stop
		})
		return ids, err
	}
	ids, err := read(nil)
	if want := (idlist.ID{Organization: "S1", ID: "S11", Outcome: idlist.Indexed}); err != nil || len(ids) != 2 || ids[1] != want {
		t.Errorf("%+v %v", ids, err)
	}
	stop := errors.New("stop")
	if ids, err = read(stop); !errors.Is(err, stop) || len(ids) != 1 {
		t.Errorf("%+v %v", ids, err)
	}
	f.lostPage.Store(1) // the handler of the read that was stopped may still run
	if ids, err = read(nil); core.CodeOf(err) != core.CodeUnavailable || len(ids) > 1 {
		t.Errorf("a truncated response: %+v %v", ids, err)
	}
}
