package check

import (
	"fmt"
	"io"
	"strings"

	"tutti/internal/base/printable"
	"tutti/internal/base/setting"
	"tutti/internal/core"
)

// Status is the severity of a finding.
type Status string

// Statuses of a finding.
const (
	// StatusOK means that there is no problem.
	StatusOK Status = "ok"
	// StatusWarn means that tutti starts, but the finding should be reviewed.
	StatusWarn Status = "warn"
	// StatusFail means that tutti does not start or does not work until this is fixed.
	StatusFail Status = "fail"
)

// Finding is one result of a check. Its texts contain no secrets.
type Finding struct {
	// Subject is what was checked, such as "queue" or "repository song.ca".
	Subject string `json:"subject"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	// Hint says how to fix it. It is empty when there is nothing to do or no known fix.
	Hint string `json:"hint,omitempty"`
}

// Report is all findings, in the order of the configuration.
type Report struct {
	// OK reports that no finding failed.
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
}

// NewReport returns the Report with findings.
func NewReport(findings []Finding) Report {
	r := Report{OK: true, Findings: findings}
	for _, f := range findings {
		r.OK = r.OK && f.Status != StatusFail
	}
	return r
}

// InvalidConfiguration returns the Report for an error of config.Load, with a finding for each problem.
func InvalidConfiguration(err error) Report {
	var findings []Finding
	for _, fault := range setting.Errors(err) {
		findings = append(findings, Finding{subjectConfiguration, StatusFail, fault.Message, fault.Hint})
	}
	return NewReport(findings)
}

// Failed returns how many findings failed.
func (r Report) Failed() int {
	failed := 0
	for _, f := range r.Findings {
		if f.Status == StatusFail {
			failed++
		}
	}
	return failed
}

// WriteText writes the Report as text: a line for each finding, and one for its hint.
func (r Report) WriteText(w io.Writer) error {
	width := 0
	for _, f := range r.Findings {
		width = max(width, printable.Width(printable.Line(f.Subject)))
	}
	var text strings.Builder
	for _, f := range r.Findings {
		subject := printable.Line(f.Subject)
		gap := strings.Repeat(" ", width-printable.Width(subject))
		fmt.Fprintf(&text, "%-4s  %s%s  %s\n", f.Status, subject, gap, printable.Line(f.Message))
		if f.Hint != "" {
			fmt.Fprintf(&text, "%*s-> %s\n", width+8, "", printable.Line(f.Hint))
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return core.WrapError(core.CodeInternal, "writing the report", err)
	}
	return nil
}
