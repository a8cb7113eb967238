package display

import (
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"tutti/internal/base/printable"
)

// truncate shortens a printable s to columns, with an ellipsis when it was truncated.
func truncate(s string, columns int) string {
	if columns <= 0 {
		return ""
	}
	return text.Snip(s, columns, "…")
}

// truncateText is like truncate for text with numbers: a word with a digit is complete or omitted.
func truncateText(s string, columns int) string {
	short := truncate(s, columns)
	kept, ok := strings.CutSuffix(short, "…")
	if short == s || !ok {
		return short
	}
	word := strings.LastIndexByte(kept, ' ') + 1
	if strings.ContainsAny(kept[word:], "0123456789") {
		kept = kept[:word]
	}
	return kept + "…"
}

// joinFitting joins the parts that fit completely into columns.
func joinFitting(parts []string, columns int) string {
	var joined string
	for _, part := range parts {
		if joined != "" {
			part = joined + ", " + part
		}
		if printable.Width(part) <= columns {
			joined = part
		}
	}
	return joined
}

// pad pads s with spaces to columns.
func pad(s string, columns int) string { return text.Pad(s, columns, ' ') }

// Count formats a number with thousands separators.
func Count(n int64) string {
	if n < 0 {
		return "-" + Count(-n)
	}
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Time formats a time in the local zone (ISO 8601), "-" for none.
func Time(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.RFC3339)
}

// Duration formats a duration with at most two units, and milliseconds only below ten seconds.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	default:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
}
