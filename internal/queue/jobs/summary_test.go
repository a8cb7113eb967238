package jobs_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// manyOrganizations stores a job with organizations that have ended, each by itself, as a build without groups does, or in groups.
func manyOrganizations(t *testing.T, q store, grouped bool, n int) core.Job {
	t.Helper()
	job := mustCreate(t, q, newJob(t, core.JobRunning))
	last := 0
	runs := make([]core.OrganizationRun, n)
	for i := range runs {
		runs[i] = core.OrganizationRun{
			Organization: fmt.Sprintf("S%05d", i), State: core.JobSucceeded, LastPage: &last, Totals: core.Totals{Expected: 2, Fetched: 2, Indexed: 2},
			IDs: make([]byte, 64),
		}
		if i%10 == 7 { // more than a summary shows
			runs[i].State, runs[i].Error = core.JobFailed, &core.JobError{Code: "c", Message: "m"}
		}
	}
	var err error
	if grouped {
		number := 0
		for group := range slices.Chunk(runs, 100) {
			_, err = q.Groups().CreateGroup(t.Context(), job.ID, number, group)
			number++
		}
	} else {
		for _, run := range runs {
			_, err = q.CreateOrganization(t.Context(), job.ID, run)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func end(t *testing.T, q store, job core.Job, at time.Time) {
	t.Helper()
	if _, err := q.Update(t.Context(), job.ID, func(j *core.Job) error {
		j.End(core.JobPartial, nil)
		at = at.UTC()
		j.EndedAt, j.ExpectedOrganizations = &at, new(int)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// firstPage returns the first organizations of a job, and how many messages it took to read them.
func firstPage(t *testing.T, q store, job core.Job, limit int) (jobsum.OrganizationPage, uint64) {
	t.Helper()
	before := q.bucket.Conn.NC.Stats().InMsgs
	page, err := q.Groups().OrganizationPage(t.Context(), job.ID, jobsum.OrganizationFilter{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return page, q.bucket.Conn.NC.Stats().InMsgs - before
}

// TestOrganizationsOfEndedJobs: the first organizations of an ended job, and the sum of all, are read with one message however many there
// are, stored in groups or each by itself; the same ones as before its end. A change after the end is seen.
func TestOrganizationsOfEndedJobs(t *testing.T) {
	t.Parallel()
	for _, grouped := range []bool{true, false} {
		t.Run(fmt.Sprintf("grouped %v", grouped), func(t *testing.T) {
			q := open(t)
			for name, tt := range map[string]struct{ organizations, limit int }{
				"none": {0, 10}, "few": {3, 10}, "many": {1200, 10}, "many, long page": {1200, 100}, "one page": {100, 100},
			} {
				job := manyOrganizations(t, q, grouped, tt.organizations)
				want, _ := firstPage(t, q, job, tt.limit)
				end(t, q, job, time.Now())
				for i := range want.Runs {
					want.Runs[i].IDs = nil
				}
				got, reads := firstPage(t, q, job, tt.limit)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
				if reads > 1 {
					t.Errorf("%s: %d messages", name, reads)
				}
				rest, err := q.Groups().OrganizationPage(t.Context(), job.ID, jobsum.OrganizationFilter{Limit: 1000, Cursor: got.Next})
				if got.Next != "" && (err != nil || len(rest.Runs) != min(1000, tt.organizations-tt.limit) || rest.Runs[0].State != core.JobFailed) {
					t.Errorf("%s: the next page has %d organizations: %v", name, len(rest.Runs), err)
				}
				if tt.organizations == 0 {
					continue
				}
				setState(t, q, job, "S00001", core.JobFailed)
				for range 2 {
					page, _ := firstPage(t, q, job, tt.limit)
					if page.Sum.States[core.JobFailed] != want.Sum.States[core.JobFailed]+1 || page.Runs[0].Organization != "S00001" {
						t.Errorf("%s: after a change: %+v", name, page.Sum)
					}
				}
			}
		})
	}
}

// TestSummaryOfLongEndedJob: a job that ended long ago, which an earlier build has stored without a summary, gets one with the first list or
// when old jobs are removed. A summary is removed with its job.
func TestSummaryOfLongEndedJob(t *testing.T) {
	t.Parallel()
	q := open(t)
	purge := func() {
		t.Helper()
		err := q.bucket.Stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV.tutti_jobs.summary.>"))
		if err != nil {
			t.Fatal(err)
		}
	}
	job := manyOrganizations(t, q, false, 300)
	end(t, q, job, time.Now().Add(-2*time.Hour))
	for name, store := range map[string]func(){
		"list": func() { firstPage(t, q, job, 10) },
		"prune": func() {
			if err := q.Prune(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
		},
	} {
		purge()
		if _, reads := firstPage(t, q, job, 101); reads < 300 { // longer than a summary
			t.Errorf("%s: %d messages without a summary", name, reads)
		}
		store()
		if page, reads := firstPage(t, q, job, 10); reads > 1 || page.Sum.Known != 300 || len(page.Runs) != 10 {
			t.Errorf("%s: %d messages, %+v", name, reads, page.Sum)
		}
	}
	if err := q.Prune(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if page, _ := firstPage(t, q, job, 10); page.Sum.Known != 0 {
		t.Errorf("a removed job has %+v", page.Sum)
	}
}

// TestSummaryDuringChanges: organizations that change while summaries of their job are stored are listed as they are.
func TestSummaryDuringChanges(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	lists, changes := s.connect(t), s.connect(t)
	job := manyOrganizations(t, lists, true, 40)
	end(t, lists, job, time.Now())
	const rounds, changesOfRound = 20, 10
	for round := range rounds {
		var working sync.WaitGroup
		changed := make(chan struct{})
		for range 4 {
			working.Go(func() {
				for {
					if _, err := lists.Groups().OrganizationPage(t.Context(), job.ID, jobsum.OrganizationFilter{Limit: 10}); err != nil {
						t.Error(err)
					}
					select {
					case <-changed:
						return
					default:
					}
				}
			})
		}
		for i := range changesOfRound {
			_, err := changes.UpdateOrganization(t.Context(), job.ID, fmt.Sprintf("S%05d", i), func(run *core.OrganizationRun) error {
				run.Totals.Fetched++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		close(changed)
		working.Wait()
		for _, limit := range []int{10, 100} {
			if page, _ := firstPage(t, lists, job, limit); page.Sum.Totals.Fetched != int64(2*40+changesOfRound*(round+1)) {
				t.Fatalf("after %d changes %d organizations are listed with %+v", changesOfRound*(round+1), limit, page.Sum.Totals)
			}
		}
	}
}
