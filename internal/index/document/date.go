package document

import (
	"math"
	"time"

	"tutti/internal/base/isodate"
)

// IsDate reports whether a value has Elasticsearch's default format of date: strict_date_optional_time||epoch_millis.
func IsDate(kind Kind, text []byte) bool {
	if kind == KindBoolean {
		return false
	}
	if kind == KindString {
		if _, ok := parseDate(string(text)); ok {
			return true
		}
	}
	_, ok := parseMillis(text)
	return ok
}

// parseDate parses a strict_date_optional_time: yyyy[-MM[-dd['T'[HH[:mm[:ss[.fraction]]]][offset]]]].
func parseDate(text string) (isodate.Date, bool) {
	d, ok := isodate.Parse(text)
	return d, ok && !d.Extended
}

// IsDay reports whether a text is a strict_date_optional_time with year, from 0 on, month and day.
func IsDay(text string) bool {
	_, ok := parseDate(text)
	return ok && len(text) >= len("2006-01-02") && text[0] != '-'
}

// parseMillis parses an epoch_millis: a number with up to six decimal places.
func parseMillis(text []byte) (isodate.Millis, bool) {
	m, ok := isodate.ParseMillis(string(text))
	return m, ok && m.Decimals <= 6
}

// isNanos reports whether a value has Elasticsearch's default format of date_nanos, strict_date_optional_time_nanos||epoch_millis
// with seconds in times, and is within its range: from 1970 to the end of 64-bit nanoseconds.
func isNanos(kind Kind, text []byte) bool {
	if kind == KindBoolean {
		return false
	}
	if kind == KindString || len(text) == 4 { // four digits are a year, also as a number
		if d, ok := parseDate(string(text)); ok {
			from, _ := d.Range()
			return hasSeconds(text) && withinNanos(from)
		}
	}
	m, ok := parseMillis(text)
	from, _ := m.Range()
	return ok && withinNanos(from)
}

// hasSeconds reports whether an ISO date has no time, or a time with seconds.
func hasSeconds(s []byte) bool {
	return len(s) <= len("2006-01-02") || len(s) >= len("2006-01-02T15:04:05") && s[13] == ':' && s[16] == ':'
}

// withinNanos reports whether an instant is within the range of date_nanos.
func withinNanos(at time.Time) bool {
	return !at.Before(time.Unix(0, 0)) && !at.After(time.Unix(0, math.MaxInt64))
}

// digits returns the index after the digits at i.
func digits(text []byte, i int) int {
	for i < len(text) && text[i]-'0' <= 9 {
		i++
	}
	return i
}
