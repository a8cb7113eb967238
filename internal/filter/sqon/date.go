package sqon

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tutti/internal/base/isodate"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
)

// ParseDate parses a date as in a document's field, and dates of ISO 8601 in its extended format:
//
//   - a year ("2024"), a month ("2024-03"), a week ("2024-W10"), a day ("2024-03-05", "2024-W10-2", "2024-065");
//   - a day and a time of hours with optional minutes, seconds and a fraction of up to nine digits, and an optional offset of at
//     most 18 hours ("2024-03-05T10:20:30.5+01:00"; Z, ±hh, ±hhmm, ±hh:mm); without an offset it is UTC. T24:00 is the first
//     instant of the next day. The text may end with "T", which is equivalent to the day;
//   - a number of milliseconds since 1970 in UTC, of up to 18 digits and with an optional fraction. Four digits, also after a minus, are a year;
//     "20240305" is not a day.
//
// Years before 0 begin with a minus ("-0001-12").
//
// Except for weeks, ordinal days and T24:00, this is the search engine's default format of dates
// (strict_date_optional_time||epoch_millis), with the same meaning. It returns the time range of the text in UTC, from its first
// instant to the first instant after it: a year for a year, a second for a time with seconds, a millisecond for three decimal
// places and for a whole number of milliseconds, at least a nanosecond. So x is at "2024-03" when from ≤ x < to, after it when x ≥
// to, and not after it when x < to. The years of milliseconds reach far beyond 9999.
//
// Every error is CodeInvalid.
func ParseDate(text string) (from, to time.Time, err error) {
	if d, ok := isodate.Parse(text); ok {
		from, to = d.Range()
		return from, to, nil
	}
	if m, ok := isodate.ParseMillis(text); ok {
		from, to = m.Range()
		return from, to, nil
	}
	return time.Time{}, time.Time{}, core.NewError(core.CodeInvalid, excerpt(text)+" is "+expected(fieldtype.Of("date")))
}

// Date returns the time range of v as a date: that of ParseDate for a string and for a number, which the search engine also reads
// by its digits, so that 2024 is a year. A number with an exponent is in milliseconds since 1970. Every error is CodeInvalid.
func (v Value) Date() (from, to time.Time, err error) {
	switch {
	case v.Kind == Bool:
		return time.Time{}, time.Time{}, core.NewError(core.CodeInvalid, v.Text+" is not a date")
	case v.Kind == Number && strings.ContainsAny(v.Text, "eE"):
		ms, err := strconv.ParseFloat(v.Text, 64)
		if err != nil || ms != math.Trunc(ms) || math.Abs(ms) >= isodate.MaxMillis {
			return time.Time{}, time.Time{}, core.NewError(core.CodeInvalid, excerpt(v.Text)+" is not a date in milliseconds")
		}
		from = time.UnixMilli(int64(ms)).UTC()
		return from, from.Add(time.Millisecond), nil
	default:
		return ParseDate(v.Text)
	}
}

// DateIn returns the time range of v as a date of a field with a format: read by the format, as the field's values in documents are, or else as by
// Date. Every error is CodeInvalid, also for a value with two meanings: as a number of seconds in the format, or as another ISO 8601 date there.
// Other digits that the format reads, such as 20240305, are not milliseconds.
func (v Value) DateIn(format *isodate.Format) (from, to time.Time, err error) {
	from, to, err = v.Date()
	if format == nil || v.Kind == Bool {
		return from, to, err
	}
	own, ownEnd, seconds, ok := format.Parse(v.Text)
	_, iso := isodate.Parse(v.Text)
	switch {
	case !ok && err != nil:
		return from, to, core.NewError(core.CodeInvalid, fmt.Sprintf("%s is no date in the field's format %q, and %s", excerpt(v.Text), format, expected(fieldtype.Of("date"))))
	case !ok, own.Equal(from):
		return from, to, err
	case err == nil && (iso || seconds):
		unit := "ISO 8601"
		if !iso {
			unit = "milliseconds"
		}
		return from, to, core.NewError(core.CodeInvalid, fmt.Sprintf("%s is %s in the field's format %q, but %s in %s: write the one that is meant in this form",
			excerpt(v.Text), written(own), format, written(from), unit))
	default:
		return own, ownEnd, nil
	}
}

// written returns an instant for a message.
func written(at time.Time) string { return at.Format("2006-01-02T15:04:05.999999999Z07:00") }

// isDate reports whether Date accepts a value, without computing its range.
func (v Value) isDate() bool {
	if v.Kind != String {
		_, _, err := v.Date()
		return err == nil
	}
	if _, ok := isodate.Parse(v.Text); ok {
		return true
	}
	_, ok := isodate.ParseMillis(v.Text)
	return ok
}

func isDigit(c byte) bool { return c-'0' <= 9 }
