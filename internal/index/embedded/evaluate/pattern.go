package evaluate

import (
	"bytes"
	"strings"
	"unsafe"

	"tutti/internal/sqon"
)

// matcher is a pattern, with the forms that most of them have told apart.
type matcher struct {
	pattern sqon.Pattern
	fold    bool
	// prefix is what every text that matches begins with; only then is the rest asked, unless open says that anything may
	// follow. Both are for patterns whose case counts.
	prefix     string
	prefixOnly bool
	// substring is what a text need only contain, in lower case when fold is set.
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

// matches reports whether a text matches; it begins with the prefix.
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

// unsafeString returns bytes as a text without copying them: dictionaries are walked in millions, and nobody changes a segment.
func unsafeString(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// containsFold reports whether text contains inner, which is in lower case, when the case of the letters A to Z is ignored.
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

// equalFold reports whether text begins with inner, as containsFold compares.
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
