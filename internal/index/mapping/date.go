package mapping

import "time"

// isDate reports whether a value has Elasticsearch's default format of date: strict_date_optional_time||epoch_millis.
func isDate(kind Kind, text []byte) bool {
	if kind == KindBoolean {
		return false
	}
	if kind == KindString && isISODate(text, 0) {
		return true
	}
	return isMillis(text)
}

// isMillis reports whether text is an epoch_millis: a number with up to six decimal places.
func isMillis(text []byte) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	n := digits(text, 0)
	if n == 0 || n > 18 {
		return false
	}
	return n == len(text) || text[n] == '.' && digits(text, n+1) == len(text) && len(text)-n-1 <= 6
}

// isISODate reports whether s is a strict_date_optional_time: yyyy[-MM[-dd['T'[HH[:mm[:ss[.fraction]]]][offset]]]], with a valid
// calendar date. It must have at least need bytes (10 for a whole day).
func isISODate(s []byte, need int) bool {
	if len(s) < max(4, need) || digits(s[:4], 0) != 4 {
		return false
	}
	if len(s) == 4 {
		return true
	}
	year, month := number(s[:4]), part(s, 4, '-')
	if month < 1 || month > 12 {
		return false
	}
	if len(s) == 7 {
		return true
	}
	day := part(s, 7, '-')
	if day < 1 || day > time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day() {
		return false
	}
	if len(s) == 10 {
		return true
	}
	return s[10] == 'T' && isISOTime(s[11:])
}

func isISOTime(s []byte) bool {
	if len(s) == 0 {
		return true
	}
	if len(s) < 2 || digits(s[:2], 0) != 2 || number(s[:2]) > 23 {
		return false
	}
	i := 2
	if m := part(s, i, ':'); m >= 0 {
		if m > 59 {
			return false
		}
		i += 3
		if sec := part(s, i, ':'); sec >= 0 {
			if sec > 59 {
				return false
			}
			i += 3
			if i < len(s) && (s[i] == '.' || s[i] == ',') {
				n := digits(s, i+1) - i - 1
				if n < 1 || n > 9 {
					return false
				}
				i += 1 + n
			}
		}
	}
	return isOffset(s[i:])
}

func isOffset(s []byte) bool {
	if len(s) == 0 || string(s) == "Z" {
		return true
	}
	if s[0] != '+' && s[0] != '-' {
		return false
	}
	s = s[1:]
	if len(s) == 5 && s[2] == ':' {
		return digits(s[:2], 0) == 2 && part(s, 2, ':') >= 0 && offsetWithin(number(s[:2]), part(s, 2, ':'))
	}
	if len(s) != 2 && len(s) != 4 || digits(s, 0) != len(s) {
		return false
	}
	return offsetWithin(number(s[:2]), number(s[2:]))
}

// offsetWithin reports whether a time zone offset is valid: the engine accepts up to 18 hours.
func offsetWithin(hours, minutes int) bool { return minutes <= 59 && 60*hours+minutes <= 18*60 }

// part parses a separator and two digits at i, and returns -1 when they are missing.
func part(s []byte, i int, separator byte) int {
	if len(s) < i+3 || s[i] != separator || digits(s[:i+3], i+1) != i+3 {
		return -1
	}
	return number(s[i+1 : i+3])
}

// number returns the value of a few digits.
func number(s []byte) int {
	n := 0
	for _, b := range s {
		n = n*10 + int(b-'0')
	}
	return n
}

// digits returns the index after the digits at i.
func digits(text []byte, i int) int {
	for i < len(text) && text[i]-'0' <= 9 {
		i++
	}
	return i
}
