package mapping

import (
	"math"
	"time"
)

// isNanos reports whether a value has Elasticsearch's default format of date_nanos, strict_date_optional_time_nanos||epoch_millis
// with seconds in times, and is within its range: from 1970 to the end of 64-bit nanoseconds.
func isNanos(kind Kind, text []byte) bool {
	switch {
	case kind == KindBoolean:
		return false
	case (kind == KindString || len(text) == 4) && isISODate(text, 0): // four digits are a year, also as a number
		return hasSeconds(text) && isoWithinNanos(text)
	default:
		return isMillis(text) && millisWithinNanos(text)
	}
}

// hasSeconds reports whether an ISO date has no time, or a time with seconds.
func hasSeconds(s []byte) bool {
	return len(s) <= len("2006-01-02") || len(s) >= len("2006-01-02T15:04:05") && s[13] == ':' && s[16] == ':'
}

// isoWithinNanos reports whether an ISO date is within the range of date_nanos.
func isoWithinNanos(s []byte) bool {
	switch year := number(s[:4]); {
	case year > 1970 && year < 2262:
		return true
	case year < 1969 || year > 2262:
		return false
	}
	at := instant(s)
	return !at.Before(time.Unix(0, 0)) && !at.After(time.Unix(0, math.MaxInt64))
}

// instant returns the first instant of an ISO date that has no time, or a time with seconds.
func instant(s []byte) time.Time {
	at := [...]int{0, 1, 1, 0, 0, 0}
	for i, from := range [...]int{0, 5, 8, 11, 14, 17} {
		if to := max(from+2, 4); to <= len(s) {
			at[i] = number(s[from:to])
		}
	}
	nanos, rest := 0, s[min(len(s), len("2006-01-02T15:04:05")):]
	if len(rest) > 0 && (rest[0] == '.' || rest[0] == ',') {
		end := digits(rest, 1)
		nanos = fraction(rest[1:end], 9)
		rest = rest[end:]
	}
	offset := 0
	if len(rest) > 2 {
		offset = 60 * number(rest[1:3])
		if len(rest) > 3 {
			offset += number(rest[len(rest)-2:])
		}
		if rest[0] == '-' {
			offset = -offset
		}
	}
	return time.Date(at[0], time.Month(at[1]), at[2], at[3], at[4]-offset, at[5], nanos, time.UTC)
}

// millisWithinNanos reports whether a number of milliseconds is within the range of date_nanos.
func millisWithinNanos(text []byte) bool {
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	end := digits(text, 0)
	whole, part := number(text[:end]), 0
	if end+1 < len(text) {
		part = fraction(text[end+1:], 6)
	}
	const last = math.MaxInt64 / 1_000_000
	switch {
	case negative:
		return whole == 0 && part == 0
	case whole == last:
		return part <= math.MaxInt64%1_000_000
	default:
		return whole < last
	}
}

// fraction returns decimal places, at most places of them, as an integer of that many digits.
func fraction(digits []byte, places int) int {
	n := number(digits)
	for range places - len(digits) {
		n *= 10
	}
	return n
}
