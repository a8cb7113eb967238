package housekeeping

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// jobsFake holds jobs, the newest first, with their organizations.
type jobsFake struct {
	jobs []core.Job
	runs map[string][]core.OrganizationRun
	read int
}

func (f *jobsFake) List(context.Context, core.JobFilter) ([]core.Job, string, error) {
	return f.jobs, "", nil
}

func (f *jobsFake) Sum(_ context.Context, id string) (jobsum.Sum, error) {
	f.read++
	var sum jobsum.Sum
	for i := range f.runs[id] {
		sum.Add(&f.runs[id][i])
	}
	return sum, nil
}

// TestJobProgress: the ratio is that of all organizations of the newest job that has started, and absent until all of
// them were counted.
func TestJobProgress(t *testing.T) {
	t.Parallel()
	two := 2
	job := func(id, repository string, state core.JobState, totals core.Totals) core.Job {
		return core.Job{ID: id, Repository: repository, State: state, ExpectedOrganizations: &two, Totals: totals}
	}
	run := func(fetched, expected int64) core.OrganizationRun {
		r := core.OrganizationRun{State: core.JobRunning, Totals: core.Totals{Fetched: fetched}}
		if expected >= 0 {
			r.Expect(expected)
		}
		return r
	}
	f := &jobsFake{runs: map[string][]core.OrganizationRun{}}
	p := newJobProgress()
	for _, step := range []struct {
		name string
		jobs []core.Job
		runs map[string][]core.OrganizationRun
		want string
		read int
	}{
		{"no job", nil, nil, "", 0},
		{
			"one of two organizations is listed",
			[]core.Job{job("a", "x", core.JobRunning, core.Totals{})},
			map[string][]core.OrganizationRun{"a": {run(10, 10)}},
			"", 1,
		},
		{
			"one of two is counted",
			[]core.Job{job("a", "x", core.JobRunning, core.Totals{})},
			map[string][]core.OrganizationRun{"a": {run(10, 10), run(0, -1)}},
			"", 1,
		},
		{
			"both are counted, and a newer job waits",
			[]core.Job{job("b", "x", core.JobQueued, core.Totals{}), job("a", "x", core.JobRunning, core.Totals{})},
			map[string][]core.OrganizationRun{"a": {run(10, 10), run(5, 50)}},
			`{repository="x"} 0.25`, 1,
		},
		{
			"the job has failed",
			[]core.Job{job("b", "x", core.JobQueued, core.Totals{}), job("a", "x", core.JobFailed, core.Totals{Fetched: 30, Expected: 60})},
			map[string][]core.OrganizationRun{"a": {run(10, 10), run(20, 50)}},
			`{repository="x"} 0.5`, 1,
		},
		{
			"a job that has ended is read once",
			[]core.Job{job("b", "x", core.JobQueued, core.Totals{}), job("a", "x", core.JobFailed, core.Totals{Fetched: 30, Expected: 60})},
			map[string][]core.OrganizationRun{"a": {run(10, 10), run(20, 50)}},
			`{repository="x"} 0.5`, 0,
		},
		{
			"the next job has begun, dead letters are retried, and another repository is empty",
			[]core.Job{
				{ID: "d", Repository: "x", Scope: core.ScopeRetry, State: core.JobRunning, ExpectedOrganizations: new(int)},
				job("c", "y", core.JobRunning, core.Totals{}), job("b", "x", core.JobRunning, core.Totals{}),
				job("a", "x", core.JobFailed, core.Totals{Fetched: 30, Expected: 60}),
			},
			map[string][]core.OrganizationRun{"b": {run(0, -1)}, "c": {run(0, 0), run(0, 0)}},
			`{repository="y"} 1`, 2,
		},
	} {
		f.jobs, f.runs, f.read = step.jobs, step.runs, 0
		if err := p.measure(t.Context(), f, f); err != nil {
			t.Fatal(err)
		}
		want := ""
		if step.want != "" {
			want = "# HELP tutti_job_progress_ratio " + progressHelp + "\n# TYPE tutti_job_progress_ratio gauge\ntutti_job_progress_ratio" + step.want + "\n"
		}
		if err := testutil.CollectAndCompare(p.ratio, strings.NewReader(want)); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if f.read != step.read {
			t.Errorf("%s: the organizations of %d jobs were read, want %d", step.name, f.read, step.read)
		}
	}
}
