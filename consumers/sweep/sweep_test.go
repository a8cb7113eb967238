package sweep

import (
	"testing"

	"tutti/internal/core"
)

// TestSweepIsCountedOnce: two processes may end the same job concurrently, and each sweeps; removals count once.
func TestSweepIsCountedOnce(t *testing.T) {
	run := core.OrganizationRun{State: core.JobSucceeded}
	Result{Removed: 3}.Note(&run)
	Result{Removed: 3, Guard: &core.JobError{Code: core.JobErrorPruneGuard}}.Note(&run)
	if run.Totals.Removed != 3 || run.State != core.JobSucceeded || run.Error != nil || !run.Swept {
		t.Errorf("%+v", run)
	}
}
