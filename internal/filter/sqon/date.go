package sqon

import (
	"math"
	"strconv"
	"strings"
	"time"

	"tutti/internal/core"
)

// ParseDate parses a date as in a document's field, and dates of ISO 8601 in its extended format:
//
//   - a year ("2024"), a month ("2024-03"), a week ("2024-W10"), a day ("2024-03-05", "2024-W10-2", "2024-065");
//   - a day and a time of hours with optional minutes, seconds and a fraction of up to nine digits, and an optional offset of at
//     most 18 hours ("2024-03-05T10:20:30.5+01:00"; Z, ±hh, ±hhmm, ±hh:mm); without an offset it is UTC. T24:00 is the first
//     instant of the next day. The text may end with "T", which is equivalent to the day;
//   - a number of milliseconds since 1970 in UTC, of up to 18 digits and with an optional fraction. Four digits are a year;
//     "20240305" is not a day.
//
// Except for weeks, ordinal days and T24:00, this is the search engine's default format of dates
// (strict_date_optional_time||epoch_millis), with the same meaning. It returns the time range of the text in UTC, from its first
// instant to the first instant after it: a year for a year, a second for a time with seconds, a millisecond for three decimal
// places and for a whole number of milliseconds, at least a nanosecond. So x is at "2024-03" when from ≤ x < to, after it when x ≥
// to, and not after it when x < to. The years of milliseconds reach far beyond 9999.
//
// Every error is CodeInvalid.
func ParseDate(text string) (from, to time.Time, err error) {
	d := dateReader{text: text}
	if d.read() {
		from, to = d.covered()
		return from, to, nil
	}
	if m, ok := readMillis(text); ok {
		from, to = m.covered()
		return from, to, nil
	}
	return time.Time{}, time.Time{}, core.NewError(core.CodeInvalid, excerpt(text)+" is "+dateClass.expected())
}

// Date returns the time range of v as a date: that of ParseDate for a string and for a number, which the search engine also reads
// by its digits, so that 2024 is a year. A number with an exponent is in milliseconds since 1970. Every error is CodeInvalid.
func (v Value) Date() (from, to time.Time, err error) {
	switch {
	case v.Kind == Bool:
		return time.Time{}, time.Time{}, core.NewError(core.CodeInvalid, v.Text+" is not a date")
	case v.Kind == Number && strings.ContainsAny(v.Text, "eE"):
		ms, err := strconv.ParseFloat(v.Text, 64)
		if err != nil || ms != math.Trunc(ms) || math.Abs(ms) >= maxMillis {
			return time.Time{}, time.Time{}, core.NewError(core.CodeInvalid, excerpt(v.Text)+" is not a date in milliseconds")
		}
		from, to = millis{whole: int64(ms), precision: time.Millisecond}.covered()
		return from, to, nil
	default:
		return ParseDate(v.Text)
	}
}

// isDate reports whether Date accepts a value, without computing its range.
func (v Value) isDate() bool {
	if v.Kind != String {
		_, _, err := v.Date()
		return err == nil
	}
	d := dateReader{text: v.Text}
	if d.read() {
		return true
	}
	_, ok := readMillis(v.Text)
	return ok
}

// unit is the duration of a date without a time.
type unit int

const (
	unitYear unit = iota
	unitMonth
	unitWeek
	unitDay
)

// dateReader parses a date from its start.
type dateReader struct {
	// text is the unread rest.
	text string
	unit unit
	year int
	// month and day are the first of the date. The day may be outside the month: it is counted from the start of the year in some
	// formats.
	month, day int
	// clock is the time of day in UTC, exact to precision, which is 0 when the date has no time.
	clock, precision time.Duration
}

// read reports whether the whole text is a date.
func (d *dateReader) read() bool {
	if !d.readDay() {
		return false
	}
	if d.unit == unitDay && d.take('T') && d.text != "" && !d.readTime() {
		return false
	}
	return d.text == ""
}

// readDay reads the part before the time.
func (d *dateReader) readDay() bool {
	var ok bool
	d.month, d.day = 1, 1
	if d.year, ok = d.digits(4, 0, 9999); !ok || !d.take('-') {
		return ok
	}
	if d.take('W') {
		return d.readWeek()
	}
	if len(d.text) > 2 && isDigit(d.text[2]) {
		d.unit = unitDay
		d.day, ok = d.digits(3, 1, daysOf(d.year))
		return ok
	}
	d.unit = unitMonth
	if d.month, ok = d.digits(2, 1, 12); !ok || !d.take('-') {
		return ok
	}
	d.unit = unitDay
	d.day, ok = d.digits(2, 1, daysIn(d.year, d.month))
	return ok
}

// readWeek reads a week and an optional day of it.
func (d *dateReader) readWeek() bool {
	monday, weeks := weeksOf(d.year)
	week, ok := d.digits(2, 1, weeks)
	d.unit, d.day = unitWeek, monday+7*(week-1)
	if !ok || !d.take('-') {
		return ok
	}
	weekday, ok := d.digits(1, 1, 7)
	d.unit, d.day = unitDay, d.day+weekday-1
	return ok
}

// weeksOf returns the day of January, from -2 on, of the first Monday of the year's ISO 8601 weeks, and their number: the first
// week is the one with the year's first Thursday.
func weeksOf(year int) (monday, weeks int) {
	first := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Weekday()
	weeks = 52
	if first == time.Thursday || first == time.Wednesday && daysOf(year) == 366 {
		weeks = 53
	}
	switch {
	case first == time.Sunday:
		return 2, weeks
	case first <= time.Thursday:
		return 2 - int(first), weeks
	default:
		return 9 - int(first), weeks
	}
}

// daysOf returns the number of days of a year.
func daysOf(year int) int { return 337 + daysIn(year, 2) }

// daysIn returns the number of days of a month of the Gregorian calendar.
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

// covered returns the time range of the date.
func (d *dateReader) covered() (from, to time.Time) {
	from = time.Date(d.year, time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC)
	switch {
	case d.precision > 0:
		from = from.Add(d.clock)
		return from, from.Add(d.precision)
	case d.unit == unitYear:
		return from, from.AddDate(1, 0, 0)
	case d.unit == unitMonth:
		return from, from.AddDate(0, 1, 0)
	case d.unit == unitWeek:
		return from, from.AddDate(0, 0, 7)
	default:
		return from, from.AddDate(0, 0, 1)
	}
}

// readTime reads a time of day and its offset.
func (d *dateReader) readTime() bool {
	if !d.readClock() || d.clock > 24*time.Hour {
		return false
	}
	offset, ok := d.offset()
	d.clock -= offset
	return ok
}

// readClock reads a time of day, which may exceed 24 hours, and its precision.
func (d *dateReader) readClock() bool {
	hour, ok := d.digits(2, 0, 24)
	d.clock, d.precision = time.Duration(hour)*time.Hour, time.Hour
	if !ok || !d.take(':') {
		return ok
	}
	minute, ok := d.digits(2, 0, 59)
	d.clock += time.Duration(minute) * time.Minute
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
	for ; d.precision > 1 && d.text != "" && isDigit(d.text[0]); read++ {
		d.precision /= 10
		d.clock += time.Duration(d.text[0]-'0') * d.precision
		d.text = d.text[1:]
	}
	return read > 0
}

// maxOffset is the maximum offset from UTC, as in Java and so in the search engine.
const maxOffset = 18 * time.Hour

// offset reads the offset from UTC, 0 when there is none.
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
	hours, ok := d.digits(2, 0, 99)
	minutes := 0
	if colon := d.take(':'); ok && (colon || d.text != "") {
		minutes, ok = d.digits(2, 0, 59)
	}
	offset := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	return sign * offset, ok && offset <= maxOffset
}

// take consumes a character if it is the next.
func (d *dateReader) take(c byte) bool {
	if d.text == "" || d.text[0] != c {
		return false
	}
	d.text = d.text[1:]
	return true
}

// digits reads a number of n digits between least and most.
func (d *dateReader) digits(n, least, most int) (int, bool) {
	if len(d.text) < n {
		return 0, false
	}
	number := 0
	for i := range n {
		c := d.text[i]
		if !isDigit(c) {
			return 0, false
		}
		number = number*10 + int(c-'0')
	}
	d.text = d.text[n:]
	return number, least <= number && number <= most
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
