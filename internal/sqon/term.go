package sqon

import "strings"

// missingText and setPrefix are the texts that mean something else than themselves.
const (
	missingText = "__missing__"
	setPrefix   = "set_id:"
)

// Term is what a value of In, NotIn, SomeNotIn or All asks for.
type Term struct {
	Kind TermKind
	// Text is the plain text with its escapes resolved (TermText), or the id of the set (TermSet).
	Text string
	// Pattern is that of TermPattern.
	Pattern Pattern
}

// TermKind is what a Term is.
type TermKind int

// Kinds of a Term.
const (
	// TermText: a value that equals Text.
	TermText TermKind = iota
	// TermPattern: a value that matches Pattern, whose case counts.
	TermPattern
	// TermMissing: no value.
	TermMissing
	// TermSet: a member of the saved set Text.
	TermSet
)

// Term says what v asks for in In, NotIn, SomeNotIn and All (CONTRACT section 4). A string with a "*" of its own is a
// pattern, in which "?" is any one character; without one, "?" is itself. A backslash before "*", "?" or a backslash makes
// that character itself; before anything else it is itself. Numbers and booleans are plain.
//
// What Text equals depends on the type of the field, for every engine alike. Check has let nothing else through:
//
//   - a number is meant by its value, however it is written: "007", "+7", 7.0 and "0.7e1" are 7. The types of fractions
//     round it to what they can hold, as they do with what a document holds. One that the type has no room for, out of the
//     range of an integer or with a fraction that is not zero, is no fault: it equals no value. In a range it counts as it is;
//   - a date is that of Value.Date, and equals each instant that it covers;
//   - a boolean is "true" or "false", or 1 or 0, which are the keys of its buckets;
//   - an ip is a single address, never a network, and is meant by its bits; an IPv4 address is also its IPv6-mapped form.
//
// Those types have no patterns in In, NotIn, SomeNotIn and All. On any other type Text is itself.
func (v Value) Term() Term {
	switch {
	case v.Kind != String:
		return Term{Text: v.Text}
	case v.Text == missingText:
		return Term{Kind: TermMissing}
	case strings.HasPrefix(v.Text, setPrefix):
		return Term{Kind: TermSet, Text: v.Text[len(setPrefix):]}
	case strings.IndexByte(v.Text, '*') < 0 && strings.IndexByte(v.Text, '\\') < 0:
		return Term{Text: v.Text}
	case wild(v.Text, "*"):
		return Term{Kind: TermPattern, Pattern: patternOf(v.Text)}
	default:
		return Term{Text: unescape(v.Text)}
	}
}

// Pattern returns what a value of Wildcard asks for: its text with "*" and "?", or, when it has neither of its own, whatever
// contains it. The escapes are those of Term.
func (v Value) Pattern() Pattern {
	if wild(v.Text, "*?") {
		return patternOf(v.Text)
	}
	return "*" + patternOf(v.Text) + "*"
}

// Escape returns the value that means a text itself in In, NotIn, SomeNotIn, All and, as a whole, in Wildcard: Term of it is
// TermText with that text. A facet puts its buckets' keys through it. Two things cannot be escaped, because CONTRACT section
// 4 has no escape for them, and keep their special meaning: the text "__missing__", and texts that begin with "set_id:".
func Escape(text string) string {
	if text == missingText || strings.HasPrefix(text, setPrefix) || !strings.ContainsAny(text, `*?\`) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 8)
	for i := range len(text) {
		if special(text[i]) {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// special reports whether a character can be escaped.
func special(c byte) bool { return c == '*' || c == '?' || c == '\\' }

// wild reports whether a text has one of the characters without a backslash before it.
func wild(text, characters string) bool {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && special(text[i+1]):
			i++
		case strings.IndexByte(characters, c) >= 0:
			return true
		}
	}
	return false
}

// unescape returns the text that a value without wildcards stands for.
func unescape(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && special(text[i+1]) {
			i++
		}
		b = append(b, text[i])
	}
	return string(b)
}
