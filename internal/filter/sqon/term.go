package sqon

import "strings"

// missingText and setPrefix are the texts with a special meaning.
const (
	missingText = "__missing__"
	setPrefix   = "set_id:"
)

// Term is the meaning of a value of In, NotIn, SomeNotIn or All.
type Term struct {
	Kind TermKind
	// Text is the plain text with its escapes resolved (TermText), or the id of the set (TermSet).
	Text string
	// Pattern is set for TermPattern.
	Pattern Pattern
}

// TermKind is the kind of a Term.
type TermKind int

// Kinds of a Term.
const (
	// TermText matches a value that equals Text.
	TermText TermKind = iota
	// TermPattern matches a value that matches Pattern case-sensitively.
	TermPattern
	// TermMissing matches a missing value.
	TermMissing
	// TermSet matches a member of the saved set Text.
	TermSet
)

// Term returns the meaning of v in In, NotIn, SomeNotIn and All (CONTRACT section 4). A string with an unescaped "*" is a pattern,
// in which "?" matches any one character; otherwise "?" is literal. A backslash escapes "*", "?" and a backslash; before anything
// else it is literal. Numbers and booleans are literal.
//
// Which values equal Text depends on the type of the field, in the same way for every engine. Values are valid after Check:
//
//   - a number is compared by its value: "007", "+7", 7.0 and "0.7e1" are 7. Floating-point types round it as they round the
//     values of documents. A number outside the range of an integer type, or with a fraction, is valid: it equals no value, and
//     bounds a range by its value;
//   - a date is that of Value.Date, and equals each instant in its range;
//   - a boolean is "true" or "false", or 1 or 0, which are the keys of its buckets;
//   - a range equals each value that it contains, and a date some instant of which it contains;
//   - an ip is a single address, not a network, and is compared by its bits; an IPv4 address equals its IPv6-mapped form.
//
// These types do not support patterns in In, NotIn, SomeNotIn and All. For any other type Text is compared unchanged.
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

// Pattern returns the pattern of a value of Wildcard: its text with "*" and "?", or, when it has neither unescaped, a pattern for
// anything that contains it. The escapes are those of Term.
func (v Value) Pattern() Pattern {
	if wild(v.Text, "*?") {
		return patternOf(v.Text)
	}
	return "*" + patternOf(v.Text) + "*"
}

// Escape returns the value that matches exactly text in In, NotIn, SomeNotIn, All and, as a whole, in Wildcard: its Term is
// TermText with that text. Facets escape the keys of their buckets with it. Two texts cannot be escaped, because CONTRACT section 4
// has no escape for them: "__missing__", and texts that start with "set_id:".
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

// wild reports whether a text has one of the characters unescaped.
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

// unescape returns the literal text of a value without wildcards.
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
