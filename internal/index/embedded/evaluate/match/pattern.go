package match

import (
	"bytes"
	"strings"
	"unsafe"

	"tutti/internal/filter/sqon"
)

// matcher is a pattern, with fast paths for the common forms.
type matcher struct {
	pattern sqon.Pattern
	fold    bool
	// prefix is the literal prefix of the pattern, and prefixOnly is set when any text with it matches. Both are for case-sensitive
	// patterns.
	prefix     string
	prefixOnly bool
	// substring is what a matching text must contain when contains is set, in lower case when fold is set.
	substring []byte
	contains  bool
}

func newMatcher(p sqon.Pattern, fold bool) matcher {
	m := matcher{pattern: p, fold: fold}
	if !fold {
		m.prefix = p.Prefix()
		m.prefixOnly = sqon.Pattern(sqon.Escape(m.prefix))+"*" == p
	}
	if inner, ok := strings.CutPrefix(string(p), "*"); ok && !m.prefixOnly {
		inner, ok = strings.CutSuffix(inner, "*")
		m.contains = ok && !strings.ContainsAny(inner, `*?\`)
		m.substring = []byte(inner)
		if fold {
			for i, c := range m.substring {
				m.substring[i] = lowerASCII(c)
			}
		}
	}
	return m
}

// matches reports whether a text matches. The text must start with the prefix.
func (m *matcher) matches(text []byte) bool {
	switch {
	case m.prefixOnly:
		return true
	case m.contains && m.fold:
		return containsFold(text, m.substring)
	case m.contains:
		return bytes.Contains(text, m.substring)
	case m.fold:
		return m.pattern.MatchFold(unsafeString(text))
	default:
		return m.pattern.Match(unsafeString(text))
	}
}

// unsafeString returns bytes as a string without copying: dictionaries have millions of texts, and segments are immutable.
func unsafeString(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// containsFold reports whether text contains inner, which is in lower case, ignoring the case of the letters A to Z.
func containsFold(text, inner []byte) bool {
	if len(inner) == 0 {
		return true
	}
	first, rest := inner[0], inner[1:]
	for at := 0; at+len(inner) <= len(text); at++ {
		if lowerASCII(text[at]) == first && equalFold(text[at+1:], rest) {
			return true
		}
	}
	return false
}

// equalFold reports whether text starts with inner, compared as by containsFold.
func equalFold(text, inner []byte) bool {
	for i, c := range inner {
		if lowerASCII(text[i]) != c {
			return false
		}
	}
	return true
}

func lowerASCII(c byte) byte {
	if c-'A' < 26 {
		return c | 0x20
	}
	return c
}
