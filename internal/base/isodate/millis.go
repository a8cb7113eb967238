package isodate

import "time"

const (
	// maxMillisDigits is the maximum number of digits before the fraction of a number of milliseconds.
	maxMillisDigits = 18
	// MaxMillis is the first number with more digits.
	MaxMillis = 1e18
)

// Millis is a number of milliseconds since 1970 in UTC, with a fraction. precision is the unit of its last digit.
type Millis struct {
	// Decimals is the number of decimal places.
	Decimals            int
	whole               int64
	fraction, precision time.Duration
}

// ParseMillis parses a whole text as a number of milliseconds: an optional minus, digits, and an optional point with any number of
// digits, which are truncated to nanoseconds.
func ParseMillis(text string) (m Millis, ok bool) {
	sign := int64(1)
	if len(text) > 0 && text[0] == '-' {
		sign, text = -1, text[1:]
	}
	n := 0
	for ; n < len(text) && isDigit(text[n]); n++ {
		if n == maxMillisDigits {
			return Millis{}, false
		}
		m.whole = m.whole*10 + int64(text[n]-'0')
	}
	if n == 0 || n < len(text) && text[n] != '.' {
		return Millis{}, false
	}
	m.precision = time.Millisecond
	for i := n + 1; i < len(text); i++ {
		if !isDigit(text[i]) {
			return Millis{}, false
		}
		if m.precision > 1 {
			m.precision /= 10
			m.fraction += time.Duration(text[i]-'0') * m.precision
		}
		m.Decimals++
	}
	m.whole, m.fraction = sign*m.whole, time.Duration(sign)*m.fraction
	return m, true
}

// Range returns the time range of the number in UTC.
func (m Millis) Range() (from, to time.Time) {
	from = time.UnixMilli(m.whole).UTC().Add(m.fraction)
	return from, from.Add(m.precision)
}

// Time returns the start of a date of Parse, or of a number of ParseMillis.
func Time(text string) (at time.Time, ok bool) {
	if date, ok := Parse(text); ok {
		from, _ := date.Range()
		return from, true
	}
	millis, ok := ParseMillis(text)
	from, _ := millis.Range()
	return from, ok
}
