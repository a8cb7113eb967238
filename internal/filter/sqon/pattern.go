package sqon

import (
	"strings"
	"unicode/utf8"
)

// Pattern is a text in which "*" matches any characters and "?" any one character, and a backslash escapes "*", "?" and itself. It
// has no other backslashes, so that it is a wildcard query of the search engine (Lucene's WildcardQuery).
type Pattern string

// patternOf converts a text to a Pattern by doubling backslashes that escape nothing.
func patternOf(text string) Pattern {
	if strings.IndexByte(text, '\\') < 0 {
		return Pattern(text)
	}
	b := make([]byte, 0, len(text)+8)
	for i := 0; i < len(text); i++ {
		b = append(b, text[i])
		if text[i] != '\\' {
			continue
		}
		if i+1 < len(text) && special(text[i+1]) {
			i++
		}
		b = append(b, text[i])
	}
	return Pattern(b)
}

// Prefix returns the literal prefix of all texts that p matches case-sensitively.
func (p Pattern) Prefix() string {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '*', '?':
			return unescape(string(p[:i]))
		}
	}
	return unescape(string(p))
}

// Match reports whether p matches the whole of a text. A character is a code point.
func (p Pattern) Match(text string) bool { return p.match(text, false) }

// MatchFold is Match ignoring only the case of the letters A to Z, as the search engine's wildcard query does.
func (p Pattern) MatchFold(text string) bool { return p.match(text, true) }

func (p Pattern) match(text string, fold bool) bool {
	at, in := 0, 0
	// star is the position after the last "*"; from is the position in the text where what follows it was last compared.
	star, from := -1, 0
	for {
		switch {
		case at < len(p) && p[at] == '*':
			at++
			star, from = at, in
			continue
		case at < len(p) && in < len(text):
			if next, read := p.step(at, text, in, fold); read > 0 {
				at, in = next, in+read
				continue
			}
		case at == len(p) && in == len(text):
			return true
		}
		if star < 0 || from >= len(text) {
			return false
		}
		// The "*" matches one more byte. This is correct because a continuation byte matches no character of the pattern, but "?"
		// must not start within a character.
		_, size := utf8.DecodeRuneInString(text[from:])
		from += size
		at, in = star, from
	}
}

// step compares one character of the pattern other than "*", and returns the position after it and the length of the matched text,
// 0 when they differ.
func (p Pattern) step(at int, text string, in int, fold bool) (next, read int) {
	if p[at] == '?' {
		_, size := utf8.DecodeRuneInString(text[in:])
		return at + 1, size
	}
	if p[at] == '\\' && at+1 < len(p) {
		at++
	}
	if p[at] == text[in] || fold && lower(p[at]) == lower(text[in]) {
		return at + 1, 1
	}
	return at, 0
}

// lower returns the lower case of the letters A to Z.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
