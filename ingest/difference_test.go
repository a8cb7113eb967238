package ingest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/ingest"
	"tutti/internal/core"
)

// TestRunDifferenceAtMostOnceAMinute: until a run has started all calls share it, and the next one starts a minute after it, also in another
// process. Other runs of the organization are neither joined nor counted, and other organizations have runs of their own.
func TestRunDifferenceAtMostOnceAMinute(t *testing.T) {
	q := &queueFake{}
	services := []*ingest.Service{newService(t, q, ingest.Config{}), newService(t, q, ingest.Config{})}
	request := func(organization string) core.Job {
		t.Helper()
		var job core.Job
		for i := range 6 {
			got, err := services[i%2].RunDifference(t.Context(), "song.ca", organization, core.CauseKafka, "r")
			if err != nil || i > 0 && got.ID != job.ID || !got.Difference {
				t.Fatalf("call %d: %+v, %v", i, got, err)
			}
			job = got
		}
		return job
	}
	set := func(id string, state core.JobState, started time.Time) {
		job := q.All[id]
		job.State, job.StartedAt = state, &started
		q.All[id] = job
	}
	other, err := services[0].Run(t.Context(), core.ScopeOrganization, "song.ca", "O", core.RunFlags{Difference: true}, core.CauseREST, "")
	if err != nil {
		t.Fatal(err)
	}
	first := request("O")
	set(first.ID, core.JobRunning, noon)
	second := request("O")
	set(second.ID, core.JobSucceeded, noon.Add(time.Minute))
	third, elsewhere := request("O"), request("P")
	want := map[string]time.Time{
		other.ID: {}, first.ID: {}, second.ID: noon.Add(time.Minute), third.ID: noon.Add(2 * time.Minute), elsewhere.ID: {},
	}
	got := map[string]time.Time{}
	for _, r := range q.requests() {
		got[r.JobID] = r.NotBefore
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, err = services[0].RunDifference(t.Context(), "song.ca", "..", core.CauseKafka, "")
	wantError(t, err, core.CodeInvalid, "relative path")
}
