package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// maxDays is the largest expiry in days: a hundred years, which no time.Time overflows.
	maxDays = 36_525
	// maxYear is the last year that time.Time encodes as JSON.
	maxYear = 9999
)

// parseExpiry parses the time at which a key expires: a number of days such as 90d, a Go duration such as 12h, a date (its start
// in UTC) or an RFC 3339 time. For "" it returns the zero time, which means never. Its error names the flag.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	invalid := func(problem string) (time.Time, error) {
		return time.Time{}, fmt.Errorf("--expires %s", problem)
	}
	end, ok := parseExpiryTime(text, now)
	switch {
	case !ok:
		return invalid(fmt.Sprintf("takes a time such as 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z, not %q", text))
	case !end.Truncate(time.Second).After(now):
		return invalid(fmt.Sprintf("is %s, which is in the past", text))
	case end.UTC().Year() > maxYear:
		return invalid(fmt.Sprintf("is %s, which in UTC is after the year %d", text, maxYear))
	default:
		return end.UTC().Truncate(time.Second), nil
	}
}

func parseExpiryTime(text string, now time.Time) (end time.Time, ok bool) {
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
