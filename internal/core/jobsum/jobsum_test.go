package jobsum_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// run returns an organization in a state with a number of indexed records; its expected records are known if counted is set.
func run(name string, state core.JobState, indexed int64, counted bool) *core.OrganizationRun {
	o := &core.OrganizationRun{Organization: name, State: state, Totals: core.Totals{Indexed: indexed}}
	if counted {
		o.LastPage = new(int)
	}
	return o
}

func TestSum(t *testing.T) {
	moved := run("m", core.JobFailed, 100, true)
	moved.Moved = true
	var first, second, all jobsum.Sum
	for _, o := range []*core.OrganizationRun{run("a", core.JobRunning, 1, false), run("b", core.JobSucceeded, 20, true), moved} {
		first.Add(o)
	}
	second.Add(run("c", core.JobRunning, 300, true))
	second.Add(run("d", core.JobPaused, 4000, true))
	all.AddSum(first)
	all.AddSum(second)
	want := jobsum.Sum{
		Totals: core.Totals{Indexed: 4321}, Known: 4, Counted: 3,
		States: map[core.JobState]int{core.JobRunning: 2, core.JobSucceeded: 1, core.JobPaused: 1},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	if got := all.Open(); got != 3 {
		t.Errorf("%d organizations have not ended, want 3", got)
	}
}

func TestTotalsOf(t *testing.T) {
	sum := func(organizations ...*core.OrganizationRun) (s jobsum.Sum) {
		for _, o := range organizations {
			s.Add(o)
		}
		return s
	}
	two := 2
	listed := core.Job{State: core.JobRunning, Totals: core.Totals{Indexed: 7}, ExpectedOrganizations: &two}
	ended, unlisted := listed, listed
	ended.State, unlisted.ExpectedOrganizations = core.JobPartial, nil
	both := sum(run("a", core.JobRunning, 10, true), run("b", core.JobQueued, 1, true))
	for name, test := range map[string]struct {
		sum     jobsum.Sum
		job     core.Job
		indexed int64
		counted bool
	}{
		"all counted":  {both, listed, 11, true},
		"ended":        {both, ended, 7, true},
		"not listed":   {both, unlisted, 11, false},
		"one is known": {sum(run("a", core.JobRunning, 10, true)), listed, 10, false},
		"one uncounted": {
			sum(run("a", core.JobRunning, 10, true), run("b", core.JobQueued, 1, false)), listed, 11, false,
		},
		"none is known": {jobsum.Sum{}, listed, 7, false},
	} {
		totals, counted := test.sum.TotalsOf(&test.job)
		if totals.Indexed != test.indexed || counted != test.counted {
			t.Errorf("%s: %d, counted %t; want %d, %t", name, totals.Indexed, counted, test.indexed, test.counted)
		}
	}
}

// TestOrder: every state has its own place, and organizations of one state are sorted by name.
func TestOrder(t *testing.T) {
	states := jobsum.States()
	if got, want := slices.Sorted(slices.Values(states)), slices.Sorted(slices.Values(core.JobStates())); !slices.Equal(got, want) {
		t.Errorf("the states are %v, want %v", got, want)
	}
	for i, state := range states {
		if got := jobsum.Rank(state); got != i {
			t.Errorf("%s is at %d, want %d", state, got, i)
		}
	}
	if got := jobsum.Rank("unknown"); got != len(states) {
		t.Errorf("an unknown state is at %d", got)
	}
	runs := []*core.OrganizationRun{
		run("a", core.JobSucceeded, 0, true), run("d", core.JobFailed, 0, true), run("b", core.JobRunning, 0, true), run("c", core.JobFailed, 0, true),
	}
	slices.SortFunc(runs, jobsum.Compare)
	names := ""
	for _, o := range runs {
		names += o.Organization
	}
	if names != "cdba" {
		t.Errorf("the order is %s, want cdba", names)
	}
}
