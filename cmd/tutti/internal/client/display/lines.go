package display

import (
	"fmt"
	"math"
	"strings"
	"time"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// ScopeOf returns the repository and organization of a job, or which dead letters it retries.
func ScopeOf(job client.Job) string {
	if job.Scope == core.ScopeRetry {
		return strings.Join(strings.Fields("retry of "+job.Repository+" "+job.Organization+" "+job.Reason+" dead letters"), " ")
	}
	scope := job.Repository
	if job.Organization != "" {
		scope += " / " + job.Organization
	}
	if job.Scope == core.ScopeIDs {
		scope += " (ids)"
	}
	return scope
}

// scopeAndIndex returns ScopeOf and the index that the job writes to.
func scopeAndIndex(job client.Job) string {
	if job.IndexName == "" {
		return ScopeOf(job)
	}
	return ScopeOf(job) + " to " + job.IndexName
}

// ErrorText formats an error, "" for nil.
func ErrorText(e *core.JobError) string {
	if e == nil {
		return ""
	}
	return e.Code + ": " + e.Message
}

// Totals formats the number of fetched records and the other totals that are not zero.
func Totals(t core.Totals) string {
	parts := []string{processed(t) + " fetched"}
	for _, part := range []struct {
		name string
		n    int64
	}{
		{"indexed", t.Indexed},
		{"stale", t.Stale},
		{"removed", t.Removed},
		{"rejected", t.Rejected},
		{"excluded", t.Excluded},
		{"retried", t.Retried},
		{"unchanged", t.Drift.Unchanged},
		{"missing", t.Drift.Missing},
		{"different", t.Drift.Different},
		{"older", t.Drift.Older},
		{"surplus", t.Drift.Surplus},
		{"uncompared", t.Drift.Uncompared},
	} {
		if part.n != 0 {
			parts = append(parts, Count(part.n)+" "+part.name)
		}
	}
	return strings.Join(parts, ", ")
}

// JobTotals formats the totals of a job: those of a retry count dead letters.
func JobTotals(job client.Job) string {
	t := job.Totals
	if job.Scope != core.ScopeRetry {
		return Totals(t)
	}
	text := processed(t) + " dead letters processed, " + Count(t.Retried) + " retried"
	if t.Rejected > 0 {
		text += ", " + Count(t.Rejected) + " cannot be retried"
	}
	return text
}

// processed formats the number of fetched records or processed dead letters and, when known, of expected ones.
func processed(t core.Totals) string {
	if t.Expected <= 0 {
		return Count(t.Fetched)
	}
	return Count(t.Fetched) + " of " + Count(t.Expected)
}

// Rate formats records per second.
func Rate(perSecond float64) string {
	if perSecond > 0 && perSecond < 10 {
		return fmt.Sprintf("%.1f/s", perSecond)
	}
	return Count(int64(math.Round(perSecond))) + "/s"
}

// durationOf returns the duration of a job, zero before its end.
func durationOf(job client.Job) time.Duration {
	if job.StartedAt == nil || job.EndedAt == nil {
		return 0
	}
	return job.EndedAt.Sub(*job.StartedAt)
}

func jobLine(job client.Job) string {
	line := fmt.Sprintf("job %s, %s: %s", job.ID, scopeAndIndex(job), job.State)
	if job.Error != nil {
		line += ", " + ErrorText(job.Error)
	}
	return printable.Line(line)
}

func organizationLine(o client.Organization) string {
	line := o.Organization + ": " + string(o.State)
	if o.State.Final() {
		line += ", " + Totals(o.Totals)
	}
	if o.Error != nil {
		line += ", " + ErrorText(o.Error)
	}
	return printable.Line(line)
}

// pausedLine formats the reason why a job waits, or that it no longer does.
func pausedLine(why string) string {
	if why == "" {
		return "no longer paused"
	}
	return printable.Line("paused: " + why)
}

func lostLine(err error) string { return printable.Line(core.MessageOf(err) + ", retrying") }

// totalsLine formats the job's progress.
func (p *progress) totalsLine() string {
	text := processed(p.job.Totals) + " fetched"
	if p.job.Scope == core.ScopeRetry {
		text = JobTotals(*p.job)
	}
	parts := append([]string{text}, p.rateParts("organizations ended")...)
	return printable.Line(strings.Join(parts, ", "))
}

// rateParts returns rate, remaining time and the number of ended organizations, labelled with ended, when known.
func (p *progress) rateParts(ended string) []string {
	var parts []string
	if p.job.RatePerSecond > 0 {
		parts = append(parts, Rate(p.job.RatePerSecond))
	}
	if eta := p.job.ETASeconds; eta != nil {
		parts = append(parts, Duration(time.Duration(*eta)*time.Second)+" left")
	}
	known := len(p.rows)
	if p.job != nil { // rows has only the first ones
		known = max(known, p.job.OrganizationsTotal)
	}
	if known > 1 {
		parts = append(parts, fmt.Sprintf("%d of %d %s", p.ended(), known, ended))
	}
	return parts
}
