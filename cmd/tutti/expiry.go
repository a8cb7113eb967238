package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// maxDays is how far ahead an expiry in days may lie: a hundred years, far from where times end.
	maxDays = 36_525
	// maxYear is the last one that a time in JSON can have.
	maxYear = 9999
)

// expiry reads when a key ends: a number of days such as 90d, a Go duration such as 12h, a date, at whose start in UTC it
// ends, or an RFC 3339 time. "" returns the zero time, for never. The message of its error names the flag.
func expiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	refused := func(fault string) (time.Time, error) {
		return time.Time{}, fmt.Errorf("--expires %s", fault)
	}
	end, ok := readExpiry(text, now)
	switch {
	case !ok:
		return refused(fmt.Sprintf("takes a time such as 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z, not %q", text))
	case !end.Truncate(time.Second).After(now):
		return refused(fmt.Sprintf("is %s, which has passed", text))
	case end.UTC().Year() > maxYear:
		return refused(fmt.Sprintf("is %s, which in UTC is after the year %d", text, maxYear))
	default:
		return end.UTC().Truncate(time.Second), nil
	}
}

func readExpiry(text string, now time.Time) (end time.Time, ok bool) {
	if days, cut := strings.CutSuffix(text, "d"); cut {
		n, err := strconv.Atoi(days)
		return now.AddDate(0, 0, n), err == nil && n >= 0 && n <= maxDays
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), d >= 0
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if end, err := time.Parse(layout, text); err == nil {
			return end, true
		}
	}
	return time.Time{}, false
}
