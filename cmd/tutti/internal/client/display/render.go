package display

import (
	"fmt"
	"io"
	"strings"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/base/printable"
	"tutti/internal/core"
)

// Dimensions and control sequences of the progress view.
const (
	minBar, maxBar = 8, 40
	// reservedRows are the rows of a terminal that are not for organizations: the job, the total and the cursor.
	reservedRows = 3

	// Sequences of ECMA-48 and of DEC's terminals. Lines must not wrap: the view would have more rows than the cursor moves up.
	sequenceUp     = "\x1b[%dA"
	sequenceEnd    = "\x1b[K"
	sequenceBelow  = "\x1b[J"
	sequenceNoWrap = "\x1b[?7l"
	sequenceWrap   = "\x1b[?7h"
	sequencePlain  = "\x1b[0m"
)

// draw draws the view over the previous one.
func (p *progress) draw() {
	columns, rows := p.screen.Size()
	lines := p.render(columns, rows, p.screen.Colour())
	var b strings.Builder
	b.WriteString(sequenceNoWrap + "\r")
	if p.drawn > 0 {
		fmt.Fprintf(&b, sequenceUp, p.drawn)
	}
	for _, line := range lines {
		b.WriteString(line + sequenceEnd + "\n")
	}
	b.WriteString(sequenceBelow + sequenceWrap)
	p.drawn = len(lines)
	_, p.err = io.WriteString(p.out, b.String())
}

// render returns the lines of the view: the job, a bar for each organization that fits, running ones first, and the total.
func (p *progress) render(columns, rows int, colour bool) []string {
	room := rows - reservedRows
	if p.lost != nil {
		room--
	}
	if p.job.Paused != "" {
		room--
	}
	room = max(room, 1)
	shown, summary := p.sorted(false), ""
	if len(shown) > room {
		shown = p.sorted(true)
		summary = summarizeRest(shown[room-1:])
		shown = shown[:room-1]
	}
	names := make([]string, len(shown))
	name, counts := len("total"), printable.Width(countsText(p.job.Totals))
	for i, row := range shown {
		names[i] = truncate(printable.Line(row.Organization), columns/3)
		name, counts = max(name, printable.Width(names[i])), max(counts, printable.Width(countsText(row.Totals)))
	}
	layout := layoutOf(columns, name, counts)

	lines := []string{truncateText(jobLine(*p.job), columns)}
	for i, row := range shown {
		tail := string(row.State)
		if row.Error != nil {
			tail += ", " + printable.Line(ErrorText(row.Error))
		}
		lines = append(lines, layout.line(names[i], row.Totals, row.State, truncateText(tail, layout.tail), colour))
	}
	if summary != "" {
		lines = append(lines, truncateText("  "+summary, columns))
	}
	lines = append(lines, layout.line("total", p.job.Totals, p.job.State, joinFitting(p.rateParts("ended"), layout.tail), false))
	if p.job.Paused != "" {
		lines = append(lines, truncateText(pausedLine(p.job.Paused), columns))
	}
	if p.lost != nil {
		lines = append(lines, truncateText(lostLine(p.lost), columns))
	}
	return lines
}

// summarizeRest summarizes the organizations that do not fit.
func summarizeRest(rows []client.Organization) string {
	counts := map[core.JobState]int{}
	for _, row := range rows {
		counts[row.State]++
	}
	var parts []string
	for _, state := range core.JobStates() {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	return fmt.Sprintf("and %d more: %s", len(rows), strings.Join(parts, ", "))
}

// layout holds the widths of the view's columns; a column of width 0 is omitted.
type layout struct{ name, bar, counts, tail int }

// layoutOf distributes the columns of a terminal. Numbers are never truncated: names are shortened first, and the bar, a name of less
// than two characters, or the counts are omitted when they do not fit.
func layoutOf(columns, name, counts int) layout {
	const gap, minName = len(columnGap), 2
	if counts > columns {
		counts = 0
	}
	if name = min(name, columns-counts-2*gap); name < minName {
		name = 0
	}
	// Fixed for a width, so that bars do not change with the text after them.
	const gaps = 4*gap + len("[]")
	tail := max(len("succeeded"), columns*2/5)
	bar := min(columns-gaps-tail-name-counts, maxBar)
	if bar < minBar {
		bar = 0
	}
	l := layout{name: name, bar: bar, counts: counts}
	l.tail = max(0, columns-printable.Width(l.head("", core.Totals{}, "")))
	return l
}

// head formats a line up to its tail, including the gap.
func (l layout) head(name string, t core.Totals, state core.JobState) string {
	var line string
	if l.name > 0 {
		line = columnGap + pad(truncate(name, l.name), l.name) + columnGap
	}
	if l.bar > 0 {
		filled := filledCells(t, state, l.bar)
		line += "[" + strings.Repeat("█", filled) + strings.Repeat("·", l.bar-filled) + "]" + columnGap
	}
	if l.counts > 0 {
		numbers := countsText(t)
		line += strings.Repeat(" ", max(0, l.counts-printable.Width(numbers))) + numbers + columnGap
	}
	return line
}

// line formats one line. tail must fit layout.tail.
func (l layout) line(name string, t core.Totals, state core.JobState, tail string, colour bool) string {
	line := l.head(name, t, state)
	if !colour || colourOf(state) == "" || tail == "" {
		return strings.TrimRight(line+tail, " ")
	}
	return line + colourOf(state) + tail + sequencePlain
}

// filledCells returns the number of filled cells of a bar; without a known number of records it is full only after success.
func filledCells(t core.Totals, state core.JobState, bar int) int {
	switch {
	case t.Expected > 0:
		return int(min(max(float64(t.Fetched)/float64(t.Expected), 0), 1) * float64(bar))
	case state == core.JobSucceeded:
		return bar
	default:
		return 0
	}
}

// countsText formats the numbers next to a bar.
func countsText(t core.Totals) string {
	if t.Expected <= 0 {
		return Count(t.Fetched)
	}
	return Count(t.Fetched) + "/" + Count(t.Expected)
}

func colourOf(state core.JobState) string {
	switch state {
	case core.JobSucceeded:
		return "\x1b[32m"
	case core.JobPartial:
		return "\x1b[33m"
	case core.JobFailed, core.JobCancelled:
		return "\x1b[31m"
	default:
		return ""
	}
}
