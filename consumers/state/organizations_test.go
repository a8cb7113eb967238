package state_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/consumers/state"
	"tutti/internal/core"
)

func organization(name string, as core.JobState, rejected int64, code string) core.OrganizationRun {
	run := core.OrganizationRun{Organization: name, State: as, Totals: core.Totals{Fetched: 10, Rejected: rejected}}
	if code != "" {
		run.Error = &core.JobError{Code: code, Message: "why"}
	}
	return run
}

// TestOutcome: a job has the state that all its organizations have, else it is partial; its error is that of the first that was not read
// completely. An organization with rejected records was.
func TestOutcome(t *testing.T) {
	whole, failed := organization("A", core.JobSucceeded, 0, ""), organization("B", core.JobFailed, 0, "unavailable")
	rejecting := organization("C", core.JobSucceeded, 2, "")
	state.NoteRejected("song", &rejecting)
	cancelled := organization("D", core.JobRunning, 0, "")
	if err := state.Cancel(&cancelled); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		runs         []core.OrganizationRun
		state        core.JobState
		fault        *core.JobError
		read, wholly bool
	}{
		"none":      {nil, core.JobSucceeded, nil, true, true},
		"whole":     {[]core.OrganizationRun{whole, whole}, core.JobSucceeded, nil, true, true},
		"rejecting": {[]core.OrganizationRun{whole, rejecting}, core.JobPartial, nil, true, true},
		"one failed": {
			[]core.OrganizationRun{whole, failed}, core.JobPartial, &core.JobError{Code: "unavailable", Message: "B: why"}, false, false,
		},
		"all failed": {
			[]core.OrganizationRun{failed, failed, failed},
			core.JobFailed,
			&core.JobError{Code: "unavailable", Message: "B: why (and 2 more organizations)"}, false, false,
		},
		"cancelled": {[]core.OrganizationRun{cancelled}, core.JobCancelled, nil, false, false},
	} {
		as, fault := state.Outcome(c.runs)
		if diff := cmp.Diff(c.fault, fault); as != c.state || diff != "" {
			t.Errorf("%s: %s %s", name, as, diff)
		}
		if read, wholly := state.AllRead(c.runs), state.AllReadWhole(c.runs); read != c.read || wholly != c.wholly {
			t.Errorf("%s: read to the end %t, wholly %t", name, read, wholly)
		}
	}
	if rejecting.State != core.JobPartial || rejecting.Error == nil || rejecting.Error.Code != core.JobErrorRecordsRejected {
		t.Errorf("an organization with rejected records: %s, %+v", rejecting.State, rejecting.Error)
	}
	if sum := state.Sum([]core.OrganizationRun{whole, rejecting}); sum.Fetched != 20 || sum.Rejected != 2 {
		t.Errorf("the sum is %+v", sum)
	}
}

// TestPackedIDs: hashes come back sorted, and nothing is stored of none.
func TestPackedIDs(t *testing.T) {
	packed := state.PackIDs([]uint64{1 << 63, 0, 7})
	if got := state.UnpackIDs(packed); !slices.Equal(got, []uint64{0, 7, 1 << 63}) || len(packed) != 24 {
		t.Errorf("%v in %d bytes", got, len(packed))
	}
	if none := state.PackIDs(nil); none != nil || len(state.UnpackIDs(none)) != 0 {
		t.Errorf("of none: %v", none)
	}
}
