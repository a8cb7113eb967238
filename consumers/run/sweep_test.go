package run

import (
	"testing"

	"tutti/internal/core"
)

// TestSweepIsCountedOnce: two processes may end the same job concurrently, and each sweeps; removals count once.
func TestSweepIsCountedOnce(t *testing.T) {
	run := core.OrganizationRun{State: core.JobSucceeded}
	sweepResult{removed: 3}.note(&run)
	sweepResult{removed: 3, guard: &core.JobError{Code: core.JobErrorPruneGuard}}.note(&run)
	if run.Totals.Removed != 3 || run.State != core.JobSucceeded || run.Error != nil || !run.Swept {
		t.Errorf("%+v", run)
	}
}
