package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/queue/jobs"
)

// TestLists: a list is stored in pages, with an organization of the job for each part, and is removed with its job.
func TestLists(t *testing.T) {
	t.Parallel()
	job := newJob(t, core.JobRunning)
	q := open(t, job.ID)
	l := q.Lists()
	job.Scope = core.ScopeIDs
	ids := make([]string, 2*idlist.IDsPerPage+1)
	for i := range ids {
		ids[i] = fmt.Sprint("id.", i)
	}
	list := []idlist.List{{Organization: "S.1", IDs: ids}, {Organization: "S2", IDs: []string{"a"}}}
	if err := l.StoreList(t.Context(), job.ID, list); err != nil {
		t.Fatal(err)
	}
	if list[0].Pages() != 3 || list[1].Pages() != 1 {
		t.Errorf("pages: %d, %d", list[0].Pages(), list[1].Pages())
	}
	runs, err := q.Organizations(t.Context(), job.ID)
	if err != nil || len(runs) != 2 || *runs[0].LastPage != 2 || runs[0].Totals.Expected != int64(len(ids)) || runs[0].DoneThrough != -1 {
		t.Fatalf("%+v %v", runs, err)
	}
	page, err := l.IDPage(t.Context(), job.ID, "S.1", 2)
	if diff := cmp.Diff([]idlist.ID{{ID: "id.200"}}, page); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
	_, err = l.IDPage(t.Context(), job.ID, "S.1", 3)
	wantCode(t, err, core.CodeNotFound)
	find := func(organization, id string, want idlist.ID) {
		t.Helper()
		got, err := l.Find(t.Context(), job.ID, organization, id)
		if got != want || (core.CodeOf(err) == core.CodeNotFound) != (want.ID == "") {
			t.Errorf("%s %s: %+v %v", organization, id, got, err)
		}
	}
	for _, id := range []string{ids[0], ids[idlist.IDsPerPage-1], ids[idlist.IDsPerPage], ids[2*idlist.IDsPerPage]} {
		find("S.1", id, idlist.ID{ID: id})
	}
	find("S2", "a", idlist.ID{ID: "a"})
	find("S2", ids[0], idlist.ID{})
	find("S.1", "a", idlist.ID{})
	find("S3", "a", idlist.ID{})
	const sameHash = "uibzirclx0" // as id.133
	find("S.1", sameHash, idlist.ID{})
	indexed := func(ids []idlist.ID) error {
		ids[0].Outcome = idlist.Indexed
		return nil
	}
	if page, err = l.UpdateIDPage(t.Context(), job.ID, "S2", 0, indexed); err != nil || page[0].Outcome != idlist.Indexed {
		t.Errorf("%v %v", page, err)
	}
	find("S2", "a", idlist.ID{ID: "a", Outcome: idlist.Indexed})
	if _, err = l.UpdateIDPage(t.Context(), job.ID, "S.1", 1, indexed); err != nil {
		t.Error(err)
	}
	find("S.1", ids[idlist.IDsPerPage], idlist.ID{ID: ids[idlist.IDsPerPage], Outcome: idlist.Indexed})
	_, err = l.UpdateIDPage(t.Context(), job.ID, "S2", 1, indexed)
	wantCode(t, err, core.CodeNotFound)

	// A Request of the job, which waits, keeps the list; so does the job.
	keeps := func(when string, want bool) {
		t.Helper()
		if err := q.PruneOlder(t.Context(), 0, jobs.Ages{Cells: time.Hour}); err != nil {
			t.Fatal(err)
		}
		page, err := l.IDPage(t.Context(), job.ID, "S2", 0)
		runs, listErr := q.Organizations(t.Context(), job.ID)
		if kept := len(page) == 1 && len(runs) == 2; kept != want || listErr != nil || !want && core.CodeOf(err) != core.CodeNotFound {
			t.Errorf("%s: %v %v %v", when, page, runs, err)
		}
	}
	keeps("a request", true)
	mustCreate(t, q, job)
	keeps("a running job", true)
	open := func(want int) {
		t.Helper()
		if n, err := l.Open(t.Context(), "song"); n != want || err != nil {
			t.Errorf("%d lists are open, want %d: %v", n, want, err)
		}
	}
	mustCreate(t, q, newJob(t, core.JobRunning)) // over a repository
	open(1)
	if n, err := l.Open(t.Context(), "other"); n != 0 || err != nil {
		t.Errorf("%d lists of another repository are open: %v", n, err)
	}
	if _, err := q.Update(t.Context(), job.ID, func(j *core.Job) error {
		j.End(core.JobSucceeded, nil)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	open(0)
	keeps("an old job", false)

	// A list that no Request follows is removed, at once or after a while.
	if err := l.StoreList(t.Context(), "other", list); err != nil {
		t.Fatal(err)
	}
	if err := q.PruneOlder(t.Context(), 0, jobs.Ages{Orphans: time.Hour, Cells: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.IDPage(t.Context(), "other", "S2", 0); err != nil {
		t.Error(err)
	}
	if err := l.DropList(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	_, err = l.IDPage(t.Context(), "other", "S2", 0)
	wantCode(t, err, core.CodeNotFound)
	if err := l.StoreList(t.Context(), "third", list); err != nil {
		t.Fatal(err)
	}
	if err := q.PruneOlder(t.Context(), 0, jobs.Ages{Cells: time.Hour}); err != nil {
		t.Fatal(err)
	}
	_, err = l.IDPage(t.Context(), "third", "S.1", 0)
	wantCode(t, err, core.CodeNotFound)
}
