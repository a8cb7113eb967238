package download

import (
	"strconv"
	"strings"
	"time"

	"tutti/internal/filter/sqon"
)

// dateFormat formats dates in a format of date-fns (https://date-fns.org/docs/format), which is nearly Unicode's (UTS 35). The
// zero value leaves dates unchanged, and so does a format with an unknown part: ISO 8601 is always valid.
type dateFormat struct {
	// layouts are layouts of Go's time package, or texts with the prefix "'".
	layouts []string
}

// dateLayouts maps the supported format parts to layouts of Go's time package.
func dateLayouts() map[string]string {
	return map[string]string{
		"yyyy": "2006", "y": "2006", "uuuu": "2006", "yy": "06", "MMMM": "January", "LLLL": "January", "MMM": "Jan", "LLL": "Jan",
		"MM": "01", "LL": "01", "M": "1", "L": "1", "dd": "02", "d": "2", "EEEE": "Monday", "EEE": "Mon", "EE": "Mon", "E": "Mon",
		"HH": "15", "hh": "03", "h": "3", "mm": "04", "m": "4", "ss": "05", "s": "5", "SSS": ".000", "a": "PM", "aa": "PM",
		"XXX": "Z07:00", "xxx": "-07:00", "XX": "Z0700", "xx": "-0700",
	}
}

// dateFormatOf parses a format.
func dateFormatOf(format string) dateFormat {
	var f dateFormat
	known := dateLayouts()
	for i := 0; i < len(format); {
		c := format[i]
		switch {
		case c == '\'':
			text, end := quotedText(format, i)
			f.layouts = append(f.layouts, "'"+text)
			i = end
		case isLetter(c):
			end := i
			for end < len(format) && format[end] == c {
				end++
			}
			layout, ok := known[format[i:end]]
			if !ok {
				return dateFormat{}
			}
			f.layouts = append(f.layouts, layout)
			i = end
		default:
			f.layouts = append(f.layouts, "'"+format[i:i+1])
			i++
		}
	}
	return f
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// quotedText returns the text between the quotes that start at i, where two quotes are one, and the offset after them.
func quotedText(format string, i int) (string, int) {
	if strings.HasPrefix(format[i:], "''") {
		return "'", i + 2
	}
	var b strings.Builder
	for i++; i < len(format); i++ {
		if format[i] != '\'' {
			b.WriteByte(format[i])
			continue
		}
		if i+1 == len(format) || format[i+1] != '\'' {
			return b.String(), i + 1
		}
		b.WriteByte('\'')
		i++
	}
	return b.String(), i
}

// set reports whether dates are reformatted.
func (f dateFormat) set() bool { return len(f.layouts) > 0 }

// append appends a value in the format, in UTC; a value that is not a date is appended unchanged.
func (f dateFormat) append(dst []byte, text string, number bool) []byte {
	at, ok := dateOf(text, number)
	if !ok {
		return append(dst, text...)
	}
	for _, layout := range f.layouts {
		switch layout[0] {
		case '\'':
			dst = append(dst, layout[1:]...)
		case '.':
			// Go supports fractions of a second only after a point.
			dst = append(dst, at.Format(layout)[1:]...)
		default:
			dst = at.AppendFormat(dst, layout)
		}
	}
	return dst
}

// dateOf parses a date: ISO 8601, or milliseconds since 1970.
func dateOf(text string, number bool) (time.Time, bool) {
	if number {
		millis, err := strconv.ParseInt(text, 10, 64)
		return time.UnixMilli(millis).UTC(), err == nil
	}
	at, _, err := sqon.ParseDate(text)
	return at.UTC(), err == nil
}
