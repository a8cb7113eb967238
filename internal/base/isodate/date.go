// Package isodate parses dates of ISO 8601 in its extended format, and numbers of milliseconds since 1970, as Elasticsearch does in
// documents (strict_date_optional_time||epoch_millis), with some more formats for filters.
package isodate

import "time"

// unit is the duration of a date without a time.
type unit int

const (
	unitYear unit = iota
	unitMonth
	unitWeek
	unitDay
)

// Date is a parsed date.
type Date struct {
	unit unit
	year int
	// month and day are the first of the date. The day may be outside the month: it is counted from the start of the year in some
	// formats.
	month, day int
	// clock is the time of day in UTC, exact to precision, which is 0 when the date has no time.
	clock, precision time.Duration
	// Extended is set for a week, an ordinal day and T24:00, which documents must not have.
	Extended bool
}

// Parse parses a whole text as a date: a year, a month, a week, a day (also by its week or its number in the year), or a day with
// "T" and an optional time, with an optional fraction of up to nine digits and an optional offset of at most 18 hours. A year has four digits, and a minus
// if it is before the year 0.
func Parse(text string) (d Date, ok bool) {
	r := reader{text: text}
	ok = r.readDay() && (r.unit != unitDay || !r.take('T') || r.text == "" || r.readTime()) && r.text == ""
	return r.Date, ok
}

// reader parses a date from its start. text is the unread rest.
type reader struct {
	Date
	text string
}

// readDay reads the part before the time.
func (d *reader) readDay() bool {
	var ok bool
	d.month, d.day = 1, 1
	before := d.take('-')
	if d.year, ok = d.digits(4, 0, 9999); before {
		d.year = -d.year
	}
	if !ok || !d.take('-') {
		return ok
	}
	if d.take('W') {
		d.Extended = true
		return d.readWeek()
	}
	if len(d.text) > 2 && isDigit(d.text[2]) {
		d.unit, d.Extended = unitDay, true
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
func (d *reader) readWeek() bool {
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

// Range returns the time range of the date in UTC: from its first instant to the first instant after it.
func (d Date) Range() (from, to time.Time) {
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
func (d *reader) readTime() bool {
	if !d.readClock() || d.clock > 24*time.Hour {
		return false
	}
	offset, ok := d.offset()
	d.clock -= offset
	return ok
}

// readClock reads a time of day, which may exceed 24 hours, and its precision.
func (d *reader) readClock() bool {
	hour, ok := d.digits(2, 0, 24)
	d.clock, d.precision, d.Extended = time.Duration(hour)*time.Hour, time.Hour, hour == 24
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

// maxOffset is the maximum offset from UTC, as in Java and so in Elasticsearch.
const maxOffset = 18 * time.Hour

// offset reads the offset from UTC, 0 when there is none.
func (d *reader) offset() (time.Duration, bool) {
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
func (d *reader) take(c byte) bool {
	if d.text == "" || d.text[0] != c {
		return false
	}
	d.text = d.text[1:]
	return true
}

// digits reads a number of n digits between least and most.
func (d *reader) digits(n, least, most int) (int, bool) {
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

func isDigit(c byte) bool { return c-'0' <= 9 }
