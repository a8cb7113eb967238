package check

import (
	"fmt"
	"io"
	"strings"

	"tutti/internal/client/display"
	"tutti/internal/config"
	"tutti/internal/core"
)

// Status is how a finding is meant.
type Status string

// Statuses of a finding.
const (
	// StatusOK: as it should be.
	StatusOK Status = "ok"
	// StatusWarn: tutti starts, but somebody should look at it.
	StatusWarn Status = "warn"
	// StatusFail: tutti does not start, or does not do its work, until it is mended.
	StatusFail Status = "fail"
)

// Finding is what was found of one subject. No text of it holds a secret.
type Finding struct {
	// Subject is what was looked at, such as "queue" or "repository song.ca".
	Subject string `json:"subject"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	// Hint says how to mend it, empty when nothing is to be done or nobody knows.
	Hint string `json:"hint,omitempty"`
}

// Report is everything that was found, in the order of the configuration.
type Report struct {
	// OK tells that nothing failed.
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
}

func newReport(findings []Finding) Report {
	r := Report{OK: true, Findings: findings}
	for _, f := range findings {
		r.OK = r.OK && f.Status != StatusFail
	}
	return r
}

// Refused gives the Report of a configuration that config.Load refused: each of its faults.
func Refused(err error) Report {
	var findings []Finding
	for _, fault := range config.Errors(err) {
		findings = append(findings, Finding{subjectConfiguration, StatusFail, fault.Message, fault.Hint})
	}
	return newReport(findings)
}

// Failed gives how many findings failed.
func (r Report) Failed() int {
	failed := 0
	for _, f := range r.Findings {
		if f.Status == StatusFail {
			failed++
		}
	}
	return failed
}

// WriteText writes the Report for people: a line for each finding, and one for its hint.
func (r Report) WriteText(w io.Writer) error {
	width := 0
	for _, f := range r.Findings {
		width = max(width, display.Width(display.Printable(f.Subject)))
	}
	var text strings.Builder
	for _, f := range r.Findings {
		subject := display.Printable(f.Subject)
		gap := strings.Repeat(" ", width-display.Width(subject))
		fmt.Fprintf(&text, "%-4s  %s%s  %s\n", f.Status, subject, gap, display.Printable(f.Message))
		if f.Hint != "" {
			fmt.Fprintf(&text, "%*s-> %s\n", width+8, "", display.Printable(f.Hint))
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return core.WrapError(core.CodeInternal, "writing the report", err)
	}
	return nil
}
