package display

import (
	"fmt"
	"io"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// maxSummaryErrors bounds the failed organizations that a summary lists.
const maxSummaryErrors = 20

// Summary writes the result of a job in a few lines: its state, totals, errors, and commands for details.
func Summary(w io.Writer, job client.Job) error {
	lines := []string{fmt.Sprintf("%s: job %s, %s", job.State, job.ID, scopeAndIndex(job))}
	if d := durationOf(job); d > 0 {
		lines[0] += " in " + Duration(d)
	}
	lines = append(lines, JobTotals(job))
	if job.Error != nil {
		lines = append(lines, ErrorText(job.Error))
	}
	if job.Note != "" {
		lines = append(lines, job.Note)
	}
	left := 0
	for _, o := range job.Organizations {
		if o.State == core.JobSucceeded || o.Error == nil {
			continue
		}
		if left++; left <= maxSummaryErrors {
			lines = append(lines, fmt.Sprintf("%s: %s, %s", o.Organization, o.State, ErrorText(o.Error)))
		}
	}
	if states := job.OrganizationStates; states != nil { // job.Organizations has only the first ones
		left = max(left, states[core.JobFailed]+states[core.JobPartial])
	}
	if left > maxSummaryErrors {
		lines = append(lines, fmt.Sprintf("and %d more organizations: tutti jobs show %s", left-maxSummaryErrors, job.ID))
	}
	if job.Totals.Rejected > 0 && job.Scope != core.ScopeRetry {
		lines = append(lines, "rejected records: tutti dead-letters list --repository "+job.Repository)
	}
	for i, line := range lines {
		if i > 0 {
			line = "  " + line
		}
		if _, err := fmt.Fprintln(w, printable.Line(line)); err != nil {
			return err
		}
	}
	return nil
}
