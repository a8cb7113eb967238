package jobs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/core/jobsum"
	"tutti/internal/queue/jobs"
)

// groupedJob returns a job with 30 organizations in three groups, S00 to S29, and Z in none, as a build without groups stores it.
func groupedJob(t *testing.T, q store) core.Job {
	t.Helper()
	job := mustCreate(t, q, newJob(t, core.JobRunning))
	for number := range 3 {
		var runs []core.OrganizationRun
		for i := range 10 {
			runs = append(runs, core.OrganizationRun{Organization: fmt.Sprintf("S%02d", 10*number+i), State: core.JobQueued, DoneThrough: -1})
		}
		if created, err := q.Groups().CreateGroup(t.Context(), job.ID, number, runs); err != nil || !created {
			t.Fatal(created, err)
		}
	}
	alone(t, q, job, "Z", core.JobRunning)
	return job
}

func alone(t *testing.T, q store, job core.Job, organization string, state core.JobState) {
	t.Helper()
	run := core.OrganizationRun{Organization: organization, State: state, DoneThrough: -1}
	if created, err := q.CreateOrganization(t.Context(), job.ID, run); err != nil || !created {
		t.Fatal(created, err)
	}
}

func setState(t *testing.T, q store, job core.Job, organization string, state core.JobState) {
	t.Helper()
	run, err := q.UpdateOrganization(t.Context(), job.ID, organization, func(run *core.OrganizationRun) error {
		run.State = state
		run.Expect(2)
		return nil
	})
	if err != nil || run.State != state || run.Organization != organization {
		t.Fatalf("%+v %v", run, err)
	}
}

// organizationNames lists the organizations of a job by pages, and checks the sum of each page.
func organizationNames(t *testing.T, q store, job core.Job, f jobsum.OrganizationFilter, known int) []string {
	t.Helper()
	var names []string
	for {
		page, err := q.Groups().OrganizationPage(t.Context(), job.ID, f)
		if err != nil || page.Sum.Known != known || len(page.Runs) > f.Limit {
			t.Fatalf("%d of %d, %+v, %v", len(page.Runs), f.Limit, page.Sum, err)
		}
		for _, run := range page.Runs {
			names = append(names, run.Organization)
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return names
		}
	}
}

// TestGroups: organizations of groups are read and changed like others, and are listed by page: failed and running ones first. One that
// is also stored by itself counts only there.
func TestGroups(t *testing.T) {
	t.Parallel()
	q := open(t)
	job := groupedJob(t, q)
	if created, err := q.Groups().CreateGroup(t.Context(), job.ID, 1, nil); err != nil || created {
		t.Errorf("group 1 again: %v %v", created, err)
	}
	_, err := q.Groups().Group(t.Context(), job.ID, 3)
	wantCode(t, err, core.CodeNotFound)
	_, err = q.Organization(t.Context(), job.ID, "S15x")
	wantCode(t, err, core.CodeNotFound)
	setState(t, q, job, "S25", core.JobFailed)
	setState(t, q, job, "S03", core.JobRunning)
	setState(t, q, job, "S14", core.JobSucceeded)
	setState(t, q, job, "Z", core.JobFailed)
	alone(t, q, job, "S20", core.JobRunning)
	if _, err := q.Groups().UpdateGroup(t.Context(), job.ID, 2, func(runs []core.OrganizationRun) error {
		runs[0].Moved = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if run, err := q.Organization(t.Context(), job.ID, "S25"); err != nil || run.State != core.JobFailed || run.Totals.Expected != 2 {
		t.Errorf("%+v %v", run, err)
	}
	want := []string{"S25", "Z", "S03", "S20"}
	for i := range 30 {
		if name := fmt.Sprintf("S%02d", i); !slices.Contains([]string{"S25", "S03", "S20", "S14"}, name) {
			want = append(want, name)
		}
	}
	want = append(want, "S14")
	for _, limit := range []int{1, 3, 7, 31, 100} {
		if diff := cmp.Diff(want, organizationNames(t, q, job, jobsum.OrganizationFilter{Limit: limit}, 31)); diff != "" {
			t.Errorf("pages of %d: %s", limit, diff)
		}
	}
	if got := organizationNames(t, q, job, jobsum.OrganizationFilter{Limit: 1, State: core.JobFailed}, 31); !slices.Equal(got, []string{"S25", "Z"}) {
		t.Errorf("failed: %v", got)
	}
	first, err := q.Groups().OrganizationPage(t.Context(), job.ID, jobsum.OrganizationFilter{Limit: 1})
	states := map[core.JobState]int{core.JobFailed: 2, core.JobRunning: 2, core.JobSucceeded: 1, core.JobQueued: 26}
	if diff := cmp.Diff(states, first.Sum.States); diff != "" || err != nil || first.Sum.Counted != 4 {
		t.Errorf("%s %+v %v", diff, first.Sum, err)
	}
	_, err = q.Groups().OrganizationPage(t.Context(), "another", jobsum.OrganizationFilter{Cursor: first.Next})
	wantCode(t, err, core.CodeInvalid)
	runs, err := q.Groups().UpdateOrganizations(t.Context(), job.ID, func(run *core.OrganizationRun) error {
		if !run.State.Final() {
			run.State = core.JobCancelled
		}
		return nil
	})
	sum, sumErr := q.Groups().Sum(t.Context(), job.ID)
	if err != nil || sumErr != nil || len(runs) != 31 || sum.Open() != 0 || sum.Known != 31 || sum.States[core.JobCancelled] != 28 {
		t.Errorf("%d %+v %v %v", len(runs), sum, err, sumErr)
	}
	if _, err := q.Update(t.Context(), job.ID, func(j *core.Job) error { j.State = core.JobCancelled; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := q.PruneOlder(t.Context(), 0, jobs.Ages{}); err != nil {
		t.Fatal(err)
	}
	if runs, err := q.Organizations(t.Context(), job.ID); err != nil || len(runs) != 0 {
		t.Errorf("after the job was removed: %v %v", runs, err)
	}
}

// TestSumsOfChanges: a second read of the sums has only what has changed since the first.
func TestSumsOfChanges(t *testing.T) {
	t.Parallel()
	q := open(t)
	job := groupedJob(t, q)
	read := func(after uint64) (changes []jobsum.Change) {
		t.Helper()
		if err := q.Groups().EachSum(t.Context(), job.ID, after, func(c jobsum.Change) error {
			changes = append(changes, c)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return changes
	}
	all := read(0)
	if len(all) != 4 || all[0].Group != 0 || all[0].Sum.Known != 10 || all[0].Sum.Open() != 10 || all[3].Group != -1 || all[3].Organization != "Z" {
		t.Fatalf("%+v", all)
	}
	last := all[3].Revision
	if again := read(last); len(again) != 0 {
		t.Errorf("%+v", again)
	}
	setState(t, q, job, "S12", core.JobPaused)
	setState(t, q, job, "S13", core.JobSucceeded)
	changed := read(last)
	if len(changed) != 1 || changed[0].Group != 1 || changed[0].Sum.Open() != 9 || changed[0].Sum.States[core.JobPaused] != 1 {
		t.Errorf("%+v", changed)
	}
}

// TestWatchOfGroups: a watch delivers the organizations of groups, and of one that is stored by itself not what its group says.
func TestWatchOfGroups(t *testing.T) {
	t.Parallel()
	q := open(t)
	job := groupedJob(t, q)
	alone(t, q, job, "S07", core.JobRunning)
	setState(t, q, job, "S08", core.JobFailed) // writes group 0 after S07
	states := make(map[string]core.JobState)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_ = q.Watch(ctx, job.ID, func(c core.JobChange) error {
		if c.Run != nil {
			states[c.Run.Organization] = c.Run.State
		} else if c.Job == nil {
			cancel()
		}
		return ctx.Err()
	})
	if len(states) != 31 || states["S07"] != core.JobRunning || states["S08"] != core.JobFailed || states["S29"] != core.JobQueued {
		t.Errorf("%d: %v", len(states), states)
	}
}

// TestKindsOfGroups: a group has the kinds of the organizations that have ended in it, once each, and an organization by itself its own. Those
// of an organization that was counted in its group and then moved out of it are not known.
func TestKindsOfGroups(t *testing.T) {
	t.Parallel()
	q := open(t)
	job := groupedJob(t, q)
	kinds := core.NewKinds(2, 2, func(yield func(string, core.PathKinds) bool) { yield("a", core.PathKinds{Texts: 2}) }, core.MaxKindsBytes)
	update := func(change func(runs []core.OrganizationRun)) {
		t.Helper()
		if _, err := q.Groups().UpdateGroup(t.Context(), job.ID, 1, func(runs []core.OrganizationRun) error {
			change(runs)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	sums := func() map[string]core.Kinds {
		t.Helper()
		got := map[string]core.Kinds{}
		if err := q.Groups().EachSum(t.Context(), job.ID, 0, func(c jobsum.Change) error {
			got[fmt.Sprint(c.Group, c.Organization)] = c.Kinds
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	for range 2 {
		update(func(runs []core.OrganizationRun) {
			for i := range runs[:3] {
				if !runs[i].State.Final() {
					runs[i].State, runs[i].Kinds = core.JobSucceeded, kinds
				}
			}
		})
	}
	if _, err := q.UpdateOrganization(t.Context(), job.ID, "Z", func(run *core.OrganizationRun) error {
		run.Kinds = kinds
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	got := sums()
	for of, records := range map[string]int64{"0": 0, "1": 6, "2": 0, "-1Z": 2} {
		if k := got[of]; !k.Whole() || k.Records() != records {
			t.Errorf("%s has %d records, want %d", of, k.Records(), records)
		}
	}
	update(func(runs []core.OrganizationRun) { runs[5].Moved = true })
	if k := sums()["1"]; k.Records() != 6 {
		t.Errorf("%d records after another organization has moved", k.Records())
	}
	update(func(runs []core.OrganizationRun) { runs[0].Moved = true })
	if sums()["1"].Whole() {
		t.Error("an organization counts twice")
	}
}
