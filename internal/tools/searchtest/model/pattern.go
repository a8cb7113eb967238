package model

// PatternChar is one character of a pattern.
type PatternChar struct {
	char rune
	// Any is '*' or '?' for a wildcard, otherwise 0.
	Any rune
}

// ParsePattern parses a text of a filter: a backslash before "*", "?" or a backslash escapes that character.
func ParsePattern(text string) []PatternChar {
	var out []PatternChar
	chars := []rune(text)
	for i := 0; i < len(chars); i++ {
		c := chars[i]
		switch {
		case c == '\\' && i+1 < len(chars) && (chars[i+1] == '*' || chars[i+1] == '?' || chars[i+1] == '\\'):
			i++
			out = append(out, PatternChar{char: chars[i]})
		case c == '*' || c == '?':
			out = append(out, PatternChar{Any: c})
		default:
			out = append(out, PatternChar{char: c})
		}
	}
	return out
}

// Has reports whether a pattern has a wildcard.
func Has(pattern []PatternChar, any rune) bool {
	for _, g := range pattern {
		if g.Any == any {
			return true
		}
	}
	return false
}

// Literal returns the text of a pattern without "*", with "?" as itself.
func Literal(pattern []PatternChar) string {
	var out []rune
	for _, g := range pattern {
		if g.Any != 0 {
			g.char = g.Any
		}
		out = append(out, g.char)
	}
	return string(out)
}

// Matches reports whether a pattern matches a whole text; fold ignores the case of the letters A to Z.
func Matches(pattern []PatternChar, text []rune, fold bool) bool {
	if len(pattern) == 0 {
		return len(text) == 0
	}
	switch first := pattern[0]; {
	case first.Any == '*':
		return Matches(pattern[1:], text, fold) || len(text) > 0 && Matches(pattern, text[1:], fold)
	case len(text) == 0:
		return false
	case first.Any == '?' || first.char == text[0] || fold && lower(first.char) == lower(text[0]):
		return Matches(pattern[1:], text[1:], fold)
	default:
		return false
	}
}

func lower(c rune) rune {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
