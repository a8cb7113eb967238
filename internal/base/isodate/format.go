package isodate

import (
	"cmp"
	"strings"
	"time"
)

// Format is a format of dates as the mapping of a field has it: names and patterns of Elasticsearch, separated by "||", of which the first that a
// text has decides. It is immutable.
//
// Read are epoch_millis, epoch_second, strict_date_optional_time, the names of names, and patterns of years, months, days, hours, minutes, seconds and
// fractions of a second in digits, with literals between them.
type Format struct {
	text    string
	unread  string
	layouts []layout
}

// Known names what a Format reads, for messages.
const Known = "epoch_millis, epoch_second, strict_date_optional_time, iso8601, date, strict_date, basic_date, strict_year, strict_year_month, " +
	"strict_date_hour, and patterns of y, u, M, d, H, m, s and S such as yyyy/MM/dd HH:mm:ss"

// NewFormat returns the Format of a text.
func NewFormat(text string) *Format {
	f := &Format{text: text}
	for part := range strings.SplitSeq(text, "||") {
		part = strings.TrimSpace(part)
		l, ok := layoutOf(part)
		switch {
		case ok:
			f.layouts = append(f.layouts, l)
		case f.unread == "":
			f.unread = part
		}
	}
	return f
}

// String returns the text of the format.
func (f *Format) String() string { return f.text }

// Unread returns the first part of the format that Parse does not read, false if it reads all.
func (f *Format) Unread() (string, bool) {
	return f.unread, len(f.layouts) <= strings.Count(f.text, "||")
}

// Bounded reports whether all dates of the format are in the years 1 to 9999.
func (f *Format) Bounded() bool {
	for _, l := range f.layouts {
		for _, p := range l.parts {
			if p.letter == 'y' && (p.zero || p.most > 4) {
				return false
			}
		}
		if l.kind != patternLayout {
			return false
		}
	}
	return f.unread == ""
}

// Parse returns the time range of a text in UTC, as Date.Range does. epoch reports whether the text is a number of seconds since 1970.
func (f *Format) Parse(text string) (from, to time.Time, seconds, ok bool) {
	for _, l := range f.layouts {
		if from, to, ok = l.parse(text); ok {
			return from, to, l.kind == secondsLayout, true
		}
	}
	return time.Time{}, time.Time{}, false, false
}

// layoutKind is how the texts of a layout are read.
type layoutKind uint8

const (
	patternLayout layoutKind = iota
	optionalLayout
	dayLayout
	millisLayout
	secondsLayout
)

// layout is one part of a Format.
type layout struct {
	kind  layoutKind
	parts []part
	// lenient is set when 30 February is 1 March.
	lenient bool
}

// part is a literal, or a field of a pattern: its letter, and the lowest and highest number of digits.
type part struct {
	literal     string
	letter      byte
	least, most int
	// zero is set if the year 0 is one.
	zero bool
}

// maxDigits is the number of digits of a number without leading zeros in its pattern.
const maxDigits = 9

// names returns the patterns of names.
func names() map[string]string {
	return map[string]string{
		"basic_date": "yyyyMMd", "strict_year": "yyyy", "strict_year_month": "yyyy-MM", "strict_date_hour": "yyyy-MM-dd'T'HH",
	}
}

func layoutOf(text string) (layout, bool) {
	switch text {
	case "epoch_millis":
		return layout{kind: millisLayout}, true
	case "epoch_second":
		return layout{kind: secondsLayout}, true
	case "strict_date_optional_time", "iso8601":
		return layout{kind: optionalLayout}, true
	case "strict_date":
		parts, _ := patternOf("uuuu-MM-dd")
		return layout{parts: parts, lenient: true}, true
	case "date":
		return layout{kind: dayLayout}, true
	}
	pattern, named := names()[text]
	parts, ok := patternOf(cmp.Or(pattern, text))
	if named {
		for i := range parts {
			parts[i].most = min(parts[i].most, max(parts[i].least, 2)) // basic_date takes a day of one digit
		}
	}
	return layout{parts: parts}, ok && complete(parts)
}

// patternOf splits a pattern.
func patternOf(text string) (parts []part, ok bool) {
	for i := 0; i < len(text); {
		c, end := text[i], i+1
		switch {
		case c == '\'':
			literal, after, closed := quoted(text, i)
			if !closed {
				return nil, false
			}
			parts, end = append(parts, part{literal: literal}), after
		case isLetter(c):
			for end < len(text) && text[end] == c {
				end++
			}
			p, known := fieldOf(c, end-i)
			if n := len(parts); !known || n > 0 && parts[n-1].letter > 0 && parts[n-1].least < parts[n-1].most {
				return nil, false // digits of a number that the next one may have
			}
			parts = append(parts, p)
		case strings.IndexByte("[]{}#", c) >= 0:
			return nil, false
		default:
			parts = append(parts, part{literal: text[i:end]})
		}
		i = end
	}
	return parts, true
}

// quoted returns the text between the quotes from i on, in which two stand for one, and the index after it.
func quoted(text string, i int) (literal string, after int, closed bool) {
	if strings.HasPrefix(text[i:], "''") {
		return "'", i + 2, true
	}
	var b strings.Builder
	for i++; i < len(text); i++ {
		if text[i] != '\'' {
			b.WriteByte(text[i])
			continue
		}
		if i+1 == len(text) || text[i+1] != '\'' {
			return b.String(), i + 1, true
		}
		i++
		b.WriteByte('\'')
	}
	return "", i, false
}

// fieldOf returns the part for a letter that is repeated n times.
func fieldOf(letter byte, n int) (part, bool) {
	p := part{letter: letter, least: n, most: n}
	switch {
	case letter == 'u' && n == 4:
		p.letter, p.zero = 'y', true
		return p, true
	case letter == 'y' && (n == 4 || n == 2), letter == 'S' && n <= 9, strings.IndexByte("MdHms", letter) >= 0 && n == 2:
		return p, true
	case letter == 'y' && n == 1, strings.IndexByte("MdHms", letter) >= 0 && n == 1:
		p.most = maxDigits
		return p, true
	default:
		return p, false
	}
}

// complete reports whether a pattern has a year, and no field without the next larger one, or twice.
func complete(parts []part) bool {
	seen := map[byte]bool{}
	for _, p := range parts {
		if p.letter > 0 && seen[p.letter] {
			return false
		}
		seen[p.letter] = true
	}
	for i, letter := range []byte("yMdHmsS") {
		if seen[letter] && i > 0 && !seen["yMdHmsS"[i-1]] || !seen['y'] {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return c|0x20-'a' < 26 }

// parse returns the time range of a text.
func (l layout) parse(text string) (from, to time.Time, ok bool) {
	var d Date
	switch l.kind {
	case millisLayout:
		m, ok := ParseMillis(text)
		from, to = m.Range()
		return from, to, ok && m.Decimals <= 6
	case secondsLayout:
		return parseSeconds(text)
	case optionalLayout:
		d, ok = Parse(text)
		ok = ok && !d.Extended
	case dayLayout:
		d, ok = parseDay(text)
	default:
		d, ok = l.date(text)
	}
	if ok {
		from, to = d.Range()
	}
	return from, to, ok
}

// date reads a text by a pattern.
func (l layout) date(text string) (Date, bool) {
	r := reader{text: text}
	r.month, r.day = 1, 1
	for _, p := range l.parts {
		if p.letter == 0 {
			if !strings.HasPrefix(r.text, p.literal) {
				return r.Date, false
			}
			r.text = r.text[len(p.literal):]
			continue
		}
		digits := p.least
		for digits < p.most && digits < len(r.text) && isDigit(r.text[digits]) {
			digits++
		}
		n, ok := r.digits(digits, 0, 1e9)
		if !ok || !r.set(p, n, l.lenient) {
			return r.Date, false
		}
	}
	return r.Date, r.text == "" && (l.lenient || r.day <= daysIn(r.year, r.month))
}

// set sets the field of a part, false for a number that it cannot have.
func (d *reader) set(p part, n int, lenient bool) bool {
	var unit time.Duration
	switch p.letter {
	case 'y':
		if d.year = n; p.most == 2 {
			d.year += 2000
		}
		return d.year > 0 || p.zero
	case 'M':
		d.unit, d.month = unitMonth, n
		return lenient || n >= 1 && n <= 12
	case 'd':
		d.unit, d.day = unitDay, n
		return lenient || n >= 1
	case 'H':
		unit = time.Hour
	case 'm':
		unit = time.Minute
	case 's':
		unit = time.Second
	default:
		unit = time.Second
		for range p.most {
			unit /= 10
		}
	}
	d.clock += time.Duration(n) * unit
	d.precision = unit
	return unit < time.Second || n < 60 && (unit < time.Hour || n < 24)
}

// parseDay parses a date of the format date: a year of up to nine digits, and a month and a day of one or two.
func parseDay(text string) (Date, bool) {
	negative := strings.HasPrefix(text, "-")
	parts := strings.Split(strings.TrimPrefix(text, "-"), "-")
	d, most := Date{month: 1, day: 1}, maxDigits
	for i, part := range parts {
		r := reader{text: part}
		n, ok := r.digits(len(part), 0, 1e9)
		if !ok || len(part) == 0 || len(part) > most {
			return d, false
		}
		switch most = 2; i {
		case 0:
			if d.year = n; negative {
				d.year = -n
			}
		case 1:
			d.unit, d.month = unitMonth, n
		case 2:
			d.unit, d.day = unitDay, n
		default:
			return d, false
		}
	}
	return d, d.month >= 1 && d.month <= 12 && d.day >= 1 && d.day <= daysIn(d.year, d.month)
}

// maxSeconds is the highest number of seconds whose milliseconds have 64 bits.
const maxSeconds = 9_223_372_036_854_775

// parseSeconds reads a number of seconds since 1970, with up to nine decimal places.
func parseSeconds(text string) (from, to time.Time, ok bool) {
	text, decimals, _ := strings.Cut(text, ".")
	m, ok := ParseMillis(text)
	if !ok || len(decimals) > 9 || m.whole > maxSeconds || m.whole < -maxSeconds {
		return from, to, false
	}
	fraction, precision := time.Duration(0), time.Second
	for i := range len(decimals) {
		if !isDigit(decimals[i]) {
			return from, to, false
		}
		precision /= 10
		fraction += time.Duration(decimals[i]-'0') * precision
	}
	if text[0] == '-' {
		fraction = -fraction
	}
	from = time.Unix(m.whole, 0).UTC().Add(fraction)
	return from, from.Add(precision), true
}
