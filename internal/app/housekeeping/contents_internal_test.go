package housekeeping

import (
	"testing"
	"time"

	"tutti/internal/core"
)

// TestFillOf: only a run over the whole repository that wrote to the index, or found nothing to write, fills it.
func TestFillOf(t *testing.T) {
	t.Parallel()
	job := func(state core.JobState, totals core.Totals) core.Job {
		return core.Job{Scope: core.ScopeRepository, IndexName: "analyses", State: state, Totals: totals}
	}
	organization, elsewhere := job(core.JobSucceeded, core.Totals{}), job(core.JobSucceeded, core.Totals{})
	organization.Scope, elsewhere.IndexName = core.ScopeOrganization, "other"
	for name, tt := range map[string]struct {
		jobs []core.Job
		want fillState
	}{
		"no job":                   {nil, fillDue},
		"succeeded":                {[]core.Job{job(core.JobSucceeded, core.Totals{})}, fillDone},
		"failed":                   {[]core.Job{job(core.JobFailed, core.Totals{Indexed: 1})}, fillDue},
		"cancelled":                {[]core.Job{job(core.JobCancelled, core.Totals{Indexed: 1})}, fillDue},
		"all rejected":             {[]core.Job{job(core.JobPartial, core.Totals{Fetched: 50, Rejected: 50})}, fillDue},
		"some rejected":            {[]core.Job{job(core.JobPartial, core.Totals{Indexed: 1, Rejected: 49})}, fillDone},
		"newer documents stored":   {[]core.Job{job(core.JobPartial, core.Totals{Stale: 1, Rejected: 49})}, fillDone},
		"partial with removals":    {[]core.Job{job(core.JobPartial, core.Totals{Removed: 1, Rejected: 49})}, fillDone},
		"queued":                   {[]core.Job{job(core.JobQueued, core.Totals{})}, fillOpen},
		"running":                  {[]core.Job{job(core.JobRunning, core.Totals{})}, fillOpen},
		"failed after a success":   {[]core.Job{job(core.JobFailed, core.Totals{}), job(core.JobSucceeded, core.Totals{})}, fillDone},
		"an organization's":        {[]core.Job{organization}, fillDue},
		"to another index":         {[]core.Job{elsewhere}, fillDue},
		"failed and then repeated": {[]core.Job{job(core.JobRunning, core.Totals{}), job(core.JobFailed, core.Totals{})}, fillOpen},
	} {
		got := fillDue
		for _, j := range tt.jobs {
			got = max(got, fillStateOf(j, "analyses"))
		}
		if got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestFillBackoff: runs that fill nothing are repeated, at growing intervals.
func TestFillBackoff(t *testing.T) {
	t.Parallel()
	var b fillBackoff
	begin := time.Now()
	var at []time.Duration
	for s := range 3 * 3600 {
		if d := time.Duration(s) * time.Second; b.due(begin.Add(d)) {
			at = append(at, d)
		}
	}
	if len(at) != 13 || at[0] != 0 || at[1] != 2*time.Second || at[2] != 6*time.Second || at[12]-at[11] != time.Hour {
		t.Errorf("due at %v", at)
	}
}
