package sqon

import (
	"strconv"
	"strings"
	"time"
)

const (
	// maxMillisDigits is the maximum number of digits before the fraction of a number of milliseconds, also in documents.
	maxMillisDigits = 18
	// maxMillis is the first number with more digits.
	maxMillis = 1e18
)

// millis is a number of milliseconds since 1970 in UTC, with a fraction that is exact to precision.
type millis struct {
	whole     int64
	fraction  time.Duration
	precision time.Duration
}

// readMillis parses a number of milliseconds: an optional minus, digits, and an optional point with any number of digits, which are
// truncated to nanoseconds.
func readMillis(text string) (millis, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if n := len(strings.TrimPrefix(whole, "-")); n == 0 || n > maxMillisDigits || whole[0] == '+' {
		return millis{}, false
	}
	m := millis{precision: time.Millisecond}
	var err error
	if m.whole, err = strconv.ParseInt(whole, 10, 64); err != nil {
		return millis{}, false
	}
	for i := range len(fraction) {
		if !isDigit(fraction[i]) {
			return millis{}, false
		}
		if m.precision > 1 {
			m.precision /= 10
			m.fraction += time.Duration(fraction[i]-'0') * m.precision
		}
	}
	if whole[0] == '-' {
		m.fraction = -m.fraction
	}
	return m, true
}

// covered returns the time range of the number.
func (m millis) covered() (from, to time.Time) {
	from = time.UnixMilli(m.whole).UTC().Add(m.fraction)
	return from, from.Add(m.precision)
}
