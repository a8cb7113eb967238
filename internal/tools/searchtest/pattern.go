package searchtest

// patternChar is one character of a pattern.
type patternChar struct {
	char rune
	// any is '*' or '?' for a wildcard, otherwise 0.
	any rune
}

// parsePattern parses a text of a filter: a backslash before "*", "?" or a backslash escapes that character.
func parsePattern(text string) []patternChar {
	var out []patternChar
	chars := []rune(text)
	for i := 0; i < len(chars); i++ {
		c := chars[i]
		switch {
		case c == '\\' && i+1 < len(chars) && (chars[i+1] == '*' || chars[i+1] == '?' || chars[i+1] == '\\'):
			i++
			out = append(out, patternChar{char: chars[i]})
		case c == '*' || c == '?':
			out = append(out, patternChar{any: c})
		default:
			out = append(out, patternChar{char: c})
		}
	}
	return out
}

// has reports whether a pattern has a wildcard.
func has(pattern []patternChar, any rune) bool {
	for _, g := range pattern {
		if g.any == any {
			return true
		}
	}
	return false
}

// literal returns the text of a pattern without "*", with "?" as itself.
func literal(pattern []patternChar) string {
	var out []rune
	for _, g := range pattern {
		if g.any != 0 {
			g.char = g.any
		}
		out = append(out, g.char)
	}
	return string(out)
}

// matches reports whether a pattern matches a whole text; fold ignores the case of the letters A to Z.
func matches(pattern []patternChar, text []rune, fold bool) bool {
	if len(pattern) == 0 {
		return len(text) == 0
	}
	switch first := pattern[0]; {
	case first.any == '*':
		return matches(pattern[1:], text, fold) || len(text) > 0 && matches(pattern, text[1:], fold)
	case len(text) == 0:
		return false
	case first.any == '?' || first.char == text[0] || fold && lower(first.char) == lower(text[0]):
		return matches(pattern[1:], text[1:], fold)
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
