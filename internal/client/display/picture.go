package display

import (
	"fmt"
	"io"
	"strings"

	"tutti/internal/client"
	"tutti/internal/core"
)

// What a picture is made of.
const (
	minBar, maxBar = 8, 40
	// keptRows are the rows of a terminal that are not for organizations: the job, the total, and the cursor's own.
	keptRows = 3

	// Sequences of ECMA-48 and of DEC's terminals. A line that is longer than expected must not wrap: the picture would
	// then be higher than the way back over it.
	sequenceUp     = "\x1b[%dA"
	sequenceEnd    = "\x1b[K"
	sequenceBelow  = "\x1b[J"
	sequenceNoWrap = "\x1b[?7l"
	sequenceWrap   = "\x1b[?7h"
	sequencePlain  = "\x1b[0m"
)

// draw puts the picture over the one before.
func (p *progress) draw() {
	columns, rows := p.screen.Size()
	lines := p.picture(columns, rows, p.screen.Colour())
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

// picture returns the lines for a terminal: the job, a bar for each organization as far as there is room, those that run
// first, and the total.
func (p *progress) picture(columns, rows int, colour bool) []string {
	room := rows - keptRows
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
		summary = others(shown[room-1:])
		shown = shown[:room-1]
	}
	names := make([]string, len(shown))
	name, counts := len("total"), Width(counted(p.job.Totals))
	for i, row := range shown {
		names[i] = cut(Printable(row.Organization), columns/3)
		name, counts = max(name, Width(names[i])), max(counts, Width(counted(row.Totals)))
	}
	layout := layoutOf(columns, name, counts)

	lines := []string{cutText(jobLine(*p.job), columns)}
	for i, row := range shown {
		tail := string(row.State)
		if row.Error != nil {
			tail += ", " + Printable(Fault(row.Error))
		}
		lines = append(lines, layout.line(names[i], row.Totals, row.State, cutText(tail, layout.tail), colour))
	}
	if summary != "" {
		lines = append(lines, cutText("  "+summary, columns))
	}
	lines = append(lines, layout.line("total", p.job.Totals, p.job.State, fitting(p.speed("ended"), layout.tail), false))
	if p.job.Paused != "" {
		lines = append(lines, cutText(pausedLine(p.job.Paused), columns))
	}
	if p.lost != nil {
		lines = append(lines, cutText(lostLine(p.lost), columns))
	}
	return lines
}

// others sums up the organizations that there is no room for.
func others(rows []client.Organization) string {
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

// layout is the widths of a picture's columns; a column whose width is 0 is left out.
type layout struct{ name, bar, counts, tail int }

// layoutOf distributes the columns of a terminal. Numbers are never cut: names are shortened for them, and where there is no
// room for a bar, for two characters of a name, or for the counts, those are left out.
func layoutOf(columns, name, counts int) layout {
	const gap, minName = len(columnGap), 2
	if counts > columns {
		counts = 0
	}
	if name = min(name, columns-counts-2*gap); name < minName {
		name = 0
	}
	// Fixed for a width, so that bars do not change with what stands behind them.
	const gaps = 4*gap + len("[]")
	tail := max(len("succeeded"), columns*2/5)
	bar := min(columns-gaps-tail-name-counts, maxBar)
	if bar < minBar {
		bar = 0
	}
	l := layout{name: name, bar: bar, counts: counts}
	l.tail = max(0, columns-Width(l.head("", core.Totals{}, "")))
	return l
}

// head draws a line up to its tail, with the gap before that.
func (l layout) head(name string, t core.Totals, state core.JobState) string {
	var line string
	if l.name > 0 {
		line = columnGap + pad(cut(name, l.name), l.name) + columnGap
	}
	if l.bar > 0 {
		filled := filledOf(t, state, l.bar)
		line += "[" + strings.Repeat("█", filled) + strings.Repeat("·", l.bar-filled) + "]" + columnGap
	}
	if l.counts > 0 {
		numbers := counted(t)
		line += strings.Repeat(" ", max(0, l.counts-Width(numbers))) + numbers + columnGap
	}
	return line
}

// line draws one bar. tail must fit layout.tail.
func (l layout) line(name string, t core.Totals, state core.JobState, tail string, colour bool) string {
	line := l.head(name, t, state)
	if !colour || colourOf(state) == "" || tail == "" {
		return strings.TrimRight(line+tail, " ")
	}
	return line + colourOf(state) + tail + sequencePlain
}

// filledOf returns how much of a bar is full; only what has succeeded fills all of it without records.
func filledOf(t core.Totals, state core.JobState, bar int) int {
	switch {
	case t.Expected > 0:
		return int(min(max(float64(t.Fetched)/float64(t.Expected), 0), 1) * float64(bar))
	case state == core.JobSucceeded:
		return bar
	default:
		return 0
	}
}

// counted writes the numbers beside a bar.
func counted(t core.Totals) string {
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
