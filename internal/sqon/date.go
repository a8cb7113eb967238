package sqon

import (
	"math"
	"strconv"
	"time"

	"tutti/internal/core"
)

// maxMillis is how far from 1970 a date can be, in milliseconds: what a date of JavaScript can be.
const maxMillis = 8.64e15

// ParseDate reads an ISO 8601 date: a year ("2024"), a month ("2024-03"), a day ("2024-03-05"), or a day and a time of
// hours and minutes with optional seconds, fraction of up to nine digits and offset ("2024-03-05T10:20:30.5+01:00"; Z, ±hh,
// ±hhmm, ±hh:mm). Without an offset it is UTC. It gives the time that the text covers in UTC, from its first instant to
// the first instant behind it: a year for a year, a second for a time with seconds, a millisecond for three digits of
// fraction. So x is at "2024-03" when from ≤ x < to, after it when x ≥ to, and not after it when x < to.
//
// Every error is of CodeInvalid.
func ParseDate(text string) (from, to time.Time, err error) {
	d := dateReader{text: text}
	if !d.read() {
		return time.Time{}, time.Time{}, core.NewError(core.CodeInvalid, excerpt(text)+" is no ISO 8601 date")
	}
	from, to = d.covered()
	return from, to, nil
}

// Date gives the time that v covers as a date: that of ParseDate for a string, and for a number the millisecond that it
// counts from 1970 in UTC. Every error is of CodeInvalid.
func (v Value) Date() (from, to time.Time, err error) {
	switch v.Kind {
	case String:
		return ParseDate(v.Text)
	case Number:
		ms, err := strconv.ParseFloat(v.Text, 64)
		if err != nil || ms != math.Trunc(ms) || math.Abs(ms) > maxMillis {
			return time.Time{}, time.Time{}, core.NewError(core.CodeInvalid, excerpt(v.Text)+" is no date in milliseconds")
		}
		from = time.UnixMilli(int64(ms)).UTC()
		return from, from.Add(time.Millisecond), nil
	default:
		return time.Time{}, time.Time{}, core.NewError(core.CodeInvalid, v.Text+" is no date")
	}
}

// isDate tells whether ParseDate reads a text, without working out what it covers.
func isDate(text string) bool {
	d := dateReader{text: text}
	return d.read()
}

// dateReader takes a date apart from its front.
type dateReader struct {
	// text is what has not been read.
	text string
	// month and day are 0 when the date has none.
	year, month, day int
	// clock is the time of day in UTC, exact to precision, which is 0 when the date has no time.
	clock, precision time.Duration
}

// read tells whether the whole text is a date.
func (d *dateReader) read() bool {
	return d.readDay() && d.text == ""
}

func (d *dateReader) readDay() bool {
	var ok bool
	if d.year, ok = d.digits(4, 0, 9999); !ok || !d.take('-') {
		return ok
	}
	if d.month, ok = d.digits(2, 1, 12); !ok || !d.take('-') {
		return ok
	}
	if d.day, ok = d.digits(2, 1, daysIn(d.year, d.month)); !ok || !d.take('T') {
		return ok
	}
	if !d.readClock() {
		return false
	}
	offset, ok := d.offset()
	d.clock -= offset
	return ok
}

// daysIn gives the number of days of a month of the Gregorian calendar.
func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	default:
		return 31
	}
}

// covered gives the time that the date covers.
func (d *dateReader) covered() (from, to time.Time) {
	from = time.Date(d.year, time.Month(max(d.month, 1)), max(d.day, 1), 0, 0, 0, 0, time.UTC)
	switch {
	case d.month == 0:
		return from, from.AddDate(1, 0, 0)
	case d.day == 0:
		return from, from.AddDate(0, 1, 0)
	case d.precision == 0:
		return from, from.AddDate(0, 0, 1)
	default:
		from = from.Add(d.clock)
		return from, from.Add(d.precision)
	}
}

// readClock reads a time of day and how exact it is.
func (d *dateReader) readClock() bool {
	hour, ok := d.digits(2, 0, 23)
	if !ok || !d.take(':') {
		return false
	}
	minute, ok := d.digits(2, 0, 59)
	d.clock = time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
	d.precision = time.Minute
	if !ok || !d.take(':') {
		return ok
	}
	second, ok := d.digits(2, 0, 59)
	d.clock += time.Duration(second) * time.Second
	d.precision = time.Second
	if !ok || !d.take('.') && !d.take(',') {
		return ok
	}
	read := 0
	for ; d.precision > 1 && d.text != "" && '0' <= d.text[0] && d.text[0] <= '9'; read++ {
		d.precision /= 10
		d.clock += time.Duration(d.text[0]-'0') * d.precision
		d.text = d.text[1:]
	}
	return read > 0
}

// offset reads how far the local time is ahead of UTC, 0 when nothing says so.
func (d *dateReader) offset() (time.Duration, bool) {
	sign := time.Duration(1)
	switch {
	case d.text == "" || d.take('Z'):
		return 0, true
	case d.take('-'):
		sign = -1
	case !d.take('+'):
		return 0, false
	}
	hours, ok := d.digits(2, 0, 23)
	minutes := 0
	if colon := d.take(':'); ok && (colon || d.text != "") {
		minutes, ok = d.digits(2, 0, 59)
	}
	return sign * (time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute), ok
}

// take takes a character when it is the next.
func (d *dateReader) take(c byte) bool {
	if d.text == "" || d.text[0] != c {
		return false
	}
	d.text = d.text[1:]
	return true
}

// digits takes a number of so many digits.
func (d *dateReader) digits(n, least, most int) (int, bool) {
	if len(d.text) < n {
		return 0, false
	}
	number := 0
	for i := range n {
		c := d.text[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		number = number*10 + int(c-'0')
	}
	d.text = d.text[n:]
	return number, least <= number && number <= most
}
